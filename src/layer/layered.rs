//! A provisioner with a layer around it.
//!
//! Owns which method of the layer handles which call, and the description that the layer gets. It
//! makes no decision of its own.

use std::{num::NonZeroU32, slice};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{Layer, Request};
use crate::{
    AccountId, BoxStream, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// The provisioner `P` with the layer `L` around every call.
///
/// | calls | method of the layer |
/// | --- | --- |
/// | `launch_instance`, `launch_instances` | [`launch`](Layer::launch) |
/// | `terminate_instances`, `stop_instances`, `start_instances`, `describe_instances` | [`batch`](Layer::batch) |
/// | `stream_instances` | [`stream`](Layer::stream) |
/// | all others | [`call`](Layer::call) |
/// | `capabilities` | none: those of the provisioner |
///
/// Layers nest: the outer one is called first. [`Stack`](super::Stack) nests all layers of this crate
/// in the recommended order.
///
/// ```
/// use fleetwright::{InstanceProvisioner, layer::{Layered, Retry, RetryPolicy}};
/// use fleetwright_memory::MemoryCloud;
///
/// let retry = Retry::new(RetryPolicy::default());
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), retry);
/// assert_eq!(provisioner.capabilities(), provisioner.inner().capabilities());
/// ```
#[derive(Clone, Debug)]
pub struct Layered<P, L> {
    inner: P,
    layer: L,
}

impl<P: InstanceProvisioner, L: Layer> Layered<P, L> {
    /// Puts `layer` around `inner`.
    pub const fn new(inner: P, layer: L) -> Self {
        Self { inner, layer }
    }

    /// Returns the provisioner below the layer.
    pub const fn inner(&self) -> &P {
        &self.inner
    }

    /// Returns the layer.
    pub const fn layer(&self) -> &L {
        &self.layer
    }

    fn request(&self, operation: Operation) -> Request<'_> {
        Request::new(&self.inner, operation)
    }

    fn request_for<'a>(&'a self, operation: Operation, id: &'a InstanceId) -> Request<'a> {
        self.request(operation).about(slice::from_ref(id))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner, L: Layer> InstanceProvisioner for Layered<P, L> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let request = self.request(Operation::LaunchInstance);
        let request = request.with_token(config.launch_token.as_ref());
        let send = |config: InstanceConfig| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.launch_instance(&config).await })
        };
        self.layer.launch(request, config, send).await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let request = self.request_for(Operation::TerminateInstance, id);
        self.layer
            .call(request, || self.inner.terminate_instance(id))
            .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let request = self.request_for(Operation::StopInstance, id);
        self.layer
            .call(request, || self.inner.stop_instance(id))
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let request = self.request_for(Operation::StartInstance, id);
        self.layer
            .call(request, || self.inner.start_instance(id))
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let request = self.request_for(Operation::DescribeInstance, id);
        self.layer
            .call(request, || self.inner.describe_instance(id))
            .await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let request = self.request(Operation::ListInstances);
        self.layer
            .call(request, || self.inner.list_instances(filter))
            .await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let request = self.request(Operation::FindLaunch).with_token(Some(token));
        self.layer
            .call(request, || self.inner.find_launch(token))
            .await
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        let request = self.request(Operation::AccountId);
        self.layer.call(request, || self.inner.account_id()).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let request = self.request(Operation::LaunchInstances).with_count(count);
        let request = request.with_token(config.launch_token.as_ref());
        let send = |config: InstanceConfig| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.launch_instances(&config, count).await })
        };
        self.layer.launch(request, config, send).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let request = self.request(Operation::TerminateInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.terminate_instances(&ids).await })
        };
        self.layer.batch(request, send).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let request = self.request(Operation::StopInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.stop_instances(&ids).await })
        };
        self.layer.batch(request, send).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let request = self.request(Operation::StartInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.start_instances(&ids).await })
        };
        self.layer.batch(request, send).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let request = self.request(Operation::DescribeInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.describe_instances(&ids).await })
        };
        self.layer.batch(request, send).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let request = self.request(Operation::StreamInstances);
        self.layer
            .stream(request, || self.inner.stream_instances(filter))
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let request = self.request_for(Operation::UpdateTags, id);
        self.layer
            .call(request, || self.inner.update_tags(id, change))
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let request = self.request_for(Operation::RebootInstance, id);
        self.layer
            .call(request, || self.inner.reboot_instance(id, how))
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let request = self.request_for(Operation::ResizeInstance, id);
        self.layer
            .call(request, || self.inner.resize_instance(id, to))
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let request = self.request_for(Operation::ReimageInstance, id);
        self.layer
            .call(request, || self.inner.reimage_instance(id, image))
            .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let request = self.request_for(Operation::ConsoleOutput, id);
        self.layer
            .call(request, || self.inner.console_output(id))
            .await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let request = self.request_for(Operation::ConsoleSession, id);
        self.layer
            .call(request, || self.inner.console_session(id))
            .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let call = self.request_for(Operation::SnapshotImage, id);
        self.layer
            .call(call, || self.inner.snapshot_image(id, request))
            .await
    }

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let request = self.request(Operation::DeleteImage);
        self.layer
            .call(request, || self.inner.delete_image(image))
            .await
    }
}
