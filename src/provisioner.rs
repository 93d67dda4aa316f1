//! The one trait.
//!
//! Owns what every backend promises. A backend implements seven calls and its declaration; the
//! batches, the stream and the optional verbs have bodies here that it overrides where its cloud
//! does better. Callers that repeat, limit or combine calls do it in layers, never in a backend.

use std::{fmt::Debug, num::NonZeroU32};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};

use crate::{
    BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, InstanceType, LaunchRecord,
    LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// How many calls a provided batch has under way at once.
const CONCURRENT_CALLS: usize = 8;

/// A cloud account and region in which instances live.
///
/// Object-safe: a fleet manager holds an `Arc<dyn InstanceProvisioner>` and never names a cloud.
///
/// # Contract
///
/// The whole text is `docs/contract.md`; the ids below are its clauses, and each has a test in
/// `fleetwright-contract-tests`.
///
/// - Every call but a launch without a token and a reboot may be repeated: it is idempotent
///   (CRASH-03).
/// - A call that fails says whether it [had an effect](crate::Effect). A lost reply or a server's
///   error is never reported as "not found" (ERRORS-06, ERRORS-08).
/// - A future that is dropped at any point, or a process killed at any point, leaves nothing that
///   the launch token or the tags cannot find again (CANCELLATION-01, CRASH-04, CRASH-05).
/// - Reads may lag behind changes for the declared
///   [consistency window](Capabilities::consistency_window), and not longer (DESCRIBE-06).
/// - No error, `Debug` or span shows user data, credentials or a console's content (ERRORS-10).
/// - Calls on different instances do not wait for each other (CONCURRENCY-01).
/// - An instance is only seen in states that the state machine allows (STATE-01, STATE-02).
#[async_trait]
pub trait InstanceProvisioner: Send + Sync + Debug {
    /// What this backend can do, as flags and numbers.
    ///
    /// # Contract
    /// The answer never changes during the life of a handle (TIME-04).
    fn capabilities(&self) -> &Capabilities;

    /// Launches an instance and answers at once, while it may still be booting.
    ///
    /// # Contract
    /// - The id is new, and never given to another instance. The state is pending or running
    ///   (LAUNCH-01, LAUNCH-02).
    /// - Everything in `config` is honoured, user data and tags to the byte, or the launch is
    ///   refused as [invalid](crate::ErrorKind::Invalid) and nothing is created (LAUNCH-04 to
    ///   LAUNCH-09, TAGS-01, TAGS-04). Tags are part of the creating call itself (TAGS-02).
    /// - The same [token](LaunchToken) with the same config is the same launch: it answers the same
    ///   instance as it is now. With another config it is a
    ///   [token conflict](crate::ErrorKind::TokenConflict). A launch that failed without effect
    ///   frees its token. Once its instance is terminating, a replay is refused as
    ///   [spent](crate::ErrorKind::TokenSpent) for the declared
    ///   [time](Capabilities::token_after_terminate) (TOKEN-01 to TOKEN-06).
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo>;

    /// Destroys an instance and everything that was launched with it: disk, network card, address.
    ///
    /// # Contract
    /// - Answers when the cloud has accepted it; the end is seen by [`describe_instance`].
    /// - Terminating again succeeds. An id that never existed is
    ///   [not found](crate::ErrorKind::NotFound). No other instance is touched (TERMINATE-02 to
    ///   TERMINATE-04).
    /// - Terminate wins against a stop or start that is under way (TERMINATE-06).
    /// - Nothing that was launched with it is left (LEAKS-01, LEAKS-04).
    ///
    /// [`describe_instance`]: Self::describe_instance
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()>;

    /// Stops an instance and releases its compute; storage, tags and id are kept.
    ///
    /// # Contract
    /// - Stopping a stopped or stopping instance succeeds and changes nothing (STOP-02).
    /// - While stopped, no public address is shown (STOP-03), and no machine is paid for (STOP-05).
    /// - A terminating or terminated one is [wrong state](crate::ErrorKind::WrongState) (STOP-06).
    async fn stop_instance(&self, id: &InstanceId) -> Result<()>;

    /// Starts a stopped instance and answers it with its addresses as they are now.
    ///
    /// # Contract
    /// - The id is the same; addresses may be new (START-01, START-03). Use those answered here or described later,
    ///   never cached ones.
    /// - Starting a running or pending instance succeeds and changes nothing (START-02).
    /// - A stopping one is a [conflict](crate::ErrorKind::Conflict) with a time to retry, or is
    ///   started once it has stopped (START-07).
    /// - A terminating or terminated one is [wrong state](crate::ErrorKind::WrongState) (START-04).
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo>;

    /// Tells the state of an instance as the cloud sees it.
    ///
    /// # Contract
    /// - A terminated instance stays describable for the declared
    ///   [time](Capabilities::terminated_visible) (DESCRIBE-04).
    /// - An unknown id is [not found](crate::ErrorKind::NotFound). Within the consistency window of
    ///   its own launches a handle waits instead of answering that (DESCRIBE-01, DESCRIBE-02,
    ///   DESCRIBE-05).
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus>;

    /// Lists every instance that `filter` selects, with all its details.
    ///
    /// # Contract
    /// - Complete, or an error of kind [incomplete](crate::ErrorKind::Incomplete) that names what
    ///   could not be seen; never silently partial (LIST-03, LIST-09, LIST-10).
    /// - [`InstanceFilter::matches`] defines what is selected (LIST-04 to LIST-08).
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>>;

    /// Tells what became of a launch by its token, without launching.
    ///
    /// # Contract
    /// Finds the launch from any handle and any process on the same account (TOKEN-09 to TOKEN-11). See
    /// [`LaunchRecord::NotFound`] for what its absence proves, and when.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord>;

    /// Launches `count` equal instances. With a token, they are one idempotent unit.
    ///
    /// # Contract
    /// - All or nothing, or in parts, as [declared](Capabilities::batch_launch). When a part was
    ///   launched, the error [carries it](crate::ProvisionError::survivors), and a replay of the
    ///   token completes it (BATCH-02, BATCH-04).
    ///
    /// The provided body launches one by one, with [item tokens](LaunchToken::item) derived from
    /// the config's, and stops at the first failure. [`find_launch`](Self::find_launch) then knows
    /// the items by their own tokens only; a backend that overrides this finds them by the batch's.
    /// [`find_launches`](crate::InstanceProvisionerExt::find_launches) looks in both ways.
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut launched = Vec::new();
        for index in 0..count.get() {
            let mut item = config.clone();
            item.launch_token = config.launch_token.as_ref().map(|token| token.item(index));
            item.batch = Some(count);
            match self.launch_instance(&item).await {
                Ok(info) => launched.push(info),
                Err(error) => {
                    launched.extend_from_slice(error.survivors());
                    return Err(error.with_survivors(launched));
                }
            }
        }
        Ok(launched)
    }

    /// [`terminate_instance`](Self::terminate_instance) for many: a result for each, in the order
    /// asked. One failure changes nothing for the others (BATCH-06).
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let calls: Vec<_> = ids.iter().map(|id| self.terminate_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// [`stop_instance`](Self::stop_instance) for many: a result for each, in the order asked.
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let calls: Vec<_> = ids.iter().map(|id| self.stop_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// [`start_instance`](Self::start_instance) for many: a result for each, in the order asked.
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let calls: Vec<_> = ids.iter().map(|id| self.start_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// [`describe_instance`](Self::describe_instance) for many: a result for each, in the order
    /// asked. One missing instance changes nothing for the others (BATCH-05).
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let calls: Vec<_> = ids.iter().map(|id| self.describe_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// [`list_instances`](Self::list_instances) as a stream, page by page, in which a part that
    /// could not be seen is an explicit [gap](ListItem::Gap).
    ///
    /// # Contract
    /// Outside the gaps the stream is complete (LIST-10, LIST-13). An `Err` ends it.
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let answer = stream::once(self.list_instances(filter));
        let items = |answer: Result<Vec<InstanceInfo>>| match answer {
            Ok(list) => stream::iter(list.into_iter().map(|info| Ok(ListItem::from(info)))).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        answer.flat_map(items).boxed()
    }

    /// Changes tags of an instance, all of `change` or nothing. Optional (VERBS-01).
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let _ = (id, change);
        Err(unsupported(self, Operation::UpdateTags))
    }

    /// Reboots a running instance; id, disk and addresses are kept. Optional (VERBS-02).
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let _ = (id, how);
        Err(unsupported(self, Operation::RebootInstance))
    }

    /// Changes the type of a stopped instance; id and disk are kept. Optional (VERBS-03).
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let _ = (id, to);
        Err(unsupported(self, Operation::ResizeInstance))
    }

    /// Puts a new image on a running or stopped instance; id and addresses are kept, and **what was
    /// on the root disk is lost**. A running one boots again. Optional (VERBS-04).
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let _ = (id, image);
        Err(unsupported(self, Operation::ReimageInstance))
    }

    /// Reads what the instance wrote to its console. Optional (VERBS-05).
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleOutput))
    }

    /// Opens a console of a running instance. Optional (VERBS-06).
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleSession))
    }

    /// Makes an image of a running or stopped instance. Optional (VERBS-07).
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let _ = (id, request);
        Err(unsupported(self, Operation::SnapshotImage))
    }
}

/// The refusal of an optional verb that is not declared.
fn unsupported<P: InstanceProvisioner + ?Sized>(
    backend: &P,
    operation: Operation,
) -> crate::ProvisionError {
    Call::new(backend.capabilities().provider.as_str(), operation).unsupported()
}
