//! The trait of every backend.
//!
//! Owns the promises of a backend. A backend implements seven calls and its capabilities. Batches, the
//! stream and the optional calls have default bodies, which a backend overrides if its cloud has
//! better calls. Retries, limits and batching belong to [layers](crate::layer), never to a backend.

use std::{fmt::Debug, num::NonZeroU32};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};

use crate::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// How many calls the default body of a batch has in flight at once.
const CONCURRENT_CALLS: usize = 8;

/// Launches and manages the instances of one cloud account and region.
///
/// The trait is object-safe: a fleet manager holds an `Arc<dyn InstanceProvisioner>` and does not
/// depend on a cloud. [`InstanceProvisionerExt`](crate::InstanceProvisionerExt) adds convenience
/// methods to every implementation, and [`layer::Stack`](crate::layer::Stack) adds retries, rate
/// limits and telemetry.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright::prelude::*;
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let provisioner: Arc<dyn InstanceProvisioner> = Arc::new(MemoryCloud::new().provisioner());
/// let config = InstanceConfig::builder("image-1", "small")
///     .tag("fleet", "blue")
///     .launch_token("blue/slot-1") // store it before launching
///     .build()?;
/// let instance = provisioner.launch_instance(&config).await?;
///
/// let fleet = provisioner.list_instances(&InstanceFilter::tagged("fleet", "blue")?).await?;
/// assert_eq!(fleet[0].id, instance.id);
/// provisioner.terminate_instance(&instance.id).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Contract
///
/// The full text is `docs/contract.md`. The ids below are its clauses; each has a test in
/// `fleetwright-contract-tests`.
///
/// - Every call is idempotent and may be retried, except a launch without a token and a reboot
///   (CRASH-03).
/// - An error says whether the call [had an effect](crate::Effect), at whichever native call it failed
///   (MATRIX-01). A lost response or a server error is never reported as "not found" (ERRORS-06,
///   ERRORS-08).
/// - A future may be dropped, or a process killed, at any point. Everything that it launched can be
///   found again by launch token or tags (CANCELLATION-01, CRASH-04, CRASH-05).
/// - Reads may be stale for at most the
///   [consistency window](Capabilities::consistency_window) (DESCRIBE-06).
/// - No error, `Debug` or span contains user data, credentials or console output (ERRORS-10,
///   ERRORS-14).
/// - Calls on different instances do not wait for each other (CONCURRENCY-01).
/// - Observed states follow the allowed transitions of
///   [`CloudInstanceState`](crate::CloudInstanceState) (STATE-01, STATE-02).
#[async_trait]
pub trait InstanceProvisioner: Send + Sync + Debug {
    /// Returns the capabilities and limits of this backend.
    ///
    /// # Contract
    /// They never change during the life of a handle (TIME-04).
    fn capabilities(&self) -> &Capabilities;

    /// Launches an instance. Returns when the cloud has created it; it may still be booting.
    ///
    /// # Contract
    /// - The id is new, and the cloud never reuses it. The state is pending or running (LAUNCH-01,
    ///   LAUNCH-02).
    /// - The instance has everything in `config`, user data and tags byte for byte. Otherwise the
    ///   launch is refused as [invalid](crate::ErrorKind::Invalid) and nothing is created (LAUNCH-04 to
    ///   LAUNCH-09, LAUNCH-11, LAUNCH-12, TAGS-01, TAGS-04, TAGS-08). The creating call itself sets the
    ///   tags (TAGS-02).
    /// - A second launch with the same [token](LaunchToken) and the same config is a replay: it returns
    ///   the same instance in its current state. With another config it fails with a
    ///   [token conflict](crate::ErrorKind::TokenConflict). A launch that failed without effect frees
    ///   its token. Once the instance is terminating, a replay is refused as
    ///   [spent](crate::ErrorKind::TokenSpent), for the declared
    ///   [time](Capabilities::token_after_terminate) (TOKEN-01 to TOKEN-06). Every
    ///   field of the config counts, as it was at the launch (TOKEN-20, TOKEN-21).
    /// - A launch may fail after it was accepted. Its instance is then terminated with the cloud's reason
    ///   (STATE-04). A backend that [declares](Capabilities::late_failures) such failures also marks it with
    ///   the [kind](crate::LaunchFailure) of the failure, and its token is free (STATE-07).
    ///
    /// # Errors
    /// If the [effect](crate::ProvisionError::effect) is unknown, replay the token or look it up with
    /// [`settle_launch`](crate::InstanceProvisionerExt::settle_launch) before anything else is
    /// launched.
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo>;

