//! The provisioner, and the trait on Azure.
//!
//! Owns the handle and its parts. Each method of the trait delegates to the module of its call.

use std::{fmt, num::NonZeroU32};

use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
    async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances as _, ReadInstances as _, RecentLaunches, RecentTokens,
    batch::single_result, collect_complete,
};

use crate::{
    AzureCredentials, AzureLaunchConfig, AzureOptions, TokenFailure,
    cleanup::{AzureCleanup, CleanupOwner},
    client::AzureClient,
    credentials::cloud_of_env,
    error::ErrorContext,
    interfaces::InterfaceCache,
    recent_deletions::RecentDeletions,
    removal::Remover,
};

/// A backend for the virtual machines of one Azure resource group.
///
/// Construction sends nothing; the first call requests a token. One handle serves any number of
/// concurrent calls. Dropping it stops its background cleanup; see [`AzureCleanup`].
///
/// ```no_run
/// use fleetwright_azure::{
///     AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner, ServicePrincipal,
///     fleetwright::{InstanceConfig, InstanceProvisioner, NetworkId},
/// };
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let azure = AzureProvisioner::new(
///     AzureCredentials::client_secret(ServicePrincipal::new("tenant", "client"), "secret"),
///     AzureLaunchConfig::new(
///         "11111111-2222-3333-4444-555555555555",
///         "fleet",
///         "eastus",
///         NetworkId::new("vnet/default")?,
///         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwright me@here",
///     ),
///     AzureOptions::default(),
/// )?;
/// let image = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";
/// let config = InstanceConfig::builder(image, "Standard_D2s_v5").build()?;
/// let instance = azure.launch_instance(&config).await?;
/// azure.terminate_instance(&instance.id).await?;
/// azure.cleanup().shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct AzureProvisioner {
    /// The native calls.
    pub(crate) client: AzureClient,
    /// How machines are launched. Checked.
    pub(crate) launch: AzureLaunchConfig,
    /// How this handle behaves. Checked.
    pub(crate) options: AzureOptions,
    /// Declared once, from the options.
    pub(crate) capabilities: Capabilities,
    /// The instances that this handle has just launched.
    pub(crate) recent_launches: RecentLaunches,
    /// The tokens that this handle has just used.
    pub(crate) recent_tokens: RecentTokens,
    /// What this handle has deleted recently, and why.
    pub(crate) deletions: RecentDeletions,
    /// The owner of the background task. Dropping it stops the task.
    pub(crate) cleanup: CleanupOwner,
    /// The interfaces that were read last.
    pub(crate) interface_cache: InterfaceCache,
}

impl AzureProvisioner {
    /// Creates a provisioner with the credentials of the environment, see
    /// [`AzureCredentials::from_env`], and the default options of the cloud that
    /// `AZURE_AUTHORITY_HOST` selects: the public one if it is not set. Sends nothing.
    ///
    /// # Errors
    ///
    /// An unauthenticated error that names the variables to set, and those of [`new`](Self::new).
    pub fn from_env(launch: AzureLaunchConfig) -> Result<Self> {
        let call = Call::new("azure", Operation::DescribeInstance);
        let unset = |failure: TokenFailure| call.unauthenticated(failure.message());
        let options = AzureOptions::for_cloud(cloud_of_env().map_err(unset)?);
        let credentials = AzureCredentials::from_env().map_err(unset)?;
        Self::new(credentials, launch, options)
    }

    /// Creates a provisioner. Sends nothing.
    ///
    /// # Errors
    ///
    /// An invalid-value error for the first invalid field of `launch` or `options`, and an error if
    /// the endpoint is not an `https` URL, or `http` on this machine.
    pub fn new(
        credentials: AzureCredentials,
        launch: AzureLaunchConfig,
        options: AzureOptions,
    ) -> Result<Self> {
        let call = Call::new("azure", Operation::DescribeInstance);
        launch.check().map_err(|value| call.invalid(value))?;
        options.check().map_err(|value| call.invalid(value))?;
        let client = AzureClient::new(
            &launch.subscription,
            &launch.resource_group,
            credentials,
            &options,
        );
        let client =
            client.map_err(|failure| failure.into_error(&call, ErrorContext::default()))?;
        let deletions = RecentDeletions::default();
        let remover = Remover::new(
            client.clone(),
            options.poll_interval,
            options.call_timeout,
            options.consistency_window,
        );
        let cleanup = CleanupOwner::new(
            options.background_cleanup,
            remover,
            deletions.clone(),
            options.concurrency.get() as usize,
        );
        Ok(Self {
            client,
            capabilities: options.capabilities(launch.tags.len()),
            launch,
            options,
            recent_launches: RecentLaunches::new(),
            recent_tokens: RecentTokens::new(),
            deletions,
            cleanup,
            interface_cache: InterfaceCache::default(),
        })
    }

    /// Returns the handle of the background cleanup, to wait for it or to shut it down.
    #[must_use]
    pub fn cleanup(&self) -> AzureCleanup {
        self.cleanup.handle()
    }

    /// Returns the context of errors of an operation.
    pub(crate) fn call(&self, operation: Operation) -> Call {
        Call::new(self.capabilities.provider.as_str(), operation)
    }

    /// Returns the error context of an instance.
    pub(crate) fn about<'a>(&self, id: &'a InstanceId) -> ErrorContext<'a> {
        ErrorContext {
            instance: Some(id),
            hidden_for: self.recent_launches.hidden_for(id, &self.capabilities),
            ..ErrorContext::default()
        }
    }
}

