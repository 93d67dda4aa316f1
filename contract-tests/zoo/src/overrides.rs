//! The memory cloud with some calls overridden: how mutants and benign backends are written in a few
//! lines.
//!
//! Owns the trait with all overridable calls, and the harness that applies it. Everything that is not
//! overridden is passed to the correct handle.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession,
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Placement,
    Reboot, Result, SnapshotRequest, TagChange, Zone,
};

use super::{Factory, MemoryHarness};
use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, NotApplicable, Oracle, StateWaiter, Time,
};

/// What an overridden call can use.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The correct handle behind the overridden one.
    pub inner: &'a dyn InstanceProvisioner,
    /// The number of the handle within the account, from 1.
    pub handle: usize,
    /// Whether the handle was opened with other launch options.
    pub other_options: bool,
    /// The harness, with the cloud itself.
    pub harness: &'a MemoryHarness,
}

impl CallContext<'_> {
    /// Returns the truth about an instance, without a call on the wire.
    pub fn truth(&self, id: &InstanceId) -> Option<fleetwright_memory::OracleInstance> {
        self.harness.cloud().oracle().instance(id)
    }

    /// Returns the true state of an instance.
    pub fn state(&self, id: &InstanceId) -> Option<CloudInstanceState> {
        self.truth(id).map(|truth| truth.info.state)
    }

    /// Returns the constructor of errors for a call.
    pub fn call(&self, operation: Operation) -> Call {
        Call::new(self.inner.capabilities().provider.as_str(), operation)
    }
}

impl fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handle {}", self.handle)
    }
}

/// The calls of a broken or unusual backend. Each method defaults to the correct handle's behaviour.
/// One value serves all handles of an account, so it can keep state.
#[async_trait]
#[expect(
    missing_docs,
    reason = "each field overrides the method of the same name of the provisioner or the harness; `opened` is called for every new handle"
)]
pub trait Override: Send + Sync {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        sound.clone()
    }
    /// Returns the capabilities to declare once [`capabilities_changed`](Self::capabilities_changed).
    fn capabilities_later(&self, sound: &Capabilities) -> Capabilities {
        self.capabilities(sound)
    }
    /// Returns whether the later capabilities are declared now.
    fn capabilities_changed(&self) -> bool {
        false
    }
    /// Returns text to append to the handle's debug output.
    fn debug(&self) -> String {
        String::new()
    }
    fn state_waiter(&self) -> Option<Arc<dyn StateWaiter>> {
        None
    }
    fn opened(&self, _handle: usize) {}
    fn zone(&self, sound: Option<Zone>) -> Option<Zone> {
        sound
    }
    fn not_applicable(&self) -> Vec<NotApplicable> {
        Vec::new()
    }
    fn policy_tag_keys(&self) -> Vec<String> {
        Vec::new()
    }
    fn faults(&self, sound: Arc<dyn Faults>) -> Arc<dyn Faults> {
        sound
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        sound
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(config).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.terminate_instance(id).await
    }
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.stop_instance(id).await
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        at.inner.start_instance(id).await
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        at.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.list_instances(filter).await
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        at.inner.find_launch(token).await
    }
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        at.inner.account_id().await
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.launch_instances(config, count).await
    }
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        at.inner.terminate_instances(ids).await
    }
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        at.inner.stop_instances(ids).await
    }
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        at.inner.start_instances(ids).await
    }
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        at.inner.describe_instances(ids).await
    }
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        at.inner.update_tags(id, change).await
    }
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        at.inner.reboot_instance(id, how).await
    }
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        at.inner.resize_instance(id, to).await
    }
    async fn reimage_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        image: &ImageId,
    ) -> Result<()> {
        at.inner.reimage_instance(id, image).await
    }
    async fn console_output(&self, at: CallContext<'_>, id: &InstanceId) -> Result<ConsoleOutput> {
        at.inner.console_output(id).await
    }
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        at.inner.console_session(id).await
    }
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        at.inner.snapshot_image(id, request).await
    }
    async fn delete_image(&self, at: CallContext<'_>, image: &ImageId) -> Result<()> {
        at.inner.delete_image(image).await
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        at.inner.stream_instances(filter)
    }
}

/// A handle whose calls are overridden.
pub struct OverriddenProvisioner {
    inner: Arc<dyn InstanceProvisioner>,
    overrides: Arc<dyn Override>,
    harness: MemoryHarness,
    handle: usize,
    other_options: bool,
    capabilities: Capabilities,
    later: Capabilities,
}

impl OverriddenProvisioner {
    fn at(&self) -> CallContext<'_> {
        CallContext {
            inner: &*self.inner,
            handle: self.handle,
            other_options: self.other_options,
            harness: &self.harness,
        }
    }
}

