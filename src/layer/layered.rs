//! A provisioner with a layer around it.
//!
//! Owns which method of the layer handles which call, and the description that the layer gets. It
//! makes no decision of its own.

use std::{
    borrow::{Borrow as _, Cow},
    num::NonZeroU32,
    slice,
    sync::Arc,
};

use futures_util::future::BoxFuture;

use super::{Layer, Request};
use crate::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest,
    TagChange, forward::forwarding_methods,
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
    /// The backend's name, which every request shares.
    provider: Arc<str>,
}

impl<P: InstanceProvisioner, L: Layer> Layered<P, L> {
    /// Puts `layer` around `inner`.
    pub fn new(inner: P, layer: L) -> Self {
        let provider = inner.capabilities().provider.as_str().into();
        Self {
            inner,
            layer,
            provider,
        }
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
        let call = Call::new(Arc::clone(&self.provider), operation);
        Request::new(&self.inner, call)
    }

    fn request_for<'a>(&'a self, operation: Operation, id: &'a InstanceId) -> Request<'a> {
        self.request(operation).about(slice::from_ref(id))
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner, L: Layer> InstanceProvisioner for Layered<P, L> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let request = self.request(Operation::StreamInstances);
        self.layer
            .stream(request, || self.inner.stream_instances(filter))
    }

    forwarding_methods! {
        fn launch_instance<'a>(this, config: &'a InstanceConfig) -> Result<InstanceInfo> {
            let request = this.request(Operation::LaunchInstance);
            let request = request.with_token(config.launch_token.as_ref());
            this.layer.launch(request, config, move |config| {
                send_with(&this.inner, config, move |inner, config| inner.launch_instance(config))
            })
        }
        fn terminate_instance<'a>(this, id: &'a InstanceId) -> Result<()> {
            let request = this.request_for(Operation::TerminateInstance, id);
            this.layer.call(request, move || this.inner.terminate_instance(id))
        }
        fn stop_instance<'a>(this, id: &'a InstanceId) -> Result<()> {
            let request = this.request_for(Operation::StopInstance, id);
            this.layer.call(request, move || this.inner.stop_instance(id))
        }
        fn start_instance<'a>(this, id: &'a InstanceId) -> Result<InstanceInfo> {
            let request = this.request_for(Operation::StartInstance, id);
            this.layer.call(request, move || this.inner.start_instance(id))
        }
        fn describe_instance<'a>(this, id: &'a InstanceId) -> Result<InstanceStatus> {
            let request = this.request_for(Operation::DescribeInstance, id);
            this.layer.call(request, move || this.inner.describe_instance(id))
        }
        fn list_instances<'a>(this, filter: &'a InstanceFilter) -> Result<Vec<InstanceInfo>> {
            let request = this.request(Operation::ListInstances);
            this.layer.call(request, move || this.inner.list_instances(filter))
        }
        fn find_launch<'a>(this, token: &'a LaunchToken) -> Result<LaunchRecord> {
            let request = this.request(Operation::FindLaunch).with_token(Some(token));
            this.layer.call(request, move || this.inner.find_launch(token))
        }
        fn account_id<>(this) -> Result<Option<AccountId>> {
            let request = this.request(Operation::AccountId);
            this.layer.call(request, move || this.inner.account_id())
        }
        fn launch_instances<'a>(this, config: &'a InstanceConfig, count: NonZeroU32) -> Result<Vec<InstanceInfo>> {
            let request = this.request(Operation::LaunchInstances).with_count(count);
            let request = request.with_token(config.launch_token.as_ref());
            this.layer.launch(request, config, move |config| {
                send_with(&this.inner, config, move |inner, config| inner.launch_instances(config, count))
            })
        }
        fn terminate_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<()>> {
            let request = this.request(Operation::TerminateInstances).about(ids);
            this.layer.batch(request, move |ids| {
                send_with(&this.inner, ids, |inner, ids| inner.terminate_instances(ids))
            })
        }
        fn stop_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<()>> {
            let request = this.request(Operation::StopInstances).about(ids);
            this.layer.batch(request, move |ids| {
                send_with(&this.inner, ids, |inner, ids| inner.stop_instances(ids))
            })
        }
        fn start_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<InstanceInfo>> {
            let request = this.request(Operation::StartInstances).about(ids);
            this.layer.batch(request, move |ids| {
                send_with(&this.inner, ids, |inner, ids| inner.start_instances(ids))
            })
        }
        fn describe_instances<'a>(this, ids: &'a [InstanceId]) -> Vec<Result<InstanceStatus>> {
            let request = this.request(Operation::DescribeInstances).about(ids);
            this.layer.batch(request, move |ids| {
                send_with(&this.inner, ids, |inner, ids| inner.describe_instances(ids))
            })
        }
        fn update_tags<'a, 'b>(this, id: &'a InstanceId, change: &'b TagChange) -> Result<()> {
            let request = this.request_for(Operation::UpdateTags, id);
            this.layer.call(request, move || this.inner.update_tags(id, change))
        }
        fn reboot_instance<'a>(this, id: &'a InstanceId, how: Reboot) -> Result<()> {
            let request = this.request_for(Operation::RebootInstance, id);
            this.layer.call(request, move || this.inner.reboot_instance(id, how))
        }
        fn resize_instance<'a, 'b>(this, id: &'a InstanceId, to: &'b InstanceType) -> Result<()> {
            let request = this.request_for(Operation::ResizeInstance, id);
            this.layer.call(request, move || this.inner.resize_instance(id, to))
        }
        fn reimage_instance<'a, 'b>(this, id: &'a InstanceId, image: &'b ImageId) -> Result<()> {
            let request = this.request_for(Operation::ReimageInstance, id);
            this.layer.call(request, move || this.inner.reimage_instance(id, image))
        }
        fn console_output<'a>(this, id: &'a InstanceId) -> Result<ConsoleOutput> {
            let request = this.request_for(Operation::ConsoleOutput, id);
            this.layer.call(request, move || this.inner.console_output(id))
        }
        fn console_session<'a>(this, id: &'a InstanceId) -> Result<ConsoleSession> {
            let request = this.request_for(Operation::ConsoleSession, id);
            this.layer.call(request, move || this.inner.console_session(id))
        }
        fn snapshot_image<'a, 'b>(this, id: &'a InstanceId, request: &'b SnapshotRequest) -> Result<ImageId> {
            let call = this.request_for(Operation::SnapshotImage, id);
            this.layer.call(call, move || this.inner.snapshot_image(id, request))
        }
        fn delete_image<'a>(this, image: &'a ImageId) -> Result<()> {
            let request = this.request(Operation::DeleteImage);
            this.layer.call(request, move || this.inner.delete_image(image))
        }
    }
}

/// Sends a call with an argument that a layer passed on, or with one of its own, which the future then owns.
fn send_with<'a, P: Sync, A: ToOwned + Sync + ?Sized, T>(
    inner: &'a P,
    argument: Cow<'a, A>,
    call: impl for<'c> Fn(&'c P, &'c A) -> BoxFuture<'c, T> + Send + 'a,
) -> BoxFuture<'a, T>
where
    A::Owned: Send + Sync,
{
    match argument {
        Cow::Borrowed(argument) => call(inner, argument),
        Cow::Owned(argument) => Box::pin(async move { call(inner, argument.borrow()).await }),
    }
}
