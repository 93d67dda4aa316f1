//! The provisioner, and the trait on EC2.
//!
//! Owns the handle and the order of native calls in each method. It must never interpret an error
//! code or build a request: [`error`](crate::error) and [`plan`](crate::plan) do that.
//!
//! Every method that changes one instance reads it first if EC2's own refusal would not say why.
//! Such a read is part of the call: if it fails, nothing was changed.

use std::{collections::HashMap, fmt, num::NonZeroU32, sync::Mutex};

use aws_config::{BehaviorVersion, SdkConfig};
use fleetwright::{
    AccountId, BoxStream, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, Effect,
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, InvalidValue, LaunchRecord, LaunchToken, ListItem, Operation,
    Reboot, Result, SnapshotRequest, TagChange, async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances as _, ReadInstances as _, RecentLaunches, RecentMap,
    RecentTerminations, RecentTokens, batch::single_result, collect_complete,
};
use tokio::time::Instant;

use crate::{
    Ec2LaunchConfig, Ec2Options,
    account::{self, AccountClient},
    by_token,
    client::Ec2Client,
    convert,
    error::{ErrorContext, Failure},
    late::FailedLaunches,
    read::infos,
    token,
    token_reads::TokenReads,
};

/// A backend for EC2 in one region of one account.
///
/// One handle serves any number of concurrent calls; share it in an [`Arc`](std::sync::Arc). It
/// starts no background task and retries nothing: wrap it in the layers of [`fleetwright::layer`].
///
/// The handle remembers for the consistency window which instances it has launched and terminated and which
/// launch tokens it has used, so that its own stale reads do not report a new instance as missing, or a
/// terminated one as the result of a replay. It keeps
/// the root device names of images for as long as it lives. It keeps no other state.
///
/// ```no_run
/// use fleetwright_ec2::{Ec2LaunchConfig, Ec2Provisioner};
/// use fleetwright_ec2::fleetwright::{InstanceConfig, InstanceProvisioner as _, layer::Stack};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // Region and credentials from the environment, a profile or the metadata service.
/// let mut launch = Ec2LaunchConfig::new();
/// launch.key_pair = Some("ops".to_owned());
/// let ec2 = Stack::default().wrap(Ec2Provisioner::from_env(launch).await?);
///
/// let config = InstanceConfig::builder("ami-0123456789abcdef0", "t3.micro")
///     .launch_token("web-1")
///     .tag("service", "web")
///     .build()?;
/// let instance = ec2.launch_instance(&config).await?;
/// println!("{} is {:?}", instance.id, instance.state);
/// # Ok(())
/// # }
/// ```
pub struct Ec2Provisioner {
    /// The native calls.
    pub(crate) client: Ec2Client,
    /// The call that names the account. `None` if it is not reported.
    account: Option<AccountClient>,
    /// How instances are launched. Checked.
    pub(crate) launch: Ec2LaunchConfig,
    /// How this handle behaves.
    pub(crate) options: Ec2Options,
    /// Declared once, from the options.
    pub(crate) capabilities: Capabilities,
    /// The region, for the address of console sessions.
    region: Option<String>,
    /// The instances that this handle launched within the consistency window.
    pub(crate) recent_launches: RecentLaunches,
    /// The tokens that this handle used within the consistency window.
    pub(crate) recent_tokens: RecentTokens,
    /// The look-ups of tokens, which concurrent launches share.
    pub(crate) token_reads: TokenReads,
    /// The launches that this handle has seen fail after EC2 accepted them.
    pub(crate) failed_launches: FailedLaunches,
    /// When EC2 first refused a client token of this handle because of other parameters.
    pub(crate) mismatches: RecentMap<String, Instant>,
    /// The instances that this handle terminated within the consistency window.
    pub(crate) recent_terminations: RecentTerminations,
    /// The names of root devices by image. They never change for an image.
    pub(crate) root_devices: Mutex<HashMap<ImageId, String>>,
}

