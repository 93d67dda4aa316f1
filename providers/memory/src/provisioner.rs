//! The implementation of [`InstanceProvisioner`] on the simulated cloud.
//!
//! Owns the sequence of native calls for each method, as a provider for a real cloud does. What a
//! call does is in the [engine](crate::engine); how it can fail is in the [wire](crate::wire).

use std::{collections::BTreeSet, fmt, num::NonZeroU32};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, OptionalVerb, ProvisionError,
    Reboot, Result, Scope, SnapshotRequest, TagChange,
};
use fleetwright_provider_support::{RecentLaunches, collect_complete};
use futures_util::{StreamExt as _, future::BoxFuture, stream};

use crate::{
    convert,
    engine::{LaunchOutcome, LaunchRequest, World},
    error::NativeError,
    wire::{RequestContext, Wire, WireCall},
};

/// A handle on a [`MemoryCloud`](crate::MemoryCloud) account.
///
/// Open it with [`MemoryCloud::provisioner`](crate::MemoryCloud::provisioner). The only state of a
/// handle is the list of its own recent launches: within the consistency window, a describe of one
/// of them retries "not found". Everything else belongs to the account.
///
/// Errors carry the cloud's error code as native code and a request id such as `req-7`.
///
/// # Cancellation
///
/// Every future can be dropped at any time. A call that was dropped before the cloud handled it has
/// no effect; a launch can be completed by repeating it with the same token.
pub struct MemoryProvisioner {
    wire: Wire,
    /// The launches of this handle within the consistency window.
    launched: RecentLaunches,
}

