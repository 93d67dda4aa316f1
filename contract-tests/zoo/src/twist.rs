//! A memory cloud with one thing twisted: how mutants and benign oddities are made small.

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
    BoxStream, Call, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest,
    TagChange, Zone,
};

use super::{Factory, MemoryHarness};
use fleetwright_contract_tests::{ExternalActor, Faults, Harness, Oracle, StateWaiter, Time};

/// Where a twisted call comes through.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The sound handle behind the twisted one.
    pub inner: &'a dyn InstanceProvisioner,
    /// Which handle of the account it is, from 1.
    pub handle: usize,
    /// The harness, with the cloud itself.
    pub harness: &'a MemoryHarness,
}

impl At<'_> {
    /// The truth about an instance, without a call on the wire.
    pub fn truth(&self, id: &InstanceId) -> Option<fleetwright_memory::Truth> {
        self.harness.cloud().oracle().instance(id)
    }

    /// The state that an instance is truly in.
    pub fn state(&self, id: &InstanceId) -> Option<CloudInstanceState> {
        self.truth(id).map(|truth| truth.info.state)
    }

    /// The maker of errors of a call.
    pub fn call(&self, operation: Operation) -> Call {
        Call::new(self.inner.capabilities().provider.as_str(), operation)
    }
}

impl fmt::Debug for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handle {}", self.handle)
    }
}

/// What is twisted: every method does what the sound handle does, unless it is overridden. One value
/// serves all handles of an account, so a twist can remember things.
#[async_trait]
#[expect(
    missing_docs,
    reason = "each is the method of the same name of the provisioner or the harness; `opened` tells of a new handle"
)]
pub trait Twist: Send + Sync {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        sound.clone()
    }
    /// What is declared once [`has_turned`](Self::has_turned).
    fn capabilities_later(&self, sound: &Capabilities) -> Capabilities {
        self.capabilities(sound)
    }
    /// Whether the later declaration is in force.
    fn has_turned(&self) -> bool {
        false
    }
    /// What the handle's debug output shows besides.
    fn debug(&self) -> String {
        String::new()
    }
    fn state_waiter(&self) -> Option<Arc<dyn StateWaiter>> {
        None
    }
    fn opened(&self, _handle: usize) {}
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        sound
    }
    async fn launch_instance(&self, at: At<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        at.inner.launch_instance(config).await
    }
    async fn terminate_instance(&self, at: At<'_>, id: &InstanceId) -> Result<()> {
        at.inner.terminate_instance(id).await
    }
    async fn stop_instance(&self, at: At<'_>, id: &InstanceId) -> Result<()> {
        at.inner.stop_instance(id).await
    }
    async fn start_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        at.inner.start_instance(id).await
    }
    async fn describe_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceStatus> {
        at.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.list_instances(filter).await
    }
    async fn find_launch(&self, at: At<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        at.inner.find_launch(token).await
    }
    async fn launch_instances(
        &self,
        at: At<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.launch_instances(config, count).await
    }
    async fn terminate_instances(&self, at: At<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        at.inner.terminate_instances(ids).await
    }
    async fn stop_instances(&self, at: At<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        at.inner.stop_instances(ids).await
    }
    async fn start_instances(&self, at: At<'_>, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        at.inner.start_instances(ids).await
    }
    async fn describe_instances(
        &self,
        at: At<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        at.inner.describe_instances(ids).await
    }
    async fn update_tags(&self, at: At<'_>, id: &InstanceId, change: &TagChange) -> Result<()> {
        at.inner.update_tags(id, change).await
    }
    async fn reboot_instance(&self, at: At<'_>, id: &InstanceId, how: Reboot) -> Result<()> {
        at.inner.reboot_instance(id, how).await
    }
    async fn resize_instance(&self, at: At<'_>, id: &InstanceId, to: &InstanceType) -> Result<()> {
        at.inner.resize_instance(id, to).await
    }
    async fn reimage_instance(&self, at: At<'_>, id: &InstanceId, image: &ImageId) -> Result<()> {
        at.inner.reimage_instance(id, image).await
    }
    async fn console_output(&self, at: At<'_>, id: &InstanceId) -> Result<ConsoleOutput> {
        at.inner.console_output(id).await
    }
    async fn console_session(&self, at: At<'_>, id: &InstanceId) -> Result<ConsoleSession> {
        at.inner.console_session(id).await
    }
    async fn snapshot_image(
        &self,
        at: At<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        at.inner.snapshot_image(id, request).await
    }
    fn stream_instances<'a>(
        &'a self,
        at: At<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        at.inner.stream_instances(filter)
    }
}

