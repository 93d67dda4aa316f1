//! The trait on EC2: only the order of calls.

use std::{collections::HashMap, fmt, num::NonZeroU32, slice, sync::Mutex};

use aws_config::{BehaviorVersion, SdkConfig};
use fleetwright::{
    BoxStream, Call, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, Effect,
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, InvalidValue, LaunchRecord, LaunchToken, ListItem, Operation,
    Reboot, Result, RetryAdvice, SnapshotRequest, TagChange, async_trait,
};
use fleetwright_provider_support::{RecentLaunches, RecentTokens, collect_complete};

use crate::{
    Ec2LaunchConfig, Ec2Options,
    batch::Change,
    client::Ec2Client,
    convert,
    error::{ErrorContext, Failure},
    read::infos,
};

/// The tag that says which instance an image was made of.
const SOURCE_TAG: &str = "fleetwright:source";

/// EC2 in one region of one account.
pub struct Ec2Provisioner {
    pub(crate) client: Ec2Client,
    pub(crate) launch: Ec2LaunchConfig,
    pub(crate) options: Ec2Options,
    pub(crate) capabilities: Capabilities,
    region: Option<String>,
    pub(crate) fresh: RecentLaunches,
    pub(crate) used: RecentTokens,
    /// The names of root devices. They never change for an image.
    pub(crate) root_devices: Mutex<HashMap<ImageId, String>>,
}

impl Ec2Provisioner {
    /// EC2 with the region and the credentials that aws-config finds: the environment, profiles,
    /// web identities, the metadata service.
    pub async fn from_env(launch: Ec2LaunchConfig) -> Result<Self, InvalidValue> {
        let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
        Self::new(&config, launch, Ec2Options::default())
    }

    /// EC2 as `config` says: its region, credentials and endpoint count, its retries do not.
    pub fn new(
        config: &SdkConfig,
        launch: Ec2LaunchConfig,
        options: Ec2Options,
    ) -> Result<Self, InvalidValue> {
        launch.check()?;
        let client = Ec2Client::new(config.into(), options.patience);
        Ok(Self {
            client,
            launch,
            capabilities: options.capabilities(),
            options,
            region: config.region().map(ToString::to_string),
            fresh: RecentLaunches::new(),
            used: RecentTokens::new(),
            root_devices: Mutex::default(),
        })
    }

    pub(crate) fn call(&self, operation: Operation) -> Call {
        Call::new(self.capabilities.provider.as_str(), operation)
    }