impl fmt::Debug for OverriddenProvisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "OverriddenProvisioner({:?}{})",
            self.inner,
            self.overrides.debug()
        )
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for OverriddenProvisioner {
    fn capabilities(&self) -> &Capabilities {
        if self.overrides.capabilities_changed() {
            &self.later
        } else {
            &self.capabilities
        }
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.overrides.launch_instance(self.at(), config).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.overrides.terminate_instance(self.at(), id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.overrides.stop_instance(self.at(), id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.overrides.start_instance(self.at(), id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.overrides.describe_instance(self.at(), id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.overrides.list_instances(self.at(), filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.overrides.find_launch(self.at(), token).await
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.overrides.account_id(self.at()).await
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.overrides
            .launch_instances(self.at(), config, count)
            .await
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.overrides.terminate_instances(self.at(), ids).await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.overrides.stop_instances(self.at(), ids).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.overrides.start_instances(self.at(), ids).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.overrides.describe_instances(self.at(), ids).await
    }
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.overrides.update_tags(self.at(), id, change).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.overrides.reboot_instance(self.at(), id, how).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.overrides.resize_instance(self.at(), id, to).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.overrides.reimage_instance(self.at(), id, image).await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.overrides.console_output(self.at(), id).await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.overrides.console_session(self.at(), id).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.overrides.snapshot_image(self.at(), id, request).await
    }
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.overrides.delete_image(self.at(), image).await
    }
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.overrides.stream_instances(self.at(), filter)
    }
}

/// A memory harness whose handles are overridden.
pub struct OverrideHarness {
    base: MemoryHarness,
    overrides: Arc<dyn Override>,
    opened: AtomicUsize,
}

impl OverrideHarness {
    /// Overrides the handles of `base`.
    pub fn new(base: MemoryHarness, overrides: impl Override + 'static) -> Self {
        Self {
            base,
            overrides: Arc::new(overrides),
            opened: AtomicUsize::new(0),
        }
    }

    /// Returns a factory of accounts, each with a new `T`.
    pub fn factory<T: Override + Default + 'static>() -> Factory {
        Self::factory_on::<T>(MemoryHarness::new)
    }

    /// Returns a factory of accounts on another base, each with a new `T`.
    pub fn factory_on<T: Override + Default + 'static>(base: fn() -> MemoryHarness) -> Factory {
        Arc::new(move || Arc::new(Self::new(base(), T::default())))
    }

    /// Opens an overridden handle.
    async fn open_handle(&self, other_options: bool) -> Arc<dyn InstanceProvisioner> {
        let inner = self.base.open().await;
        let capabilities = self.overrides.capabilities(inner.capabilities());
        let handle = self.opened.fetch_add(1, Ordering::SeqCst) + 1;
        self.overrides.opened(handle);
        let later = self.overrides.capabilities_later(inner.capabilities());
        Arc::new(OverriddenProvisioner {
            inner,
            overrides: Arc::clone(&self.overrides),
            harness: self.base.clone(),
            handle,
            other_options,
            capabilities,
            later,
        })
    }
}

impl fmt::Debug for OverrideHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideHarness")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Harness for OverrideHarness {
    fn name(&self) -> String {
        "memory with overrides".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        self.open_handle(false).await
    }
    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        self.open_handle(true).await
    }
    fn config(&self) -> InstanceConfig {
        self.base.config()
    }
    fn unknown_id(&self) -> InstanceId {
        self.base.unknown_id()
    }
    fn time(&self) -> Time {
        self.base.time()
    }
    fn unknown_image(&self) -> Option<ImageId> {
        self.base.unknown_image()
    }
    fn unknown_type(&self) -> Option<InstanceType> {
        self.base.unknown_type()
    }
    fn other_image(&self) -> Option<ImageId> {
        self.base.other_image()
    }
    fn other_type(&self) -> Option<InstanceType> {
        self.base.other_type()
    }
    fn zone(&self) -> Option<Zone> {
        self.overrides.zone(self.base.zone())
    }
    fn not_applicable(&self) -> Vec<NotApplicable> {
        self.overrides.not_applicable()
    }
    fn policy_tag_keys(&self) -> Vec<String> {
        self.overrides.policy_tag_keys()
    }
    fn placement(&self) -> Placement {
        self.base.placement()
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.base.oracle().map(|sound| self.overrides.oracle(sound))
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.base.faults().map(|sound| self.overrides.faults(sound))
    }
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        self.base.external_actor()
    }
    fn secrets(&self) -> Vec<String> {
        self.base.secrets()
    }
    fn state_waiter(&self) -> Arc<dyn StateWaiter> {
        self.overrides
            .state_waiter()
            .unwrap_or_else(|| self.base.state_waiter())
    }
}