impl Ec2Provisioner {
    /// Creates a handle with the region and the credentials that `aws-config` finds: environment, profiles,
    /// web identities, metadata service. Options are the defaults. Sends nothing to EC2.
    ///
    /// Missing credentials are reported by the first call, as `Unauthenticated`.
    ///
    /// # Errors
    ///
    /// The first invalid value of `launch`.
    pub async fn from_env(launch: Ec2LaunchConfig) -> Result<Self, InvalidValue> {
        let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
        Self::new(&config, launch, Ec2Options::default())
    }

    /// Creates a handle with the region, the credentials and the endpoint of `config`. Its retry and timeout
    /// settings are ignored: a call is sent once, within [`Ec2Options::call_timeout`].
    ///
    /// ```
    /// use fleetwright_ec2::{
    ///     Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    ///     aws_config::{BehaviorVersion, Region, SdkConfig},
    ///     fleetwright::InstanceProvisioner as _,
    /// };
    ///
    /// // For an emulator: its endpoint, and credentials that it accepts.
    /// let config = SdkConfig::builder()
    ///     .behavior_version(BehaviorVersion::latest())
    ///     .region(Region::new("us-east-1"))
    ///     .endpoint_url("http://127.0.0.1:4566")
    ///     .build();
    /// let ec2 = Ec2Provisioner::new(&config, Ec2LaunchConfig::new(), Ec2Options::default())?;
    /// assert_eq!(ec2.capabilities().batch_size.get(), 1_000);
    /// # Ok::<(), fleetwright_ec2::fleetwright::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first invalid value of `launch`.
    pub fn new(
        config: &SdkConfig,
        launch: Ec2LaunchConfig,
        options: Ec2Options,
    ) -> Result<Self, InvalidValue> {
        launch.check()?;
        let timeouts = account::timeouts(options.call_timeout);
        let client = Ec2Client::new(config.into(), timeouts.clone());
        let account = options
            .report_account
            .then(|| AccountClient::new(config, timeouts));
        Ok(Self {
            client,
            account,
            launch,
            capabilities: options.capabilities(),
            options,
            region: config.region().map(ToString::to_string),
            recent_launches: RecentLaunches::new(),
            recent_tokens: RecentTokens::new(),
            token_reads: TokenReads::new(),
            failed_launches: FailedLaunches::default(),
            mismatches: RecentMap::default(),
            recent_terminations: RecentTerminations::new(),
            root_devices: Mutex::default(),
        })
    }

    /// Returns the context of errors about one instance. For a recent launch of this handle, "not
    /// found" is then an error that may pass.
    pub(crate) fn error_context<'a>(&self, id: &'a InstanceId) -> ErrorContext<'a> {
        ErrorContext {
            instance: Some(id),
            hidden_for: self.recent_launches.hidden_for(id, &self.capabilities),
            ..ErrorContext::default()
        }
    }
}