impl MemoryProvisioner {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            launched: RecentLaunches::new(),
        }
    }

    /// Launches with one call, and reports the survivors of a partial batch with the error.
    async fn launch(
        &self,
        operation: Operation,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let work = |world: &mut World, context: &RequestContext| {
            let request = LaunchRequest {
                config,
                count,
                boot_failure: context.boot_failure.clone(),
            };
            let LaunchOutcome { views, error } = world.launch(&request)?;
            let native = context.native.as_deref();
            let infos: Vec<_> = views
                .into_iter()
                .map(|view| convert::info(view, native))
                .collect();
            let error = error.map(|error| self.to_error(operation, error, context));
            Ok((infos, error))
        };
        let (infos, error) = self.wire.call(operation, WireCall::Launch, work).await?;
        let window = self.capabilities().consistency_window;
        self.launched.record(&infos, window);
        match error {
            None => Ok(infos),
            Some(error) => Err(error.with_survivors(infos)),
        }
    }

    /// Describes `ids` with one call for each batch, and retries those of its own recent launches
    /// that are not visible yet.
    async fn describe(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.describe_once(operation, &ids).await })
        };
        self.launched
            .retry_not_found(ids, self.capabilities(), once)
            .await
    }

    /// Describes `ids` with one call for each batch, without retries.
    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let one = |world: &mut World, context: &RequestContext, id: &InstanceId| {
            let native = context.native.as_deref();
            world.describe(id, context.lag, |record, version| {
                convert::status(id, record, version, native)
            })
        };
        self.each(operation, WireCall::Describe, ids, one).await
    }

    /// Runs `one` for each of `ids`, with one call for each batch. Returns one result for each id, in
    /// order; if a call fails, its error is the result of every id in that batch.
    async fn each<T: Send>(
        &self,
        operation: Operation,
        wire_call: WireCall,
        ids: &[InstanceId],
        one: impl Fn(&mut World, &RequestContext, &InstanceId) -> Result<T, NativeError> + Send + Sync,
    ) -> Vec<Result<T>> {
        let mut results = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.capabilities().batch_size.get()) {
            let work = |world: &mut World, context: &RequestContext| {
                let handle =
                    |id| one(world, context, id).map_err(|e| self.to_error(operation, e, context));
                Ok(batch.iter().map(handle).collect::<Vec<_>>())
            };
            match self.wire.call(operation, wire_call, work).await {
                Ok(batch_results) => results.extend(batch_results),
                Err(error) => results.extend(batch.iter().map(|_| Err(error.clone()))),
            }
        }
        results
    }

    /// Converts a native error of one item of a call.
    fn to_error(
        &self,
        operation: Operation,
        error: NativeError,
        context: &RequestContext,
    ) -> ProvisionError {
        let error = error.into_error(&self.call(operation));
        error.with_request_id(context.request.as_str())
    }

    /// Sends the call of an optional verb, or fails without a call if the verb is not declared.
    async fn verb<T>(
        &self,
        verb: OptionalVerb,
        wire_call: WireCall,
        work: impl FnOnce(&mut World, &RequestContext) -> Result<T, NativeError> + Send,
    ) -> Result<T> {
        let operation = Operation::from(verb);
        if !self.capabilities().supports(verb) {
            return Err(self.call(operation).unsupported());
        }
        self.wire.call(operation, wire_call, work).await
    }

    /// Streams the pages of a list; at the end, a gap for each zone that was unreachable during any
    /// of them.
    fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let page = move |position: Next| async move {
            let (after, known_gaps) = match position {
                Next::End => return None,
                Next::Page(after, gaps) => (after, gaps),
            };
            let page = self.page(operation, filter, after, known_gaps).await;
            Some(match page {
                Ok((items, next)) => (items.into_iter().map(Ok).collect::<Vec<_>>(), next),
                Err(error) => (vec![Err(error)], Next::End),
            })
        };
        let pages = stream::unfold(Next::Page(None, BTreeSet::new()), page);
        pages.flat_map(stream::iter).fuse().boxed()
    }

    /// Reads one page, and returns its items and the position of the next page.
    async fn page(
        &self,
        operation: Operation,
        filter: &InstanceFilter,
        after: Option<u64>,
        mut gaps: BTreeSet<fleetwright::Zone>,
    ) -> Result<(Vec<ListItem>, Next)> {
        let work = |world: &mut World, context: &RequestContext| {
            let page = world.page(filter, after, context.lag);
            let native = context.native.as_deref();
            let infos = page.views.into_iter().map(|v| convert::info(v, native));
            // An injected unknown state may differ from the state by which the cloud selected.
            let infos: Vec<_> = infos.filter(|info| filter.matches(info)).collect();
            Ok((infos, page.next, world.zones_down()))
        };
        let (infos, next, down) = self.wire.call(operation, WireCall::ListPage, work).await?;
        gaps.extend(down);
        let mut items: Vec<_> = infos.into_iter().map(ListItem::from).collect();
        if next.is_some() {
            return Ok((items, Next::Page(next, gaps)));
        }
        for zone in gaps {
            let message = "the zone is unreachable; its instances are missing from the list";
            let scope = Scope::zone(zone);
            let error = self.call(operation).unavailable(Effect::None, message);
            items.push(ListItem::Gap {
                error: error.with_scope(scope.clone()),
                scope,
            });
        }
        Ok((items, Next::End))
    }

    fn call(&self, operation: Operation) -> Call {
        Call::new(self.capabilities().provider.as_str(), operation)
    }
}

impl fmt::Debug for MemoryProvisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryProvisioner")
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

/// The position in a list: the next page with the unreachable zones so far, or the end.
enum Next {
    /// The last instance so far, and the zones that were unreachable.
    Page(Option<u64>, BTreeSet<fleetwright::Zone>),
    End,
}

