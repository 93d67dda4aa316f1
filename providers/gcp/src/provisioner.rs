//! The provisioner, and the trait on Compute Engine.
//!
//! Owns the handle and its parts. Each method of the trait delegates to the module of its call.

use std::{fmt, num::NonZeroU32};

use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession,
    Effect, ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result,
    SnapshotRequest, TagChange, async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances as _, ReadInstances as _, RecentLaunches, RecentTokens,
    batch::single_result, collect_complete, read_until,
};
use futures_util::future::BoxFuture;
use google_cloud_auth::credentials::{self, Credentials};

use crate::{
    GcpLaunchConfig, GcpOptions,
    address::Address,
    client::{GcpClient, OperationScope, build_error_message},
    error::{ErrorContext, Failure},
    history,
    memory::Memory,
    token::TokenLaunches,
};

/// A backend for Compute Engine in some zones of one project.
///
/// One handle serves any number of concurrent calls. It starts no background task.
///
/// ```no_run
/// use fleetwright_gcp::{
///     GcpLaunchConfig, GcpOptions, GcpProvisioner,
///     fleetwright::{InstanceConfig, InstanceProvisioner, Zone},
///     google_cloud_auth::credentials,
/// };
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let launch = GcpLaunchConfig::new("my-project", [Zone::new("us-central1-a")?]);
/// let credentials = credentials::Builder::default().build()?;
/// let gcp = GcpProvisioner::new(credentials, None, launch, GcpOptions::default()).await?;
///
/// let image = "projects/debian-cloud/global/images/family/debian-12";
/// let config = InstanceConfig::builder(image, "e2-small").build()?;
/// let instance = gcp.launch_instance(&config).await?;
/// gcp.terminate_instance(&instance.id).await?;
/// # Ok(())
/// # }
/// ```
pub struct GcpProvisioner {
    /// The native calls.
    pub(crate) client: GcpClient,
    /// How instances are launched. Checked.
    pub(crate) launch: GcpLaunchConfig,
    /// How this handle behaves.
    pub(crate) options: GcpOptions,
    /// Declared once, from the options.
    pub(crate) capabilities: Capabilities,
    pub(crate) recent_launches: RecentLaunches,
    pub(crate) recent_tokens: RecentTokens,
    /// What this handle knows of instances without a list of operations.
    pub(crate) memory: Memory,
}

impl GcpProvisioner {
    /// Connects with application default credentials (the file that
    /// `GOOGLE_APPLICATION_CREDENTIALS` names, those of `gcloud`, or those of the metadata service)
    /// and the default options.
    ///
    /// # Errors
    ///
    /// An unauthenticated error if there are no credentials, and those of [`new`](Self::new).
    pub async fn from_env(launch: GcpLaunchConfig) -> Result<Self> {
        let built = credentials::Builder::default().build();
        let credentials = built.map_err(|_| {
            let message = "no credentials were found for Compute Engine; set up application default \
                           credentials";
            call_of(Operation::DescribeInstance).unauthenticated(message)
        })?;
        Self::new(credentials, None, launch, GcpOptions::default()).await
    }

    /// Creates a provisioner with these credentials, at `endpoint` instead of the one of their universe
    /// if one is given. Sends nothing, except that credentials of the metadata service read its universe.
    ///
    /// # Errors
    ///
    /// An invalid-value error for the first invalid field of `launch`, and an unexpected error if
    /// the SDK cannot build its client for the endpoint, or if `GOOGLE_CLOUD_UNIVERSE_DOMAIN` names
    /// another universe than that of the credentials.
    pub async fn new(
        credentials: Credentials,
        endpoint: Option<&str>,
        launch: GcpLaunchConfig,
        options: GcpOptions,
    ) -> Result<Self> {
        let call = call_of(Operation::DescribeInstance);
        launch.check().map_err(|value| call.invalid(value))?;
        let client = GcpClient::new(&launch.project, credentials, endpoint, options.call_timeout);
        let client = client.await;
        Ok(Self {
            client: client
                .map_err(|error| call.unexpected(Effect::None, build_error_message(&error)))?,
            capabilities: options.capabilities(launch.labels.len()),
            memory: Memory::new(options.operations_kept.max(options.consistency_window * 2)),
            launch,
            options,
            recent_launches: RecentLaunches::new(),
            recent_tokens: RecentTokens::new(),
        })
    }