    /// Destroys an instance with its disk, network interface and address.
    ///
    /// # Contract
    /// - Returns when the cloud has accepted the call; [`describe_instance`] reports the end.
    /// - Terminating an instance twice succeeds. An id that never existed is
    ///   [not found](crate::ErrorKind::NotFound). No other instance is affected (TERMINATE-02 to
    ///   TERMINATE-04).
    /// - A terminate takes precedence over a stop or start in progress (TERMINATE-06).
    /// - Nothing that was created with the instance remains (LEAKS-01, LEAKS-04).
    ///
    /// [`describe_instance`]: Self::describe_instance
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()>;

    /// Stops an instance and releases its compute. Storage, tags and id are kept.
    ///
    /// # Contract
    /// - Stopping a stopped or stopping instance succeeds and changes nothing (STOP-02).
    /// - A stopped instance has no public address (STOP-03) and uses no paid compute (STOP-05).
    /// - For a terminating or terminated instance it fails with
    ///   [wrong state](crate::ErrorKind::WrongState) (STOP-06).
    async fn stop_instance(&self, id: &InstanceId) -> Result<()>;

    /// Starts a stopped instance and returns it with its current addresses.
    ///
    /// # Contract
    /// - The id stays the same; addresses may change (START-01, START-03). Never use addresses from
    ///   before the start.
    /// - Starting a running or pending instance succeeds and changes nothing (START-02).
    /// - For a stopping instance it fails with a [conflict](crate::ErrorKind::Conflict) and a delay, or
    ///   starts the instance once it has stopped (START-07).
    /// - For a terminating or terminated instance it fails with
    ///   [wrong state](crate::ErrorKind::WrongState) (START-04).
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo>;

    /// Returns the status of an instance as the cloud reports it.
    ///
    /// # Contract
    /// - A terminated instance can be described for the declared
    ///   [time](Capabilities::terminated_visible) (DESCRIBE-04).
    /// - An unknown id is [not found](crate::ErrorKind::NotFound). For an instance that the same handle
    ///   launched within the consistency window, the handle waits instead of returning that error
    ///   (DESCRIBE-01, DESCRIBE-02, DESCRIBE-05). For any other id the error advises no retry
    ///   (ERRORS-13).
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus>;

    /// Lists all instances that `filter` selects, with all details.
    ///
    /// # Contract
    /// - The list is complete, or the call fails with [incomplete](crate::ErrorKind::Incomplete) and
    ///   the parts that could not be read; it is never silently partial (LIST-03, LIST-09, LIST-10).
    /// - [`InstanceFilter::matches`] defines which instances are selected (LIST-04 to LIST-08,
    ///   LIST-15).
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>>;

    /// Looks a launch up by its token, without launching.
    ///
    /// # Contract
    /// Finds the launch from any handle and any process on the same account (TOKEN-09 to TOKEN-11).
    /// [`LaunchRecord::NotFound`] says when "not found" proves that there was no launch.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord>;