/// Returns the result of a batch of one.
fn only<T>(mut results: Vec<Result<T>>, call: &Call) -> Result<T> {
    let missing = || Err(call.unexpected(Effect::Unknown, "the response of the cloud is empty"));
    results.pop().unwrap_or_else(missing)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for MemoryProvisioner {
    fn capabilities(&self) -> &Capabilities {
        &self.wire.shared.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let operation = Operation::LaunchInstance;
        let mut infos = self.launch(operation, config, NonZeroU32::MIN).await?;
        let missing = "the response of the launch contains no instance";
        infos
            .pop()
            .ok_or_else(|| self.call(operation).unexpected(Effect::Unknown, missing))
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        let work =
            |world: &mut World, _: &RequestContext| world.terminate(id, "terminated on request");
        self.wire.call(operation, WireCall::Terminate, work).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let work = |world: &mut World, _: &RequestContext| world.stop(id, "stopped on request");
        self.wire
            .call(Operation::StopInstance, WireCall::Stop, work)
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let work = |world: &mut World, context: &RequestContext| {
            Ok(convert::info(world.start(id)?, context.native.as_deref()))
        };
        self.wire
            .call(Operation::StartInstance, WireCall::Start, work)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let operation = Operation::DescribeInstance;
        only(
            self.describe(operation, std::slice::from_ref(id)).await,
            &self.call(operation),
        )
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::ListInstances;
        collect_complete(&self.call(operation), self.pages(operation, filter)).await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let work = |world: &mut World, context: &RequestContext| {
            let views = world.find_launch(token, context.lag)?;
            Ok(convert::launch_record(views, context.native.as_deref()))
        };
        self.wire
            .call(Operation::FindLaunch, WireCall::FindLaunch, work)
            .await
    }

    /// The id of the cloud, without a call: a handle belongs to one cloud.
    async fn account_id(&self) -> Result<Option<AccountId>> {
        Ok(Some(self.wire.shared.account.clone()))
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launch(Operation::LaunchInstances, config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let one = |world: &mut World, _: &RequestContext, id: &InstanceId| {
            world.terminate(id, "terminated on request")
        };
        self.each(Operation::TerminateInstances, WireCall::Terminate, ids, one)
            .await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let one = |world: &mut World, _: &RequestContext, id: &InstanceId| {
            world.stop(id, "stopped on request")
        };
        self.each(Operation::StopInstances, WireCall::Stop, ids, one)
            .await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let one = |world: &mut World, context: &RequestContext, id: &InstanceId| {
            Ok(convert::info(world.start(id)?, context.native.as_deref()))
        };
        self.each(Operation::StartInstances, WireCall::Start, ids, one)
            .await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.describe(Operation::DescribeInstances, ids).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.pages(Operation::StreamInstances, filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let work = |world: &mut World, _: &RequestContext| world.update_tags(id, change);
        self.verb(OptionalVerb::UpdateTags, WireCall::UpdateTags, work)
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let mode = match how {
            Reboot::Soft => "soft",
            Reboot::Hard => "hard",
        };
        let work = |world: &mut World, _: &RequestContext| world.reboot(id, mode);
        self.verb(OptionalVerb::RebootInstance, WireCall::Reboot, work)
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let work = |world: &mut World, _: &RequestContext| world.resize(id, to);
        self.verb(OptionalVerb::ResizeInstance, WireCall::Resize, work)
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let work = |world: &mut World, _: &RequestContext| world.reimage(id, image);
        self.verb(OptionalVerb::ReimageInstance, WireCall::Reimage, work)
            .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let work = |world: &mut World, _: &RequestContext| world.console_output(id);
        self.verb(OptionalVerb::ConsoleOutput, WireCall::ConsoleOutput, work)
            .await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let work = |world: &mut World, _: &RequestContext| world.console_session(id);
        self.verb(OptionalVerb::ConsoleSession, WireCall::ConsoleSession, work)
            .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let work = |world: &mut World, _: &RequestContext| world.snapshot(id, request);
        self.verb(OptionalVerb::SnapshotImage, WireCall::Snapshot, work)
            .await
    }

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let work = |world: &mut World, _: &RequestContext| world.delete_image(image);
        self.verb(OptionalVerb::DeleteImage, WireCall::DeleteImage, work)
            .await
    }
}
