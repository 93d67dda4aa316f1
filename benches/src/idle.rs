//! A backend that does nothing, so that a measurement shows only what is around it.

use std::num::NonZeroU32;

use fleetwright::{
    Capabilities, CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, Result, TagLimits, async_trait,
};

/// A backend whose every call succeeds at once.
#[derive(Debug)]
pub struct Idle {
    capabilities: Capabilities,
    id: InstanceId,
}

impl Default for Idle {
    fn default() -> Self {
        let limits = TagLimits::new(50, 128, 256);
        Self {
            capabilities: Capabilities::new("idle", limits, 16_384),
            id: InstanceId::new("i-1").expect("a valid id"),
        }
    }
}

impl Idle {
    fn info(&self) -> InstanceInfo {
        InstanceInfo::new(self.id.clone(), CloudInstanceState::Running)
    }
}

#[async_trait]
impl InstanceProvisioner for Idle {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, _: &InstanceConfig) -> Result<InstanceInfo> {
        Ok(self.info())
    }

    async fn terminate_instance(&self, _: &InstanceId) -> Result<()> {
        Ok(())
    }

    async fn stop_instance(&self, _: &InstanceId) -> Result<()> {
        Ok(())
    }

    async fn start_instance(&self, _: &InstanceId) -> Result<InstanceInfo> {
        Ok(self.info())
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let state = CloudInstanceState::Running;
        Ok(InstanceStatus::new(id.clone(), state))
    }

    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        Ok(Vec::new())
    }

    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        Ok(LaunchRecord::NotFound)
    }

    async fn launch_instances(
        &self,
        _: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        Ok((0..count.get()).map(|_| self.info()).collect())
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let status = |id: &InstanceId| InstanceStatus::new(id.clone(), CloudInstanceState::Running);
        ids.iter().map(|id| Ok(status(id))).collect()
    }
}