impl fmt::Debug for AzureProvisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureProvisioner")
            .field("endpoint", &self.options.endpoint)
            .field("subscription", &self.launch.subscription)
            .field("resource_group", &self.launch.resource_group)
            .field("location", &self.launch.location)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl InstanceProvisioner for AzureProvisioner {
    /// Declared from the options; constant for the life of the handle.
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// With a token one GET by name; then one PUT of the machine with disk, interface and address,
    /// and polls of its operation for up to `launch_wait`. The cleanup tracks the creation.
    ///
    /// Errors: `Capacity` and `Quota` at once or from the operation; `Conflict` if the name belongs
    /// to another owner or the remains of a failed launch are still being deleted; `TokenConflict`,
    /// `TokenSpent`.
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = self.call(Operation::LaunchInstance);
        let launched = self.launch_all(&call, config, NonZeroU32::MIN).await?;
        single_result(&call, launched.into_iter().map(Ok).collect())
    }

    /// One GET and two lists for the batch, then one PUT each: the first alone, the others
    /// `concurrency` at a time. A batch can be launched partly; the error then carries the
    /// survivors.
    ///
    /// Errors: those of a single launch. If the first machine is refused, no other is sent.
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launch_all(&self.call(Operation::LaunchInstances), config, count)
            .await
    }

    /// A read, then `delete`. Disk, interface and address are deleted with the machine.
    ///
    /// Succeeds if the machine is being deleted or gone. If only reads say that it is gone, `delete` is
    /// sent all the same. Errors: `NotFound` for an id that may not show yet.
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        self.change_one(operation, Change::Terminate, id).await
    }

    /// A read, then `deallocate`. Disk and address are kept and billed.
    ///
    /// Succeeds if it is stopping. Errors: `WrongState` if it has ended, `Conflict` while it is
    /// being created.
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::StopInstance;
        self.change_one(operation, Change::Stop, id).await
    }

    /// A read, then `start`, whose operation is polled for up to `launch_wait` for missing
    /// capacity.
    ///
    /// Succeeds if it runs or starts. Errors: `WrongState` if it has ended, `Capacity` from the
    /// operation.
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.start_one(Operation::StartInstance, id).await
    }

    /// GET of the machine with its instance view, and of its interface.
    ///
    /// A machine that is older than the consistency window, and that three GETs in a row over such a
    /// window do not find, is terminated. From then on one GET is enough.
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let info = self.describe_one(Operation::DescribeInstance, id).await?;
        Ok(info.into())
    }

    /// Lists of states, interfaces and addresses, and the pages of machines, and a GET of each machine
    /// that one of them omits. Azure filters nothing, this crate does.
    ///
    /// A group that does not exist is an empty list.
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::ListInstances;
        collect_complete(&self.call(operation), self.pages(operation, filter)).await
    }

    /// The Resource Manager's host, subscription and resource group, without a call: a handle is bound to them.
    async fn account_id(&self) -> Result<Option<AccountId>> {
        let (_, host) = self
            .options
            .endpoint
            .split_once("://")
            .unwrap_or(("", &self.options.endpoint));
        // Azure compares the names of groups and subscriptions without their case.
        let id = format!(
            "{}/subscriptions/{}/resourcegroups/{}",
            host.trim_end_matches('/'),
            self.launch.subscription,
            self.launch.resource_group
        );
        let id = AccountId::new(id.to_lowercase());
        id.map(Some)
            .map_err(|value| self.call(Operation::AccountId).invalid(value))
    }

    /// One GET by name; lists if the launch was a batch. If nothing is found, it looks again until a
    /// consistency window has passed.
    ///
    /// Includes failed machines, as terminating, until they are deleted.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.find_launch_record(&self.call(Operation::FindLaunch), token)
            .await
    }

    /// One list of states for more than three, then one `delete` each.
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.change_all(Operation::TerminateInstances, Change::Terminate, ids)
            .await
    }

    /// One list of states for more than three, then one `deallocate` each.
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.change_all(Operation::StopInstances, Change::Stop, ids)
            .await
    }

    /// One list of states for more than three, then one `start` each and one poll of each
    /// operation.
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.start_all(Operation::StartInstances, ids).await
    }

    /// One list of states for more than three, and lists of interfaces and addresses if the cached
    /// ones are too old.
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let infos = self.describe_all(Operation::DescribeInstances, ids).await;
        let status = |info: Result<InstanceInfo>| info.map(InstanceStatus::from);
        infos.into_iter().map(status).collect()
    }

    /// Like [`list_instances`](InstanceProvisioner::list_instances), page by page. Azure reports no
    /// gaps.
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.pages(Operation::StreamInstances, filter)
    }

    /// GET and PATCH of all tags with the version that was read, until done.
    ///
    /// Errors: `Conflict` after five concurrent changes; an invalid-value error for tags that Azure
    /// refuses.
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.retag(id, change).await
    }

    /// `restart`. Azure has no other reboot, so soft and hard are the same.
    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        self.reboot(id).await
    }

    /// PATCH of a stopped machine, until done.
    ///
    /// Errors: `WrongState` unless it is stopped; `Capacity` or an invalid value if Azure refuses
    /// the size.
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.resize(id, to).await
    }

    /// `retrieveBootDiagnosticsData`, and the blob that it names, without the token.
    ///
    /// Empty if the machine has written nothing. Errors: `Conflict` if boot diagnostics are off,
    /// because Azure then refuses the call.
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.console(id).await
    }

    /// GET of the image, then PUT of an image of the system disk. An image of the same name and
    /// machine is returned as the result of an earlier attempt.
    ///
    /// The machine is not changed. Errors: `Conflict` if another image has the name.
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.snapshot_system_disk(id, request).await
    }

    /// GET of the image, then DELETE, and polls until it is done.
    ///
    /// Errors: `Conflict` for an image of another group or without the tag that `snapshot_image` sets, and while it is
    /// being created.
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.delete_created_image(image).await
    }
}