    /// Launches `count` instances with the same config. With a token, they are one idempotent unit.
    ///
    /// # Contract
    /// - It launches all or nothing, or a part, as [declared](Capabilities::batch_launch). If it
    ///   launched a part, the error [carries](crate::ProvisionError::survivors) those instances, and a
    ///   replay of the token launches the rest (BATCH-02, BATCH-04).
    /// - Every instance has everything in `config` (BATCH-13).
    ///
    /// The default body launches one instance after the other with [item tokens](LaunchToken::item)
    /// and stops at the first failure. [`find_launch`](Self::find_launch) then finds the first item by
    /// the batch's token and the others by their own, while a backend with its own body finds all of them
    /// by the batch's token. [`find_launches`](crate::InstanceProvisionerExt::find_launches) tries both.
    ///
    /// A token is for a single launch or for a batch, not for both (TOKEN-18). The default body ensures that: the first
    /// item has the batch's token, and [`InstanceConfig::batch`], which is set for items only, makes its config
    /// another one than that of a single launch.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let config = InstanceConfig::builder("image-1", "small").launch_token("pool-1").build()?;
    /// let three = NonZeroU32::new(3).unwrap();
    /// let first = provisioner.launch_instances(&config, three).await?;
    /// let replay = provisioner.launch_instances(&config, three).await?;
    /// assert_eq!(first.len(), 3);
    /// assert_eq!(first[0].id, replay[0].id);
    /// # Ok(())
    /// # }
    /// ```
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

    /// Terminates many instances like [`terminate_instance`](Self::terminate_instance). Returns one
    /// result per id, in the order of `ids`. A failed item does not affect the others (BATCH-06).
    /// Without ids, nothing happens (BATCH-14).
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let calls: Vec<_> = ids.iter().map(|id| self.terminate_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// Stops many instances like [`stop_instance`](Self::stop_instance). Returns one result per id, in
    /// the order of `ids`.
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let calls: Vec<_> = ids.iter().map(|id| self.stop_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// Starts many instances like [`start_instance`](Self::start_instance). Returns one result per id,
    /// in the order of `ids`.
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let calls: Vec<_> = ids.iter().map(|id| self.start_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// Describes many instances like [`describe_instance`](Self::describe_instance). Returns one result
    /// per id, in the order of `ids`. A missing instance does not affect the others (BATCH-05).
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let calls: Vec<_> = ids.iter().map(|id| self.describe_instance(id)).collect();
        stream::iter(calls)
            .buffered(CONCURRENT_CALLS)
            .collect()
            .await
    }

    /// Lists instances as a stream, page by page. A part that could not be read is an explicit
    /// [gap](ListItem::Gap), and the stream continues.
    ///
    /// # Contract
    /// Outside of its gaps the stream is complete (LIST-10, LIST-13, LIST-16). An `Err` ends it (LIST-17).
    ///
    /// Use it for accounts with many instances, or to work with the readable parts of a region while
    /// another part has an outage. The default body streams the result of
    /// [`list_instances`](Self::list_instances).
    ///
    /// ```
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    /// use futures_util::StreamExt as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let filter = InstanceFilter::new();
    /// let mut items = provisioner.stream_instances(&filter);
    /// while let Some(item) = items.next().await {
    ///     match item? {
    ///         ListItem::Instance(info) => println!("{} is {}", info.id, info.state),
    ///         ListItem::Gap { scope, error } => println!("{scope} could not be read: {error}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let list = stream::once(self.list_instances(filter));
        let items = |result: Result<Vec<InstanceInfo>>| match result {
            Ok(list) => stream::iter(list.into_iter().map(|info| Ok(ListItem::from(info)))).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        list.flat_map(items).boxed()
    }

    /// Returns which instances this handle manages, or `None` if the backend cannot tell.
    ///
    /// Wrong credentials often fail nothing: the list of another account is complete, and does not
    /// contain what the caller looks for. Compare the id with the one from the first launch before an
    /// absent instance is believed to be gone. The credentials of a handle can change while it lives,
    /// so a backend reads the id with each call, unless the handle is bound to it.
    ///
    /// # Contract
    /// - Every handle on an account returns the same id, at any time, whatever was launched
    ///   (ACCOUNT-01). It names the account, and contains no secret.
    /// - While the account cannot be read, the call fails: it returns neither `None` nor another id
    ///   (ACCOUNT-02).
    ///
    /// The default body returns `None`.
    async fn account_id(&self) -> Result<Option<AccountId>> {
        Ok(None)
    }

    /// Changes the tags of an instance: all of `change`, or nothing. Optional (VERBS-01).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`Invalid`](crate::ErrorKind::Invalid) if the new tags exceed the cloud's limits.
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let _ = (id, change);
        Err(unsupported(self, Operation::UpdateTags))
    }

    /// Reboots a running instance. Id, disk and addresses are kept. Not idempotent. Optional
    /// (VERBS-02).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`WrongState`](crate::ErrorKind::WrongState) if the instance does not run.
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let _ = (id, how);
        Err(unsupported(self, Operation::RebootInstance))
    }

