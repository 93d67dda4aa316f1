//! Tags that a policy of the account adds to every instance, in addition to the caller's.
//!
//! Owns the handle that leaves the declared ones out of every result, so that clauses compare only
//! the tags that a caller has set. It changes nothing else, and no tag whose key is not declared.

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Reboot, Result, SnapshotRequest, TagChange,
};
use futures_util::StreamExt as _;

use crate::Harness;

/// Wraps a handle if the harness declares policy tags.
pub(crate) fn hide(
    inner: Arc<dyn InstanceProvisioner>,
    harness: &dyn Harness,
) -> Arc<dyn InstanceProvisioner> {
    let keys = harness.policy_tag_keys();
    if keys.is_empty() {
        inner
    } else {
        Arc::new(WithoutPolicyTags { inner, keys })
    }
}

/// A handle whose results lack the tags with `keys`.
#[derive(Debug)]
struct WithoutPolicyTags {
    inner: Arc<dyn InstanceProvisioner>,
    keys: Vec<String>,
}

impl WithoutPolicyTags {
    fn one(&self, mut info: InstanceInfo) -> InstanceInfo {
        for key in &self.keys {
            info.tags.remove(key);
        }
        info
    }

    fn all(&self, list: Vec<InstanceInfo>) -> Vec<InstanceInfo> {
        list.into_iter().map(|info| self.one(info)).collect()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for WithoutPolicyTags {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let info = self.inner.launch_instance(config).await?;
        Ok(self.one(info))
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.terminate_instance(id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let info = self.inner.start_instance(id).await?;
        Ok(self.one(info))
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.inner.describe_instance(id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let list = self.inner.list_instances(filter).await?;
        Ok(self.all(list))
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        Ok(match self.inner.find_launch(token).await? {
            LaunchRecord::Found(list) => LaunchRecord::Found(self.all(list)),
            LaunchRecord::Terminated(list) => LaunchRecord::Terminated(self.all(list)),
            LaunchRecord::NotFound => LaunchRecord::NotFound,
        })
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.inner.account_id().await
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let list = self.inner.launch_instances(config, count).await?;
        Ok(self.all(list))
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.terminate_instances(ids).await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.stop_instances(ids).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let results = self.inner.start_instances(ids).await.into_iter();
        results
            .map(|result| result.map(|info| self.one(info)))
            .collect()
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.inner.describe_instances(ids).await
    }
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let without = |item: Result<ListItem>| {
            item.map(|item| match item {
                ListItem::Instance(info) => ListItem::from(self.one(*info)),
                gap @ ListItem::Gap { .. } => gap,
            })
        };
        self.inner.stream_instances(filter).map(without).boxed()
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
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.inner.console_session(id).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.inner.snapshot_image(id, request).await
    }
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.inner.delete_image(image).await
    }
}