impl fmt::Debug for Ec2Provisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ec2Provisioner")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl InstanceProvisioner for Ec2Provisioner {
    /// Declared from the options; constant for the life of the handle.
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// With a token one `DescribeInstances` by client token. A live launch of the token is the result, whatever
    /// the options of this handle are. Otherwise `RunInstances`, and another `DescribeInstances`, which finds
    /// a launch that another handle made in another zone at the same moment.
    ///
    /// Errors: `Capacity` and `Quota` at once; `TokenConflict` if the token was used with another
    /// config, in any zone; `TokenSpent` if its instance is terminating or terminated.
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = self.call(Operation::LaunchInstance);
        let launched = self.launch(&call, config, NonZeroU32::MIN).await?;
        single_result(&call, launched.into_iter().map(Ok).collect())
    }

    /// One `RunInstances` for the whole batch: all instances are launched, or none.
    ///
    /// Errors: those of a single launch.
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let call = self.call(Operation::LaunchInstances);
        self.launch(&call, config, count).await
    }

    /// `TerminateInstances`. Volumes and the network card are deleted with the instance, except
    /// volumes that are configured to be kept.
    ///
    /// Succeeds if it is terminating or terminated. Errors: `NotFound`, `Forbidden` if the instance
    /// is protected against termination.
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        self.change_one(operation, Change::Terminate, id).await
    }

    /// `StopInstances`. Volumes are kept and billed; a public address is lost unless it is elastic.
    ///
    /// Succeeds if it is stopping or stopped. Errors: `WrongState` if it has ended, `Conflict` while
    /// it is pending, `Unsupported` for one-time spot instances.
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::StopInstance;
        self.change_one(operation, Change::Stop, id).await
    }

    /// `StartInstances`, then one read.
    ///
    /// Succeeds if it is pending or running. Errors: `WrongState` if it has ended, `Conflict` while it
    /// is stopping, `Capacity`.
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.start_one(Operation::StartInstance, id).await
    }

    /// `DescribeInstances` by id. A recent launch of this handle that is not found is read again for the
    /// usual lag.
    ///
    /// Errors: `NotFound` for an id that EC2 does not know, or no longer knows.
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let info = self.describe_one(Operation::DescribeInstance, id).await?;
        Ok(info.into())
    }

    /// One `DescribeInstances` for each page. EC2 filters by tag and state, and this crate filters
    /// again. A list can be stale for the consistency window.
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::ListInstances;
        let items = self.stream_pages(operation, filter);
        collect_complete(&self.call(operation), items).await
    }

    /// `DescribeInstances` by client token, in all zones and for all types.
    ///
    /// Includes terminated instances for as long as EC2 shows them, except those whose launch failed late.
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let call = self.call(Operation::FindLaunch);
        let page_size = self.options.page_size.get();
        let filter = convert::value_filter("client-token", &token::pattern(token));
        let natives = self.client.list(&[filter], page_size).await;
        let natives =
            natives.map_err(|failure| failure.into_error(&call, ErrorContext::default()))?;
        let visible = by_token::visible(self.launches_that_count(natives).0);
        Ok(LaunchRecord::from_instances(infos(&call, &visible)?))
    }

    /// `GetCallerIdentity` of STS: partition, account and region, such as `aws/123456789012/eu-west-1`. Sent with
    /// each call, because the credentials of a handle may change.
    ///
    /// `None` if [`Ec2Options::report_account`] is off. Errors: `Unauthenticated` without valid credentials.
    async fn account_id(&self) -> Result<Option<AccountId>> {
        let Some(account) = &self.account else {
            return Ok(None);
        };
        let call = self.call(Operation::AccountId);
        let read = account.read().await;
        read.map(Some)
            .map_err(|failure| failure.into_error(&call, ErrorContext::default()))
    }

    /// One `TerminateInstances` for 1,000 instances. If EC2 refuses the call because of one id, the
    /// others are sent again without it.
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let operation = Operation::TerminateInstances;
        self.change_all(operation, Change::Terminate, ids).await
    }

    /// One `StopInstances` for 1,000 instances, split as for terminations.
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let operation = Operation::StopInstances;
        self.change_all(operation, Change::Stop, ids).await
    }

    /// One `StartInstances` for 1,000 instances, split as for terminations, then one read of all.
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.start_all(Operation::StartInstances, ids).await
    }

    /// One `DescribeInstances` for 1,000 instances; if an id is unknown, again by filter, which
    /// omits it.
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let infos = self.describe_all(Operation::DescribeInstances, ids).await;
        let status = |info: Result<InstanceInfo>| info.map(InstanceStatus::from);
        infos.into_iter().map(status).collect()
    }

    /// Like [`list_instances`](InstanceProvisioner::list_instances), page by page. EC2 reports no
    /// gaps.
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.stream_pages(Operation::StreamInstances, filter)
    }

    /// Two reads, then `CreateTags` and `DeleteTags`, each only if the change has such tags, for the instance
    /// and for the disks and network interfaces that are deleted with it. New tags are set before old ones are
    /// removed, so an instance is never without both. The two calls are not atomic: if the second one fails, the
    /// effect is unknown.
    ///
    /// Errors: an invalid value if the result would exceed EC2's limits; `WrongState` if the instance
    /// has ended.
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.change_tags(id, change).await
    }

    /// A read, then `RebootInstances`. EC2 reboots softly and resets the instance if that takes
    /// minutes, so soft and hard are the same.
    ///
    /// Errors: `WrongState` unless it runs.
    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        let operation = Operation::RebootInstance;
        let running = [CloudInstanceState::Running];
        self.describe_in_state(operation, id, &running, "running")
            .await?;
        let rebooted = self.client.reboot(id).await;
        rebooted
            .map_err(|failure| failure.into_error(&self.call(operation), self.error_context(id)))
    }

    /// A read, then `ModifyInstanceAttribute`.
    ///
    /// Errors: `WrongState` unless it is stopped; an invalid value for a type that EC2 does not know.
    /// Missing capacity shows at the next start.
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let operation = Operation::ResizeInstance;
        let stopped = [CloudInstanceState::Stopped];
        self.describe_in_state(operation, id, &stopped, "stopped")
            .await?;
        let resized = self.client.resize(id, to.as_str()).await;
        resized.map_err(|failure| failure.into_error(&self.call(operation), self.error_context(id)))
    }

    /// A read, then `GetConsoleOutput`: what EC2 has captured last, which can be minutes old.
    ///
    /// Empty if EC2 has captured nothing yet. Errors: `WrongState` if it has ended.
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let operation = Operation::ConsoleOutput;
        let call = self.call(operation);
        let info = self.describe_one(operation, id).await?;
        if info.state.is_ending() {
            return Err(call.wrong_state(id, info.state, "not terminated"));
        }
        let output = self.client.console_output(id).await;
        let error = |failure: Failure| failure.into_error(&call, self.error_context(id));
        let (encoded, captured_at) = output.map_err(error)?;
        let text = encoded
            .as_deref()
            .map_or(Some(String::new()), convert::console_text);
        let not_base64 = || call.unexpected(Effect::None, "the console output is not base64");
        let mut output = ConsoleOutput::new(text.ok_or_else(not_base64)?);
        output.captured_at = captured_at.as_ref().and_then(convert::time);
        Ok(output)
    }

    /// A read, then the address of the page of the AWS console that connects to the instance. The
    /// user signs in there; the address contains no secret.
    ///
    /// Errors: `WrongState` unless it runs.
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let operation = Operation::ConsoleSession;
        let running = [CloudInstanceState::Running];
        self.describe_in_state(operation, id, &running, "running")
            .await?;
        let region = self.region.as_deref().unwrap_or("us-east-1");
        Ok(ConsoleSession::new(format!(
            "https://{region}.console.aws.amazon.com/ec2/home?region={region}#ConnectToInstance:instanceId={id}"
        )))
    }

    /// A read, `DescribeImages` by name, then `CreateImage` without a reboot. An image of the same
    /// name and instance is returned as the result of an earlier attempt, also if EC2 knows it only when the
    /// image is created.
    ///
    /// Errors: `Conflict` if another image has the name; `WrongState` unless it runs or is stopped.
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.create_snapshot_image(id, request).await
    }

    /// `DescribeImages`, `CreateTags` on the image's snapshots, `DeregisterImage`, then `DeleteSnapshot` for each. If
    /// the image is gone, `DescribeSnapshots` by the tag finds what an earlier deletion left. A snapshot that another
    /// image uses is kept.
    ///
    /// Errors: `Conflict` without the tag that `snapshot_image` sets, and while the image is being created.
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.delete_created_image(image).await
    }
}
