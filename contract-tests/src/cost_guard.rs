//! The cost guard: limits how many instances a run against a real cloud has at once, and for how
//! long it launches more.
//!
//! Owns the count of instances over all handles of a run. It never terminates anything; the cleanup
//! after each clause does.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, Scope,
    SnapshotRequest, TagChange,
};

/// The most instances that a clause has at once in real time. With at least as many as
/// [`max_live`](CostLimits::max_live), the guard refuses no clause.
pub const MOST_IN_REAL_TIME: usize = 32;

/// The limits of a run against a real cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostLimits {
    /// The most instances that exist at once. Required; [`live::main`](crate::live::main) uses 8. About 35 clauses need
    /// more than that, and in real time none more than [`MOST_IN_REAL_TIME`].
    pub max_live: usize,
    /// How long after the start of the run instances may be launched. Required; [`live::main`](crate::live::main) uses an
    /// hour.
    pub max_time: Duration,
}

/// Counts the instances of all handles and clauses of a run, and refuses launches over the limits.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use fleetwright::{ErrorKind, InstanceConfig, InstanceProvisioner};
/// use fleetwright_contract_tests::cost_guard::{CostGuard, CostLimits, GuardedProvisioner};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let limits = CostLimits { max_live: 1, max_time: Duration::from_secs(3600) };
/// let guard = Arc::new(CostGuard::new(limits));
/// let handle = Arc::new(MemoryCloud::new().provisioner());
/// let handle = GuardedProvisioner::new(handle, Arc::clone(&guard));
/// let config = InstanceConfig::builder("image", "small").build().unwrap();
/// handle.launch_instance(&config).await.unwrap();
/// let error = handle.launch_instance(&config).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Quota);
/// assert!(guard.take_refusal().is_some());
/// # }
/// ```
#[derive(Debug)]
pub struct CostGuard {
    limits: CostLimits,
    start: Instant,
    state: Mutex<State>,
}

/// What the guard has counted. An instance counts in exactly one of the three places.
#[derive(Debug, Default)]
struct State {
    /// Instances that a launch has returned and no terminate was accepted for.
    live: BTreeSet<InstanceId>,
    /// Instances of launches in progress.
    in_progress: usize,
    /// Instances of launches that were dropped or whose outcome is unknown, by token. They may exist
    /// until a launch with the same token returns, or until the cleanup after the clause.
    unknown: Vec<(Option<LaunchToken>, usize)>,
    /// The reason of the last refusal that was not taken yet.
    refused: Option<String>,
}