    /// Returns the context of errors of an operation.
    pub(crate) fn call(&self, operation: Operation) -> Call {
        Call::new(self.capabilities.provider.as_str(), operation)
    }

    /// Returns the error context of an instance.
    pub(crate) fn about<'a>(&'a self, id: &'a InstanceId, at: &Address) -> ErrorContext<'a> {
        ErrorContext {
            instance: Some(id),
            zone: self
                .launch
                .zones
                .iter()
                .find(|zone| zone.as_str() == at.zone),
            hidden_for: self.recent_launches.hidden_for(id, &self.capabilities),
            ..ErrorContext::default()
        }
    }
}

/// The call that errors of the construction name.
fn call_of(operation: Operation) -> Call {
    Call::new("gcp", operation)
}

impl fmt::Debug for GcpProvisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcpProvisioner")
            .field("project", &self.launch.project)
            .field("zones", &self.launch.zones)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl InstanceProvisioner for GcpProvisioner {
    /// Declared from the options; constant for the life of the handle.
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// With a token one list of instances by name; then `instances.insert`; with a token and several
    /// zones the same list again; and `zoneOperations.wait` for up to `launch_wait`, if that is not zero.
    ///
    /// Errors: `Capacity` and `Quota` at once or from the operation; `Conflict` if the name belongs
    /// to another owner; `TokenConflict`, `TokenSpent`; `Unavailable` without effect if a zone does
    /// not respond to the lookup of the token.
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = self.call(Operation::LaunchInstance);
        let launched = self.launch_all(&call, config, NonZeroU32::MIN).await?;
        single_result(&call, launched.into_iter().map(Ok).collect())
    }

    /// The same lists once for the batch, with a token one insert of the first instance, one `instances.bulkInsert`
    /// for the others and a list of what it created, and lists of the instances for up to `launch_wait`. A batch can
    /// be launched partly; the error then carries the survivors.
    ///
    /// Errors: those of a single launch. The worst one is returned.
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launch_all(&self.call(Operation::LaunchInstances), config, count)
            .await
    }

    /// `instances.delete`. Disks are deleted with the instance.
    ///
    /// Succeeds if it is being deleted or was deleted. Errors: `NotFound` for an id that may not
    /// show yet.
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        self.change_one(operation, Change::Terminate, id).await
    }

    /// `instances.stop`. Disks are kept and billed.
    ///
    /// Succeeds if it is stopping or stopped. Errors: `WrongState` if it has ended, `Conflict`
    /// while it is being created, an invalid value if local SSDs would be discarded.
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::StopInstance;
        self.change_one(operation, Change::Stop, id).await
    }

    /// `instances.start`, or `instances.resume` for a suspended instance. Waits `launch_wait` for
    /// missing capacity.
    ///
    /// Succeeds if it runs or starts. Errors: `WrongState` if it has ended, `Conflict` while it
    /// stops, `Capacity`.
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.start_one(Operation::StartInstance, id).await
    }

    /// `instances.get`. If the instance is stopping or not found and this handle does not know why,
    /// one list of operations.
    ///
    /// Errors: `NotFound` if nothing knows the instance; `Unavailable` if its zone does not respond.
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let info = self.describe_one(Operation::DescribeInstance, id).await?;
        Ok(info.into())
    }

    /// `instances.list` for one zone, `instances.aggregatedList` for several. Fails if a zone does
    /// not respond.
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::ListInstances;
        collect_complete(&self.call(operation), self.pages(operation, filter)).await
    }

    /// Universe and project, such as `googleapis.com/projects/fleet`, without a call: a handle is bound to both.
    ///
    /// Zones are not part of it: an instance in a zone that this handle does not list can still be described.
    async fn account_id(&self) -> Result<Option<AccountId>> {
        let id = format!(
            "{}/projects/{}",
            self.client.universe(),
            self.client.project()
        );
        let id = AccountId::new(id);
        id.map(Some)
            .map_err(|value| self.call(Operation::AccountId).invalid(value))
    }

    /// One list of instances by name, and one of operations if spent tokens are remembered.
    ///
    /// Includes ended instances for as long as spent tokens are remembered.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let call = self.call(Operation::FindLaunch);
        // An instance that operations know and no read shows yet is waited for.
        let read = || -> BoxFuture<'_, _> { Box::pin(self.find_token_launches(&call, token)) };
        let is_enough = |known: &TokenLaunches| !known.has_hidden;
        let known = read_until(&self.capabilities, read, is_enough).await?;
        Ok(LaunchRecord::from_instances(
            known.by_name.into_values().chain(known.twins).collect(),
        ))
    }

    /// One `instances.delete` each.
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.change_all(Operation::TerminateInstances, Change::Terminate, ids)
            .await
    }

    /// One `instances.stop` each.
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.change_all(Operation::StopInstances, Change::Stop, ids)
            .await
    }

    /// One start and one read each.
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.start_all(Operation::StartInstances, ids).await
    }

    /// One list by name for up to 170 instances, and one of operations for those that are stopping or
    /// not found for a reason that this handle does not know.
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let infos = self.describe_all(Operation::DescribeInstances, ids).await;
        let status = |info: Result<InstanceInfo>| info.map(InstanceStatus::from);
        infos.into_iter().map(status).collect()
    }

    /// Like [`list_instances`](InstanceProvisioner::list_instances), page by page. A zone that does
    /// not respond is a gap.
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.pages(Operation::StreamInstances, filter)
    }

    /// `instances.setLabels`, and `instances.setMetadata` for tags that are not valid labels, until
    /// done.
    ///
    /// Errors: `Conflict` after five concurrent changes; unknown effect if a later step fails.
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let call = self.call(Operation::UpdateTags);
        self.retag(&call, id, change).await
    }

    /// `instances.reset`. Compute Engine has no other reboot, so soft and hard are the same.
    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        let running = [CloudInstanceState::Running];
        let checked = self.require_state(Operation::RebootInstance, id, &running, "running");
        let (call, at) = checked.await?;
        let to_error = |failure: Failure| failure.into_error(&call, self.about(id, &at));
        let operation = self.client.reset(&at).await.map_err(to_error)?;
        let timeout = self.options.launch_wait;
        let operation = self
            .await_operation(OperationScope::Zone(&at.zone), operation, timeout)
            .await;
        history::failure(&operation).map_or(Ok(()), |failure| Err(to_error(failure)))
    }

    /// `instances.setMachineType` of a stopped instance, until done.
    ///
    /// Errors: `WrongState` unless it is stopped; an invalid value if the zone does not offer the
    /// type.
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let stopped = [CloudInstanceState::Stopped];
        let checked = self.require_state(Operation::ResizeInstance, id, &stopped, "stopped");
        let (call, at) = checked.await?;
        let sent = self.client.set_machine_type(&at, to.as_str()).await;
        let to_error = |failure: Failure| failure.into_error(&call, ErrorContext::default());
        self.await_change(&at, sent).await.map_err(to_error)
    }

    /// `instances.getSerialPortOutput` of the first port.
    ///
    /// Contains the last megabyte at most, which is what Compute Engine keeps.
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let operation = Operation::ConsoleOutput;
        let call = self.call(operation);
        let at = self.at(&call, id)?;
        let info = self.describe_one(operation, id).await?;
        if info.state.is_ending() {
            return Err(call.wrong_state(id, info.state, "not terminated"));
        }
        let text = self.client.console(&at).await;
        let text = text.map_err(|failure| failure.into_error(&call, self.about(id, &at)))?;
        Ok(ConsoleOutput::new(text))
    }

    /// No call: the URL of Google's serial console for the instance.
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let running = [CloudInstanceState::Running];
        let checked = self.require_state(Operation::ConsoleSession, id, &running, "running");
        let (_, at) = checked.await?;
        Ok(ConsoleSession::new(Self::console_url(&at)))
    }

    /// `images.get`, then `images.insert` from the boot disk. An image of the same name and
    /// instance is returned as the result of an earlier attempt.
    ///
    /// Errors: `Conflict` if another image has the name. A disk in use is copied as it is.
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let call = self.call(Operation::SnapshotImage);
        self.snapshot_boot_disk(&call, id, request).await
    }

    /// `images.get`, then `images.delete`, and a wait until it is done.
    ///
    /// Errors: `Conflict` for an image of another project or without the label that `snapshot_image` sets, and while
    /// it is being created.
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.delete_created_image(image).await
    }
}