/// A handle with a twist.
pub struct Twisted {
    inner: Arc<dyn InstanceProvisioner>,
    twist: Arc<dyn Twist>,
    harness: MemoryHarness,
    handle: usize,
    capabilities: Capabilities,
    later: Capabilities,
}

impl Twisted {
    fn at(&self) -> At<'_> {
        At {
            inner: &*self.inner,
            handle: self.handle,
            harness: &self.harness,
        }
    }
}

impl fmt::Debug for Twisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Twisted({:?}{})", self.inner, self.twist.debug())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Twisted {
    fn capabilities(&self) -> &Capabilities {
        if self.twist.has_turned() {
            &self.later
        } else {
            &self.capabilities
        }
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.twist.launch_instance(self.at(), config).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.twist.terminate_instance(self.at(), id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.twist.stop_instance(self.at(), id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.twist.start_instance(self.at(), id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.twist.describe_instance(self.at(), id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.twist.list_instances(self.at(), filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.twist.find_launch(self.at(), token).await
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.twist.launch_instances(self.at(), config, count).await
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.twist.terminate_instances(self.at(), ids).await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.twist.stop_instances(self.at(), ids).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.twist.start_instances(self.at(), ids).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.twist.describe_instances(self.at(), ids).await
    }
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.twist.update_tags(self.at(), id, change).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.twist.reboot_instance(self.at(), id, how).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.twist.resize_instance(self.at(), id, to).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.twist.reimage_instance(self.at(), id, image).await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.twist.console_output(self.at(), id).await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.twist.console_session(self.at(), id).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.twist.snapshot_image(self.at(), id, request).await
    }
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.twist.stream_instances(self.at(), filter)
    }
}

/// A harness whose handles have a twist.
pub struct TwistedHarness {
    base: MemoryHarness,
    twist: Arc<dyn Twist>,
    opened: AtomicUsize,
}

impl TwistedHarness {
    /// Twists the handles of `base`.
    pub fn new(base: MemoryHarness, twist: impl Twist + 'static) -> Self {
        Self {
            base,
            twist: Arc::new(twist),
            opened: AtomicUsize::new(0),
        }
    }

    /// A factory of twisted accounts: a new twist for each.
    pub fn factory<T: Twist + Default + 'static>() -> Factory {
        Self::factory_on::<T>(MemoryHarness::new)
    }

    /// A factory of twisted accounts on a cloud with other knobs.
    pub fn factory_on<T: Twist + Default + 'static>(base: fn() -> MemoryHarness) -> Factory {
        Arc::new(move || Arc::new(Self::new(base(), T::default())))
    }
}

impl fmt::Debug for TwistedHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwistedHarness")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Harness for TwistedHarness {
    fn name(&self) -> String {
        "twisted memory".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        let inner = self.base.open().await;
        let capabilities = self.twist.capabilities(inner.capabilities());
        let handle = self.opened.fetch_add(1, Ordering::SeqCst) + 1;
        self.twist.opened(handle);
        let later = self.twist.capabilities_later(inner.capabilities());
        Arc::new(Twisted {
            inner,
            twist: Arc::clone(&self.twist),
            harness: self.base.clone(),
            handle,
            capabilities,
            later,
        })
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
    fn other_image(&self) -> Option<ImageId> {
        self.base.other_image()
    }
    fn other_type(&self) -> Option<InstanceType> {
        self.base.other_type()
    }
    fn zone(&self) -> Option<Zone> {
        self.base.zone()
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.base.oracle().map(|sound| self.twist.oracle(sound))
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.base.faults()
    }
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        self.base.external_actor()
    }
    fn state_waiter(&self) -> Arc<dyn StateWaiter> {
        self.twist
            .state_waiter()
            .unwrap_or_else(|| self.base.state_waiter())
    }
}
