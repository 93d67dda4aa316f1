//! A handle whose credentials are exchanged while it lives: it uses one of several accounts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Capabilities, ImageId, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType, LaunchRecord, LaunchToken,
    ListItem, Reboot, Result, SnapshotRequest, TagChange,
};

/// The account of a cloud whose records must be the same in every run.
pub fn fixed_account() -> AccountId {
    AccountId::new("memory/fixed").unwrap()
}

/// Passes every call to the account that is switched on, which is the first one at the start.
#[derive(Debug)]
pub struct SwitchedCloud {
    accounts: Vec<Arc<dyn InstanceProvisioner>>,
    current: AtomicUsize,
}

impl SwitchedCloud {
    /// Creates a handle on the first of these accounts. They must declare the same capabilities.
    pub fn new(accounts: Vec<Arc<dyn InstanceProvisioner>>) -> Arc<Self> {
        assert!(!accounts.is_empty(), "a handle needs an account");
        Arc::new(Self {
            accounts,
            current: AtomicUsize::new(0),
        })
    }

    /// Uses another account from the next call on.
    pub fn switch_to(&self, account: usize) {
        assert!(account < self.accounts.len(), "there is no such account");
        self.current.store(account, Ordering::SeqCst);
    }

    fn account(&self) -> &dyn InstanceProvisioner {
        &*self.accounts[self.current.load(Ordering::SeqCst)]
    }
}

#[async_trait]
impl InstanceProvisioner for SwitchedCloud {
    fn capabilities(&self) -> &Capabilities {
        self.account().capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.account().launch_instance(config).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.account().terminate_instance(id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.account().stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.account().start_instance(id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.account().describe_instance(id).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.account().describe_instances(ids).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.account().list_instances(filter).await
    }
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.account().stream_instances(filter)
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.account().find_launch(token).await
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.account().account_id().await
    }
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.account().update_tags(id, change).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.account().reboot_instance(id, how).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.account().resize_instance(id, to).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.account().reimage_instance(id, image).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.account().snapshot_image(id, request).await
    }
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.account().delete_image(image).await
    }
}
