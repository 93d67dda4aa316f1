//! The account: the state that all handles share and that outlives them.
//!
//! Owns the lock around the engine and the counters of calls. It never waits while it holds a lock,
//! and it never applies a fault: that is the job of the [wire](crate::wire).

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright::{AccountId, Capabilities};
use fleetwright_chaos::{Clock, TokenBucket};

use crate::{
    ExternalActor, Faults, MemoryCloudBuilder, MemoryProvisioner, Oracle,
    config::Knobs,
    engine::World,
    error::NativeError,
    wire::{Wire, WireCall},
};

/// A simulated cloud account. Clones refer to the same account.
///
/// The account outlives its handles, as a cloud outlives the processes that use it: drop every
/// [`MemoryProvisioner`] and open a new one, and every instance, launch token and image is still
/// there.
///
/// # Example
///
/// A launch whose response is lost is found again by its token, from a new handle:
///
/// ```
/// use fleetwright::{Effect, InstanceConfig, InstanceProvisioner, LaunchRecord, LaunchToken};
/// use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, WireCall};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cloud = MemoryCloud::new();
/// cloud.faults().add(Rule::nth(WireCall::Launch, 1, Fault::Lost(Phase::After)));
///
/// let config = InstanceConfig::builder("image-1", "small").launch_token("job-7").build()?;
/// let error = cloud.provisioner().launch_instance(&config).await.unwrap_err();
/// assert_eq!(error.effect(), Effect::Unknown);
///
/// let record = cloud.provisioner().find_launch(&LaunchToken::new("job-7")?).await?;
/// assert!(matches!(record, LaunchRecord::Found(instances) if instances.len() == 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemoryCloud {
    shared: Arc<Shared>,
}

/// The state that the account's handles share.
pub(crate) struct Shared {
    pub(crate) capabilities: Capabilities,
    pub(crate) account: AccountId,
    /// The network time of a call, both directions together.
    pub(crate) latency: Duration,
    pub(crate) faults: Faults,
    /// The token bucket of each throttled call.
    buckets: BTreeMap<WireCall, TokenBucket>,
    /// How many times each call was sent.
    calls: Mutex<BTreeMap<WireCall, u64>>,
    world: Mutex<World>,
}

impl MemoryCloud {
    /// Creates an empty account of a well-behaved cloud: every default of
    /// [`MemoryCloudBuilder`] applies.
    ///
    /// Create it inside a tokio runtime: the default clock is tokio's, so a paused runtime pauses
    /// the cloud.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for an account with other settings.
    pub fn builder() -> MemoryCloudBuilder {
        MemoryCloudBuilder::new()
    }

    /// Creates the account from the knobs of the builder.
    pub(crate) fn from_knobs(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let bucket = |(call, (period, burst)): (&WireCall, &(Duration, _))| {
            (*call, TokenBucket::new(*period, *burst, Arc::clone(&clock)))
        };
        let buckets = knobs.buckets.iter().map(bucket).collect();
        Self {
            shared: Arc::new(Shared {
                capabilities: knobs.capabilities.clone(),
                account: knobs.account.clone().unwrap_or_else(next_account),
                latency: knobs.latency,
                faults: Faults::new(),
                buckets,
                calls: Mutex::new(BTreeMap::new()),
                world: Mutex::new(World::new(knobs, clock)),
            }),
        }
    }

    /// Opens a new handle on the account, as a process that has just started would.
    ///
    /// Handles share the account and nothing else: a handle remembers only its own recent launches,
    /// and a [`Fault::Crash`](crate::Fault::Crash) disables only the handle that it hits.
    pub fn provisioner(&self) -> MemoryProvisioner {
        MemoryProvisioner::new(Wire::new(Arc::clone(&self.shared)))
    }

    /// Returns the true state of the account, read past its API.
    pub fn oracle(&self) -> Oracle {
        Oracle::new(Arc::clone(&self.shared))
    }

    /// Returns an external actor: it changes the account as a person at the cloud's console, another
    /// program or the cloud itself would.
    pub fn external_actor(&self) -> ExternalActor {
        ExternalActor::new(Arc::clone(&self.shared))
    }

    /// Returns the fault plan for all calls between the handles and the cloud. Add rules at any
    /// time; they count calls from the moment at which they were added.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }
}

impl Default for MemoryCloud {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    /// Counts a call and returns its number among all calls of the account, starting at 1.
    pub(crate) fn count(&self, call: WireCall) -> u64 {
        let mut calls = lock(&self.calls);
        *calls.entry(call).or_default() += 1;
        calls.values().sum()
    }

    /// Returns how many times each call was sent.
    pub(crate) fn calls(&self) -> BTreeMap<WireCall, u64> {
        lock(&self.calls).clone()
    }

    /// Runs `work` in the cloud, unless the call is throttled.
    pub(crate) fn handle<T>(
        &self,
        call: WireCall,
        work: impl FnOnce(&mut World) -> Result<T, NativeError>,
    ) -> Result<T, NativeError> {
        if let Some(bucket) = self.buckets.get(&call) {
            bucket
                .take(std::num::NonZeroU32::MIN)
                .map_err(NativeError::Throttled)?;
        }
        self.with_world(work)
    }

    /// Runs `work` on the account after all transitions that are due by now.
    pub(crate) fn with_world<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        let mut world = lock(&self.world);
        world.run_due_events();
        work(&mut world)
    }
}

impl fmt::Debug for Shared {
    /// Omits the contents of the account: they may be large, and console output may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("provider", &self.capabilities.provider)
            .finish_non_exhaustive()
    }
}

/// Returns the id of an account that no other cloud of the process has.
fn next_account() -> AccountId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    #[expect(
        clippy::expect_used,
        reason = "letters, a slash and digits are a valid name"
    )]
    AccountId::new(format!("memory/{number}")).expect("a valid name")
}

/// Locks even after a panic: a panic in one test thread must not fail every other user.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