    /// Changes the type of a stopped instance. Id and disk are kept. Optional (VERBS-03).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`WrongState`](crate::ErrorKind::WrongState) if the instance is not stopped.
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let _ = (id, to);
        Err(unsupported(self, Operation::ResizeInstance))
    }

    /// Replaces the root disk of a running or stopped instance with a new image. Id and addresses are
    /// kept; **the data on the root disk is lost**. A running instance boots again. Optional
    /// (VERBS-04).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`WrongState`](crate::ErrorKind::WrongState) if the instance is in another state.
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let _ = (id, image);
        Err(unsupported(self, Operation::ReimageInstance))
    }

    /// Returns the end of the console output of an instance. Optional (VERBS-05).
    ///
    /// Treat it as secret: instances print passwords and keys when they boot.
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleOutput))
    }

    /// Opens a console session on a running instance. Optional (VERBS-06).
    ///
    /// The returned address grants access: treat it like a password.
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let _ = id;
        Err(unsupported(self, Operation::ConsoleSession))
    }

    /// Creates an image from a running or stopped instance. Optional (VERBS-07).
    ///
    /// A second request with the same name for the same instance returns the same image.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`Conflict`](crate::ErrorKind::Conflict) if the name belongs to another image.
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let _ = (id, request);
        Err(unsupported(self, Operation::SnapshotImage))
    }

    /// Deletes an image that [`snapshot_image`](Self::snapshot_image) created, with its data. Optional
    /// (VERBS-10).
    ///
    /// # Contract
    /// - An image that does not exist counts as deleted, because clouds keep no record of deleted images:
    ///   repeat a call whose response was lost. A repeated call also deletes what an interrupted one left
    ///   (VERBS-12).
    /// - Instances that were launched from the image are not affected. A later launch from it is
    ///   refused as of an image that does not exist, once the
    ///   [consistency window](Capabilities::consistency_window) has passed (VERBS-10).
    /// - An image that `snapshot_image` did not create is never deleted (VERBS-11).
    ///
    /// ```
    /// use fleetwright::{SnapshotRequest, prelude::*};
    /// use fleetwright_memory::MemoryCloud;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let config = InstanceConfig::builder("image-1", "small").build()?;
    /// let instance = provisioner.launch_instance(&config).await?;
    /// # tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    /// let image = provisioner.snapshot_image(&instance.id, &SnapshotRequest::new("golden-1")?).await?;
    /// provisioner.delete_image(&image).await?;
    /// provisioner.delete_image(&image).await?; // changes nothing
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without the capability;
    /// [`Conflict`](crate::ErrorKind::Conflict) if `snapshot_image` did not create the image, with
    /// [advice](crate::ProvisionError::retry) not to retry, or if it is still being created, with a delay.
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let _ = image;
        Err(unsupported(self, Operation::DeleteImage))
    }
}

/// Returns the error of an optional call that the backend does not support.
fn unsupported<P: InstanceProvisioner + ?Sized>(
    backend: &P,
    operation: Operation,
) -> crate::ProvisionError {
    Call::new(backend.capabilities().provider.as_str(), operation).unsupported()
}