impl CostGuard {
    /// Creates a guard. Its time starts now.
    pub fn new(limits: CostLimits) -> Self {
        Self {
            limits,
            start: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Returns the last refusal since the previous call of this method, with its reason.
    pub fn take_refusal(&self) -> Option<String> {
        self.with(|state| state.refused.take())
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut State) -> T) -> T {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reserves places for `count` instances, or returns why there are none.
    fn reserve(
        self: &Arc<Self>,
        config: &InstanceConfig,
        count: usize,
    ) -> Result<Reservation, String> {
        let CostLimits { max_live, max_time } = self.limits;
        let late = self.start.elapsed() > max_time;
        self.with(|state| {
            // A replay settles a launch of unknown outcome, so it is not another launch.
            let token = config.launch_token.clone();
            let another = |other: &Option<LaunchToken>| token.is_none() || *other != token;
            let unknown = state.unknown.iter().filter(|(other, _)| another(other));
            let unknown: usize = unknown.map(|(_, count)| count).sum();
            let live = state.live.len() + state.in_progress + unknown;
            let reason = if late {
                format!("cost guard: the run has taken longer than {max_time:?}, which is all that --max-minutes allows")
            } else if live + count > max_live {
                format!(
                    "cost guard: {live} instances exist, {count} more are requested, and --max-live allows {max_live}; \
                     a clause needs up to {MOST_IN_REAL_TIME}"
                )
            } else {
                state.in_progress += count;
                state.unknown.retain(|(other, _)| another(other));
                return Ok(Reservation {
                    guard: Arc::clone(self),
                    token,
                    count,
                    is_known: false,
                });
            };
            state.refused = Some(reason.clone());
            Err(reason)
        })
    }

    /// Call it after the cleanup of a clause, or of one case of it: launches of unknown outcome no longer count.
    pub fn finish_clause(&self) {
        self.with(|state| state.unknown.clear());
    }

    fn remove(&self, id: &InstanceId) {
        self.with(|state| state.live.remove(id));
    }
}

/// Places for instances. If a launch is dropped before it returns, its instances may exist, so its
/// places stay reserved until a launch with its token returns or the clause is over.
#[derive(Debug)]
struct Reservation {
    guard: Arc<CostGuard>,
    token: Option<LaunchToken>,
    count: usize,
    is_known: bool,
}

impl Reservation {
    /// Counts the instances of a launch that returned, and frees the other places.
    fn record(mut self, result: &Result<Vec<InstanceInfo>>) {
        let unknown = result
            .as_ref()
            .is_err_and(|error| error.effect() == Effect::Unknown);
        if unknown {
            return;
        }
        self.is_known = true;
        let created = match result {
            Ok(infos) => infos.as_slice(),
            Err(error) => error.survivors(),
        };
        self.guard.with(|state| {
            state.in_progress -= self.count;
            state
                .live
                .extend(created.iter().map(|info| info.id.clone()));
        });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_known {
            let token = self.token.take();
            self.guard.with(|state| {
                state.in_progress -= self.count;
                state.unknown.push((token, self.count));
            });
        }
    }
}

/// A handle whose launches the guard counts.
///
/// [`CostGuard`] shows a refused launch. Calls other than launches pass through:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use fleetwright::{InstanceFilter, InstanceProvisioner as _};
/// use fleetwright_contract_tests::cost_guard::{CostGuard, CostLimits, GuardedProvisioner};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let nothing = CostLimits { max_live: 0, max_time: Duration::ZERO };
/// let handle = Arc::new(MemoryCloud::new().provisioner());
/// let handle = GuardedProvisioner::new(handle, Arc::new(CostGuard::new(nothing)));
/// assert!(handle.list_instances(&InstanceFilter::default()).await.unwrap().is_empty());
/// # }
/// ```
#[derive(Debug)]
pub struct GuardedProvisioner {
    inner: Arc<dyn InstanceProvisioner>,
    guard: Arc<CostGuard>,
}

impl GuardedProvisioner {
    /// Wraps a handle. All handles of a run share one guard.
    pub fn new(inner: Arc<dyn InstanceProvisioner>, guard: Arc<CostGuard>) -> Self {
        Self { inner, guard }
    }

    fn reserve(
        &self,
        operation: Operation,
        config: &InstanceConfig,
        count: usize,
    ) -> Result<Reservation> {
        let call = Call::new(self.capabilities().provider.as_str(), operation);
        self.guard
            .reserve(config, count)
            .map_err(|reason| call.quota(Scope::Account, &reason))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for GuardedProvisioner {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let reservation = self.reserve(Operation::LaunchInstance, config, 1)?;
        let result = self.inner.launch_instance(config).await;
        reservation.record(&result.clone().map(|info| vec![info]));
        result
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let places = usize::try_from(count.get()).unwrap_or(usize::MAX);
        let reservation = self.reserve(Operation::LaunchInstances, config, places)?;
        let result = self.inner.launch_instances(config, count).await;
        reservation.record(&result);
        result
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let result = self.inner.terminate_instance(id).await;
        if result.is_ok() {
            self.guard.remove(id);
        }
        result
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let results = self.inner.terminate_instances(ids).await;
        for (id, _) in ids
            .iter()
            .zip(&results)
            .filter(|(_, result)| result.is_ok())
        {
            self.guard.remove(id);
        }
        results
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.inner.start_instance(id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.inner.describe_instance(id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.inner.list_instances(filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.inner.find_launch(token).await
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.inner.account_id().await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.stop_instances(ids).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.inner.start_instances(ids).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.inner.describe_instances(ids).await
    }
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.inner.stream_instances(filter)
    }
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.inner.update_tags(id, change).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.inner.reboot_instance(id, how).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.inner.resize_instance(id, to).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.inner.reimage_instance(id, image).await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.inner.console_output(id).await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.inner.console_session(id).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.inner.snapshot_image(id, request).await
    }
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.inner.delete_image(image).await
    }
}
