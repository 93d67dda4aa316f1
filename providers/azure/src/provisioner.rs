//! The trait on Azure: only the order of calls.

use std::{fmt, num::NonZeroU32, slice};

use fleetwright::{
    BoxStream, Call, Capabilities, ConsoleOutput, Effect, ImageId, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType, LaunchRecord,
    LaunchToken, ListItem, Operation, Reboot, RecentLaunches, RecentTokens, Result,
    SnapshotRequest, TagChange, async_trait, collect_complete,
};

use crate::{
    AzureCredentials, AzureLaunchConfig, AzureOptions,
    change::Change,
    cleanup::{AzureCleanup, CleanupOwner},
    client::AzureClient,
    error::ErrorContext,
    list::Reached,
    recent_deletions::RecentDeletions,
    removal::Remover,
};

/// Azure's virtual machines in one resource group.
pub struct AzureProvisioner {
    pub(crate) client: AzureClient,
    pub(crate) launch: AzureLaunchConfig,
    pub(crate) options: AzureOptions,
    pub(crate) capabilities: Capabilities,
    pub(crate) fresh: RecentLaunches,
    pub(crate) used: RecentTokens,
    pub(crate) deletions: RecentDeletions,
    pub(crate) cleanup: CleanupOwner,
    pub(crate) reached: Reached,
}

impl AzureProvisioner {
    /// Azure's public cloud with the credentials of the environment; see [`AzureCredentials::from_env`].
    pub fn from_env(launch: AzureLaunchConfig) -> Result<Self> {
        Self::new(
            AzureCredentials::from_env(),
            launch,
            AzureOptions::default(),
        )
    }

    /// Azure with these credentials. Nothing is asked of it yet.
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
            options.patience,
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
            fresh: RecentLaunches::new(),
            used: RecentTokens::new(),
            deletions,
            cleanup,
            reached: Reached::default(),
        })
    }

    /// The handle of the background cleanup, to wait for it or to shut it down.
    #[must_use]
    pub fn cleanup(&self) -> AzureCleanup {
        self.cleanup.handle()
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

impl fmt::Debug for AzureProvisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureProvisioner")
            .field("subscription", &self.launch.subscription)
            .field("resource_group", &self.launch.resource_group)
            .field("location", &self.launch.location)
            .finish_non_exhaustive()
    }
}

/// The one answer of a batch of one.
fn only<T>(call: &Call, answers: Vec<Result<T>>) -> Result<T> {
    let lost = || Err(call.unexpected(Effect::Unknown, "a call has no answer"));
    answers.into_iter().next().unwrap_or_else(lost)
}

#[async_trait]
impl InstanceProvisioner for AzureProvisioner {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = self.call(Operation::LaunchInstance);
        let launched = self.launch_all(&call, config, NonZeroU32::MIN).await?;
        only(&call, launched.into_iter().map(Ok).collect())
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.launch_all(&self.call(Operation::LaunchInstances), config, count)
            .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::TerminateInstance;
        let ids = slice::from_ref(id);
        let answers = self.changed(operation, Change::Terminate, ids).await;
        only(&self.call(operation), answers)
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let operation = Operation::StopInstance;
        let ids = slice::from_ref(id);
        let answers = self.changed(operation, Change::Stop, ids).await;
        only(&self.call(operation), answers)
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let operation = Operation::StartInstance;
        let ids = slice::from_ref(id);
        let answers = self.changed(operation, Change::Start, ids).await;
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
        self.find_launch_record(&self.call(Operation::FindLaunch), token)
            .await
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
        let there = ids
            .iter()
            .zip(&changed)
            .filter(|(_, answer)| answer.is_ok());
        let there: Vec<_> = there.map(|(id, _)| id).collect();
        let mut started = self.all_started(operation, &there).await.into_iter();
        let call = self.call(operation);
        let lost = || Err(call.unexpected(Effect::Unknown, "a call has no answer"));
        let answer = |answer: Result<()>| answer.and_then(|()| started.next().unwrap_or_else(lost));
        changed.into_iter().map(answer).collect()
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let infos = self.described(Operation::DescribeInstances, ids).await;
        let status = |info: Result<InstanceInfo>| info.map(InstanceStatus::from);
        infos.into_iter().map(status).collect()
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.pages(Operation::StreamInstances, filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.retagged(id, change).await
    }

    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        self.rebooted(id).await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.resized(id, to).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.console(id).await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.imaged(id, request).await
    }
}
