//! A provisioner that implements only `stream_instances`.

use std::sync::Mutex;

use fleetwright::{
    BoxStream, Capabilities, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, ListItem, Result, TagLimits,
    async_trait,
};
use futures_util::{Stream, StreamExt as _};

pub(crate) struct StreamOnly {
    capabilities: Capabilities,
    items: Mutex<Option<BoxStream<'static, Result<ListItem>>>>,
}

impl StreamOnly {
    /// Streams `items`, once.
    pub(crate) fn new(items: impl Stream<Item = Result<ListItem>> + Send + 'static) -> Self {
        Self {
            capabilities: Capabilities::new("stream-only", TagLimits::new(9, 9, 9), 9),
            items: Mutex::new(Some(items.boxed())),
        }
    }
}

impl std::fmt::Debug for StreamOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamOnly")
    }
}

#[async_trait]
impl InstanceProvisioner for StreamOnly {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn stream_instances<'a>(&'a self, _: &'a InstanceFilter) -> BoxStream<'a, Result<ListItem>> {
        self.items.lock().unwrap().take().unwrap()
    }
    async fn describe_instance(&self, _: &InstanceId) -> Result<InstanceStatus> {
        unreachable!()
    }
    async fn terminate_instance(&self, _: &InstanceId) -> Result<()> {
        unreachable!()
    }
    async fn stop_instance(&self, _: &InstanceId) -> Result<()> {
        unreachable!()
    }
    async fn start_instance(&self, _: &InstanceId) -> Result<InstanceInfo> {
        unreachable!()
    }
    async fn launch_instance(&self, _: &InstanceConfig) -> Result<InstanceInfo> {
        unreachable!()
    }
    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        unreachable!()
    }
    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        unreachable!()
    }
}
