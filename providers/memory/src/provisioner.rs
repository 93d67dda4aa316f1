//! The trait on the simulated cloud: only the order of calls.

use std::{collections::BTreeSet, fmt, num::NonZeroU32};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, OptionalVerb, ProvisionError, Reboot, Result,
    Scope, SnapshotRequest, TagChange,
};
use fleetwright_provider_support::{RecentLaunches, collect_complete};
use futures_util::{StreamExt as _, future::BoxFuture, stream};

use crate::{
    convert,
    engine::{Launched, Order, World},
    error::Refusal,
    wire::{Served, Wire, WireCall},
};

/// A handle on a [`MemoryCloud`](crate::MemoryCloud) account.
pub struct MemoryProvisioner {
    wire: Wire,
    launched: RecentLaunches,
}

impl MemoryProvisioner {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            launched: RecentLaunches::new(),
        }
    }

    async fn launch(
        &self,
        operation: Operation,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let work = |world: &mut World, served: &Served| {
            let order = Order {
                config,
                count,
                doom: served.doom.clone(),
            };
            let Launched { views, refusal } = world.launch(&order)?;
            let native = served.native.as_deref();
            let infos: Vec<_> = views
                .into_iter()
                .map(|view| convert::info(view, native))
                .collect();
            let error = refusal.map(|no| self.refused(operation, no, served));
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

    /// Describes many with one call for each batch, and asks again for own launches that are not
    /// visible yet.
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

    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let one = |world: &mut World, served: &Served, id: &InstanceId| {
            let view = world.describe(id, served.lag)?;
            Ok(InstanceStatus::from(convert::info(
                view,
                served.native.as_deref(),
            )))
        };
        self.each(operation, WireCall::Describe, ids, one).await
    }

    /// Does `one` for each of `ids`, with one call for each batch and a result for each item.
    async fn each<T: Send>(
        &self,
        operation: Operation,
        wire_call: WireCall,
        ids: &[InstanceId],
        one: impl Fn(&mut World, &Served, &InstanceId) -> Result<T, Refusal> + Send + Sync,
    ) -> Vec<Result<T>> {
        let mut answers = Vec::with_capacity(ids.len());
        for batch in ids.chunks(self.capabilities().batch_size.get()) {
            let work = |world: &mut World, served: &Served| {
                let answer =
                    |id| one(world, served, id).map_err(|no| self.refused(operation, no, served));
                Ok(batch.iter().map(answer).collect::<Vec<_>>())
            };
            match self.wire.call(operation, wire_call, work).await {
                Ok(results) => answers.extend(results),
                Err(error) => answers.extend(batch.iter().map(|_| Err(error.clone()))),
            }
        }
        answers
    }

    /// The error of a part of a call that was served.
    fn refused(&self, operation: Operation, refusal: Refusal, served: &Served) -> ProvisionError {
        let window = self.capabilities().consistency_window;
        let error = refusal.into_error(&self.call(operation), window);
        error.with_request_id(served.request.as_str())
    }

    /// Makes the call of an optional verb, if it is declared.
    async fn verb<T>(
        &self,
        verb: OptionalVerb,
        wire_call: WireCall,
        work: impl FnOnce(&mut World, &Served) -> Result<T, Refusal> + Send,
    ) -> Result<T> {
        let operation = Operation::from(verb);
        if !self.capabilities().supports(verb) {
            return Err(self.call(operation).unsupported());
        }
        self.wire.call(operation, wire_call, work).await
    }

    /// The pages of a list, and at its end a gap for each zone that could not be seen.
    fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let page = move |at: Next| async move {
            let (after, known_gaps) = match at {
                Next::End => return None,
                Next::Page(after, gaps) => (after, gaps),
            };
            let answer = self.page(operation, filter, after, known_gaps).await;
            Some(match answer {
                Ok((items, next)) => (items.into_iter().map(Ok).collect::<Vec<_>>(), next),
                Err(error) => (vec![Err(error)], Next::End),
            })
        };
        let pages = stream::unfold(Next::Page(None, BTreeSet::new()), page);
        pages.flat_map(stream::iter).fuse().boxed()
    }

    async fn page(
        &self,
        operation: Operation,
        filter: &InstanceFilter,
        after: Option<u64>,
        mut gaps: BTreeSet<fleetwright::Zone>,
    ) -> Result<(Vec<ListItem>, Next)> {
        let work = |world: &mut World, served: &Served| {
            let page = world.page(filter, after, served.lag);
            let native = served.native.as_deref();
            let infos = page.views.into_iter().map(|v| convert::info(v, native));
            // What the cloud selected by its own state may be shown in one that nobody knows.
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
            let message = "the zone cannot be reached; what is there was not listed";
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

/// Where a list goes on, and the zones that it could not see so far.
enum Next {
    Page(Option<u64>, BTreeSet<fleetwright::Zone>),
    End,
}

/// The answer of a batch of one.
fn only<T>(mut answers: Vec<Result<T>>, call: &Call) -> Result<T> {
    let nothing = || Err(call.unexpected(Effect::Unknown, "the cloud answered nothing"));
    answers.pop().unwrap_or_else(nothing)
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
        let nothing = "the cloud answered a launch without an instance";
        infos
            .pop()
            .ok_or_else(|| self.call(operation).unexpected(Effect::Unknown, nothing))
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        let work = |world: &mut World, _: &Served| world.terminate(id, "terminated on request");
        self.wire.call(operation, WireCall::Terminate, work).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let work = |world: &mut World, _: &Served| world.stop(id, "stopped on request");
        self.wire
            .call(Operation::StopInstance, WireCall::Stop, work)
            .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let work = |world: &mut World, served: &Served| {
            Ok(convert::info(world.start(id)?, served.native.as_deref()))
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
        let work = |world: &mut World, served: &Served| {
            let views = world.find_launch(token, served.lag)?;
            Ok(convert::launch_record(views, served.native.as_deref()))
        };
        self.wire
            .call(Operation::FindLaunch, WireCall::FindLaunch, work)
            .await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launch(Operation::LaunchInstances, config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let one = |world: &mut World, _: &Served, id: &InstanceId| {
            world.terminate(id, "terminated on request")
        };
        self.each(Operation::TerminateInstances, WireCall::Terminate, ids, one)
            .await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let one =
            |world: &mut World, _: &Served, id: &InstanceId| world.stop(id, "stopped on request");
        self.each(Operation::StopInstances, WireCall::Stop, ids, one)
            .await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let one = |world: &mut World, served: &Served, id: &InstanceId| {
            Ok(convert::info(world.start(id)?, served.native.as_deref()))
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
        let work = |world: &mut World, _: &Served| world.update_tags(id, change);
        self.verb(OptionalVerb::UpdateTags, WireCall::UpdateTags, work)
            .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let how = match how {
            Reboot::Soft => "soft",
            Reboot::Hard => "hard",
        };
        let work = |world: &mut World, _: &Served| world.reboot(id, how);
        self.verb(OptionalVerb::RebootInstance, WireCall::Reboot, work)
            .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let work = |world: &mut World, _: &Served| world.resize(id, to);
        self.verb(OptionalVerb::ResizeInstance, WireCall::Resize, work)
            .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let work = |world: &mut World, _: &Served| world.reimage(id, image);
        self.verb(OptionalVerb::ReimageInstance, WireCall::Reimage, work)
            .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let work = |world: &mut World, _: &Served| world.console_output(id);
        self.verb(OptionalVerb::ConsoleOutput, WireCall::ConsoleOutput, work)
            .await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let work = |world: &mut World, _: &Served| world.console_session(id);
        self.verb(OptionalVerb::ConsoleSession, WireCall::ConsoleSession, work)
            .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let work = |world: &mut World, _: &Served| world.snapshot(id, request);
        self.verb(OptionalVerb::SnapshotImage, WireCall::Snapshot, work)
            .await
    }
}
