//! A cloud that misreports.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ErrorKind, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};
use fleetwright_region::controller::tags;
use futures_util::{StreamExt as _, stream};

use super::Mistake;
use crate::{constants, oracle::Oracle};

/// One part's handle of the cloud, between that part and the injected faults.
#[derive(Debug)]
pub struct MistakenCloud {
    inner: Arc<dyn InstanceProvisioner>,
    mistake: Mistake,
    capabilities: Capabilities,
    oracle: Oracle,
}

impl MistakenCloud {
    /// A handle that makes a mistake.
    pub fn new(inner: Arc<dyn InstanceProvisioner>, mistake: Mistake, oracle: Oracle) -> Self {
        let mut capabilities = inner.capabilities().clone();
        if mistake == Mistake::MissingInWindow {
            capabilities.consistency_window = Duration::ZERO;
        }
        Self {
            inner,
            mistake,
            capabilities,
            oracle,
        }
    }

    /// What is returned in place of an item of a list; `None` leaves it out.
    fn misreport(&self, item: Result<ListItem>) -> Option<Result<ListItem>> {
        let hides_gaps = matches!(
            self.mistake,
            Mistake::MissingOnIncompleteList | Mistake::TerminateOnIncompleteList
        );
        match item {
            Ok(ListItem::Gap { .. }) if hides_gaps => None,
            Err(_) if self.mistake == Mistake::ScanWithoutList => None,
            Ok(ListItem::Instance(mut info)) if self.mistake == Mistake::TerminateForeign => {
                // A valid key and value: the region's own machines have them.
                let _ = info.tags.insert(tags::REGION, constants::region().as_str());
                Some(Ok(ListItem::Instance(info)))
            }
            item => Some(item),
        }
    }

    /// Every machine that carries the tag of the token's server, whatever region it belongs to.
    async fn find_by_tag(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let server = self.oracle.server_of(token).map(|id| id.to_string());
        let all = InstanceFilter::new();
        let mut found = self.inner.list_instances(&all).await?;
        found.retain(|info| info.tags.get(tags::SERVER) == server.as_deref());
        Ok(LaunchRecord::from_instances(found))
    }
}

#[async_trait]
impl InstanceProvisioner for MistakenCloud {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut config = config.clone();
        if let (Mistake::LaunchLarger, Ok(larger)) = (self.mistake, InstanceType::new("gpu")) {
            config.instance_type = larger;
        }
        self.inner.launch_instance(&config).await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.terminate_instance(id).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.stop_instance(id).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.inner.start_instance(id).await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.inner.describe_instance(id).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let results = self.inner.describe_instances(ids).await;
        if self.mistake != Mistake::MissingOnIncompleteList {
            return results;
        }
        let call = Call::new("mistaken", Operation::DescribeInstances);
        let results = ids.iter().zip(results);
        let results = results.map(|(id, result)| match result {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(call.not_found(id)),
            result => result,
        });
        results.collect()
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.inner.list_instances(filter).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let items = self.inner.stream_instances(filter);
        let items = items.flat_map(|item| stream::iter(self.misreport(item)));
        items.boxed()
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        if self.mistake == Mistake::AdoptByTag {
            return self.find_by_tag(token).await;
        }
        self.inner.find_launch(token).await
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.inner.update_tags(id, change).await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.inner.reboot_instance(id, how).await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.inner.resize_instance(id, to).await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.inner.reimage_instance(id, image).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.inner.console_output(id).await
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.inner.account_id().await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.inner.snapshot_image(id, request).await
    }

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        if self.mistake == Mistake::ImageNotDeleted {
            return Ok(());
        }
        self.inner.delete_image(image).await
    }
}