    pub(crate) fn about<'a>(&self, id: &'a InstanceId) -> ErrorContext<'a> {
        ErrorContext {
            instance: Some(id),
            consistency_window: self.capabilities.consistency_window,
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

/// The one answer of a batch of one.
fn only<T>(call: &Call, answers: Vec<Result<T>>) -> Result<T> {
    let lost = || Err(call.unexpected(Effect::Unknown, "a call has no answer"));
    answers.into_iter().next().unwrap_or_else(lost)
}

#[async_trait]
impl InstanceProvisioner for Ec2Provisioner {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = self.call(Operation::LaunchInstance);
        let launched = self.launched(&call, config, NonZeroU32::MIN).await?;
        let lost = || call.unexpected(Effect::Unknown, "EC2 launched nothing and says no reason");
        launched.into_iter().next().ok_or_else(lost)
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launched(&self.call(Operation::LaunchInstances), config, count)
            .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        let answers = self
            .changed(operation, Change::Terminate, slice::from_ref(id))
            .await;
        only(&self.call(operation), answers)
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::StopInstance;
        let answers = self
            .changed(operation, Change::Stop, slice::from_ref(id))
            .await;
        only(&self.call(operation), answers)
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let operation = Operation::StartInstance;
        let answers = self
            .changed(operation, Change::Start, slice::from_ref(id))
            .await;
        only(&self.call(operation), answers)?;
        self.started(operation, id).await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let info = self.one(Operation::DescribeInstance, id).await?;
        Ok(info.into())
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let operation = Operation::ListInstances;
        collect_complete(&self.call(operation), self.pages(operation, filter)).await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let call = self.call(Operation::FindLaunch);
        let natives = self.with_token(token).await;
        let natives =
            natives.map_err(|failure| failure.into_error(&call, ErrorContext::default()))?;
        Ok(LaunchRecord::from_instances(infos(&call, &natives)?))
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.changed(Operation::TerminateInstances, Change::Terminate, ids)
            .await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.changed(Operation::StopInstances, Change::Stop, ids)
            .await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let operation = Operation::StartInstances;
        let changed = self.changed(operation, Change::Start, ids).await;
        let started: Vec<_> = ids
            .iter()
            .zip(&changed)
            .filter(|(_, answer)| answer.is_ok())
            .collect();
        let again: Vec<_> = started.into_iter().map(|(id, _)| id.clone()).collect();
        let mut read = self.described(operation, &again).await.into_iter();
        changed
            .into_iter()
            .map(|answer| match answer {
                Ok(()) => {
                    let lost = || {
                        Err(self
                            .call(operation)
                            .unexpected(Effect::Done, "no answer for it"))
                    };
                    let info = read.next().unwrap_or_else(lost);
                    info.map_err(|error| error.with_effect(Effect::Done))
                }
                Err(error) => Err(error),
            })
            .collect()
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let infos = self.described(Operation::DescribeInstances, ids).await;
        infos
            .into_iter()
            .map(|info| info.map(InstanceStatus::from))
            .collect()
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.pages(Operation::StreamInstances, filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let operation = Operation::UpdateTags;
        let call = self.call(operation);
        let alive = [
            CloudInstanceState::Pending,
            CloudInstanceState::Running,
            CloudInstanceState::Stopping,
            CloudInstanceState::Stopped,
        ];
        let before = self
            .in_state(operation, id, &alive, "not terminated")
            .await?;
        let after = change
            .apply(&before.tags)
            .map_err(|value| call.invalid(value))?;
        self.capabilities
            .tags
            .check(&after)
            .map_err(|value| call.invalid(value))?;
        let told = |failure: Failure| failure.into_error(&call, self.about(id));
        if !change.remove.is_empty() {
            self.client
                .remove_tags(id, &change.remove)
                .await
                .map_err(told)?;
        }
        if !change.set.is_empty() {
            self.client.set_tags(id, &change.set).await.map_err(told)?;
        }
        Ok(())
    }

    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        let operation = Operation::RebootInstance;
        let running = [CloudInstanceState::Running];
        self.in_state(operation, id, &running, "running").await?;
        let call = self.call(operation);
        let sent = self.client.reboot(id).await;
        sent.map_err(|failure| failure.into_error(&call, self.about(id)))
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let operation = Operation::ResizeInstance;
        let stopped = [CloudInstanceState::Stopped];
        self.in_state(operation, id, &stopped, "stopped").await?;
        let call = self.call(operation);
        let sent = self.client.resize(id, to.as_str()).await;
        sent.map_err(|failure| failure.into_error(&call, self.about(id)))
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let operation = Operation::ConsoleOutput;
        let call = self.call(operation);
        let info = self.one(operation, id).await?;
        if info.state.is_ending() {
            return Err(call.wrong_state(id, info.state, "not terminated"));
        }
        let sent = self.client.console(id).await;
        let (text, at) = sent.map_err(|failure| failure.into_error(&call, self.about(id)))?;
        let text = text
            .as_deref()
            .map_or(Some(String::new()), convert::console_text);
        let unreadable = || call.unexpected(Effect::None, "the console's output is no base64");
        let mut output = ConsoleOutput::new(text.ok_or_else(unreadable)?);
        output.captured_at = at.as_ref().and_then(convert::time);
        Ok(output)
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let operation = Operation::ConsoleSession;
        let running = [CloudInstanceState::Running];
        self.in_state(operation, id, &running, "running").await?;
        let region = self.region.as_deref().unwrap_or("us-east-1");
        Ok(ConsoleSession::new(format!(
            "https://{region}.console.aws.amazon.com/ec2/home?region={region}#ConnectToInstance:instanceId={id}"
        )))
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let operation = Operation::SnapshotImage;
        let call = self.call(operation);
        let states = [CloudInstanceState::Running, CloudInstanceState::Stopped];
        self.in_state(operation, id, &states, "running or stopped")
            .await?;
        let told = |failure: Failure| failure.into_error(&call, self.about(id));
        let looked = self.client.image_named(&request.name, SOURCE_TAG).await;
        let known = looked.map_err(|failure| told(failure).with_effect(Effect::None))?;
        let name = match known {
            Some((image, source)) if source.as_deref() == Some(id.as_str()) => image,
            Some(_) => {
                let message = format!(
                    "another image is named {}; choose another name",
                    request.name
                );
                return Err(call.conflict(&message, RetryAdvice::Never));
            }
            None => {
                let mut tags = convert::native_tags(&request.tags);
                tags.push(convert::native_tag(SOURCE_TAG, id.as_str()));
                let made = self
                    .client
                    .make_image(id, &request.name, tags)
                    .await
                    .map_err(told)?;
                made.ok_or_else(|| {
                    call.unexpected(Effect::Unknown, "EC2 made an image without an id")
                })?
            }
        };
        ImageId::new(name).map_err(|error| call.unexpected(Effect::Done, &error.to_string()))
    }
}
