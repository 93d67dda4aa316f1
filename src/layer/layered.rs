//! A provisioner with a layer around it.
//!
//! Owns that every call goes through the layer, with what the layer is shown of it. It decides
//! nothing.

use std::{num::NonZeroU32, slice};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{Layer, Request};
use crate::{
    BoxStream, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// `P` with the layer `L` around every call.
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

    /// What is below the layer.
    pub const fn inner(&self) -> &P {
        &self.inner
    }

    /// The layer.
    pub const fn layer(&self) -> &L {
        &self.layer
    }

    fn ask(&self, operation: Operation) -> Request<'_> {
        Request::new(&self.inner, operation)
    }

    fn ask_of<'a>(&'a self, operation: Operation, id: &'a InstanceId) -> Request<'a> {
        self.ask(operation).about(slice::from_ref(id))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner, L: Layer> InstanceProvisioner for Layered<P, L> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let ask = self.ask(Operation::LaunchInstance);
        let ask = ask.with_token(config.launch_token.as_ref());
        let send = |config: InstanceConfig| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.launch_instance(&config).await })
        };
        self.layer.launch(ask, config, send).await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let ask = self.ask_of(Operation::TerminateInstance, id);
        self.layer
            .call(ask, || self.inner.terminate_instance(id))
            .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let ask = self.ask_of(Operation::StopInstance, id);
        self.layer.call(ask, || self.inner.stop_instance(id)).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let ask = self.ask_of(Operation::StartInstance, id);
        self.layer.call(ask, || self.inner.start_instance(id)).await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let ask = self.ask_of(Operation::DescribeInstance, id);
        self.layer
            .call(ask, || self.inner.describe_instance(id))
            .await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let ask = self.ask(Operation::ListInstances);
        self.layer
            .call(ask, || self.inner.list_instances(filter))
            .await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let ask = self.ask(Operation::FindLaunch).with_token(Some(token));
        self.layer.call(ask, || self.inner.find_launch(token)).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let ask = self.ask(Operation::LaunchInstances).for_instances(count);
        let ask = ask.with_token(config.launch_token.as_ref());
        let send = |config: InstanceConfig| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.launch_instances(&config, count).await })
        };
        self.layer.launch(ask, config, send).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let ask = self.ask(Operation::TerminateInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.terminate_instances(&ids).await })
        };
        self.layer.batch(ask, send).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let ask = self.ask(Operation::StopInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.stop_instances(&ids).await })
        };
        self.layer.batch(ask, send).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let ask = self.ask(Operation::StartInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.start_instances(&ids).await })
        };
        self.layer.batch(ask, send).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let ask = self.ask(Operation::DescribeInstances).about(ids);
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.inner.describe_instances(&ids).await })
        };
        self.layer.batch(ask, send).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let ask = self.ask(Operation::StreamInstances);
        self.layer
            .stream(ask, || self.inner.stream_instances(filter))
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let ask = self.ask_of(Operation::UpdateTags, id);
        self.layer
            .call(ask, || self.inner.update_tags(id, change))
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let ask = self.ask_of(Operation::RebootInstance, id);
        self.layer
            .call(ask, || self.inner.reboot_instance(id, how))
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let ask = self.ask_of(Operation::ResizeInstance, id);
        self.layer
            .call(ask, || self.inner.resize_instance(id, to))
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let ask = self.ask_of(Operation::ReimageInstance, id);
        self.layer
            .call(ask, || self.inner.reimage_instance(id, image))
            .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let ask = self.ask_of(Operation::ConsoleOutput, id);
        self.layer.call(ask, || self.inner.console_output(id)).await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let ask = self.ask_of(Operation::ConsoleSession, id);
        self.layer
            .call(ask, || self.inner.console_session(id))
            .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let ask = self.ask_of(Operation::SnapshotImage, id);
        self.layer
            .call(ask, || self.inner.snapshot_image(id, request))
            .await
    }
}
