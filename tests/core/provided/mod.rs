//! The bodies that the trait provides, over a backend that has none of its own.

mod batches;
mod launches;
mod refusals;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleetwright::{
    Capabilities, CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, ProvisionError, Result,
    TagLimits, async_trait,
};
use tokio::time::sleep;

use crate::fake::{id, secs};

/// A backend with the seven calls that it must have and nothing else.
#[derive(Debug)]
struct Plain {
    capabilities: Capabilities,
    /// What is refused, by the instance's name.
    refused: BTreeMap<InstanceId, ProvisionError>,
    /// What was asked to be launched.
    asked: Mutex<Vec<InstanceConfig>>,
    /// From which launch on, counted from zero, all are refused, and how.
    refused_from: Option<(usize, ProvisionError)>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

impl Plain {
    fn new() -> Self {
        Self {
            capabilities: Capabilities::new("plain", TagLimits::new(9, 9, 9), 9),
            refused: BTreeMap::new(),
            asked: Mutex::default(),
            refused_from: None,
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
        }
    }

    /// Takes a while, a longer one for some, and answers.
    async fn change(&self, id: &InstanceId) -> Result<()> {
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(now, Ordering::Relaxed);
        let length = id.as_str().len() as u64;
        sleep(secs(length)).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.refused.get(id).cloned().map_or(Ok(()), Err)
    }

    fn most_under_way(&self) -> usize {
        self.most_under_way.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl InstanceProvisioner for Plain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut asked = self.asked.lock().unwrap();
        let index = asked.len();
        asked.push(config.clone());
        match &self.refused_from {
            Some((from, error)) if index >= *from => Err(error.clone()),
            Some(_) | None => {
                let id = id(&format!("i-{index}"));
                Ok(InstanceInfo::new(id, CloudInstanceState::Pending))
            }
        }
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(id).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(id).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.change(id).await?;
        Ok(InstanceInfo::new(id.clone(), CloudInstanceState::Pending))
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.change(id).await?;
        Ok(InstanceStatus::new(id.clone(), CloudInstanceState::Stopped))
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let all = ["i-2", "i-1", "i-3"]
            .map(|name| InstanceInfo::new(id(name), CloudInstanceState::Running));
        match self.refused.values().next() {
            Some(error) => Err(error.clone()),
            None => Ok(all
                .into_iter()
                .filter(|info| filter.matches(info))
                .collect()),
        }
    }

    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        Ok(LaunchRecord::NotFound)
    }
}
