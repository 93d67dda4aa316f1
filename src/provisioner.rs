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
    LaunchToken, Operation, Reboot, Result, Seen, SnapshotRequest, TagChange,
};

/// How many calls a provided batch has under way at once.
const CONCURRENT_CALLS: usize = 8;

/// A cloud account and region in which instances live.
///
/// Object-safe: a fleet manager holds an `Arc<dyn InstanceProvisioner>` and never names a cloud.
///
/// # Contract
///
/// - Every call but a launch without a token may be repeated: it is idempotent.
/// - A call that fails says whether it [had an effect](crate::Effect). A lost reply or a server's
///   error is never reported as "not found".
/// - A future that is dropped at any point, or a process killed at any point, leaves nothing that
///   the launch token or the tags cannot find again.
/// - Reads may lag behind changes for the declared
///   [consistency window](Capabilities::consistency_window), and not longer.
/// - No error, `Debug` or span shows user data, credentials or a console's content.
#[async_trait]
pub trait InstanceProvisioner: Send + Sync + Debug {
    /// What this backend can do, as flags and numbers.
    ///
    /// # Contract
    /// The answer never changes during the life of a handle.
    fn capabilities(&self) -> &Capabilities;

    /// Launches an instance and answers at once, while it may still be booting.
    ///
    /// # Contract
    /// - The id is new, and never given to another instance. The state is pending or running.
    /// - Everything in `config` is honoured, user data and tags to the byte, or the launch is
    ///   refused as [invalid](crate::ErrorKind::Invalid) and nothing is created. Tags are part of
    ///   the creating call itself.
    /// - The same [token](LaunchToken) with the same config is the same launch: it answers the same
    ///   instance as it is now. With another config it is a
    ///   [token conflict](crate::ErrorKind::TokenConflict). A launch that failed without effect
    ///   frees its token. Once its instance is terminating, a replay is refused as
    ///   [spent](crate::ErrorKind::TokenSpent) for the declared
    ///   [time](Capabilities::token_after_terminate).
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo>;

    /// Destroys an instance and everything that was launched with it: disk, network card, address.
    ///
    /// # Contract
    /// - Answers when the cloud has accepted it; the end is seen by [`describe_instance`].
    /// - Terminating again succeeds. An id that never existed is
    ///   [not found](crate::ErrorKind::NotFound). No other instance is touched.
    /// - Terminate wins against a stop or start that is under way.
    ///
    /// [`describe_instance`]: Self::describe_instance
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()>;

    /// Stops an instance and releases its compute; storage, tags and id are kept.
    ///
    /// # Contract
    /// - Stopping a stopped or stopping instance succeeds and changes nothing.
    /// - While stopped, no public address is shown.
    /// - A terminating or terminated one is [wrong state](crate::ErrorKind::WrongState).
    async fn stop_instance(&self, id: &InstanceId) -> Result<()>;

    /// Starts a stopped instance and answers it with its addresses as they are now.
    ///
    /// # Contract
    /// - The id is the same; addresses may be new. Use those answered here or described later,
    ///   never cached ones.
    /// - Starting a running or pending instance succeeds and changes nothing.
    /// - A terminating or terminated one is [wrong state](crate::ErrorKind::WrongState).
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo>;

    /// Tells the state of an instance as the cloud sees it.
    ///
    /// # Contract
    /// - A terminated instance stays describable for the declared
    ///   [time](Capabilities::terminated_visible).
    /// - An unknown id is [not found](crate::ErrorKind::NotFound). Within the consistency window of
    ///   its own launches a handle waits instead of answering that.
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus>;

    /// Lists every instance that `filter` selects, with all its details.
    ///
    /// # Contract
    /// - Complete, or an error of kind [incomplete](crate::ErrorKind::Incomplete) that names what
    ///   could not be seen; never silently partial.
    /// - [`InstanceFilter::matches`] defines what is selected.
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>>;

    /// Tells what became of a launch by its token, without launching.
    ///
    /// # Contract
    /// Finds the launch from any handle and any process on the same account. See
    /// [`LaunchRecord::NotSeen`] for what its absence proves, and when.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord>;

    /// Launches `count` equal instances. With a token, they are one idempotent unit.
    ///
    /// # Contract
    /// - All or nothing, or in parts, as [declared](Capabilities::batch_launch). When a part was
    ///   launched, the error [carries it](crate::ProvisionError::survivors), and a replay of the
    ///   token completes it.
    ///
    /// The provided body launches one by one, with [item tokens](LaunchToken::item) derived from
    /// the config's, and stops at the first failure. [`find_launch`](Self::find_launch) then knows
    /// the items by their own tokens; a backend that overrides this finds them by the batch's.
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
    /// asked. One failure changes nothing for the others.
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
    /// asked. One missing instance changes nothing for the others.
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let calls: Vec<_> = ids.iter().map(|id| self.describe_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// [`list_instances`](Self::list_instances) as a stream, page by page, in which a part that
    /// could not be seen is an explicit [gap](Seen::Gap).
    ///
    /// # Contract
    /// Outside the gaps the stream is complete. An `Err` ends it.
    fn stream_instances<'a>(&'a self, filter: &'a InstanceFilter) -> BoxStream<'a, Result<Seen>> {
        let answer = stream::once(self.list_instances(filter));
        let items = |answer: Result<Vec<InstanceInfo>>| match answer {
            Ok(list) => stream::iter(list.into_iter().map(|info| Ok(Seen::from(info)))).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        answer.flat_map(items).boxed()
    }

    /// Changes tags of an instance, all of `change` or nothing. Optional.
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let _ = (id, change);
        Err(unsupported(self, Operation::UpdateTags))
    }

    /// Reboots a running instance; id, disk and addresses are kept. Optional.
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let _ = (id, how);
        Err(unsupported(self, Operation::RebootInstance))
    }

    /// Changes the type of a stopped instance; id and disk are kept. Optional.
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let _ = (id, to);
        Err(unsupported(self, Operation::ResizeInstance))
    }

    /// Puts a new image on a running or stopped instance; id and addresses are kept, and **what was
    /// on the root disk is lost**. A running one boots again. Optional.
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let _ = (id, image);
        Err(unsupported(self, Operation::ReimageInstance))
    }

    /// Reads what the instance wrote to its console. Optional.
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleOutput))
    }

    /// Opens a console of a running instance. Optional.
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleSession))
    }

    /// Makes an image of a running or stopped instance. Optional.
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
