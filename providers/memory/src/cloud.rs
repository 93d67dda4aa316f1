//! The account: what all handles share and what outlives them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright::Capabilities;
use fleetwright_chaos::{Clock, TokenBucket};

use crate::{
    Faults, MemoryCloudBuilder, MemoryProvisioner, Operator, Oracle,
    config::Knobs,
    engine::World,
    error::Refusal,
    wire::{Wire, WireCall},
};

/// A simulated cloud account. Clones are the same account.
///
/// It outlives its handles, as a cloud outlives the processes that use it: drop every
/// [`MemoryProvisioner`], take a new one, and everything is still there.
#[derive(Clone, Debug)]
pub struct MemoryCloud {
    shared: Arc<Shared>,
}

/// What the account's handles share.
pub(crate) struct Shared {
    pub(crate) capabilities: Capabilities,
    pub(crate) latency: Duration,
    pub(crate) faults: Faults,
    buckets: BTreeMap<WireCall, TokenBucket>,
    calls: Mutex<BTreeMap<WireCall, u64>>,
    world: Mutex<World>,
}

impl MemoryCloud {
    /// An empty account of a well-behaved cloud.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An account whose knobs can be turned first.
    pub fn builder() -> MemoryCloudBuilder {
        MemoryCloudBuilder::new()
    }

    pub(crate) fn begin(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let bucket = |(call, (period, burst)): (&WireCall, &(Duration, _))| {
            (*call, TokenBucket::new(*period, *burst, Arc::clone(&clock)))
        };
        let buckets = knobs.buckets.iter().map(bucket).collect();
        Self {
            shared: Arc::new(Shared {
                capabilities: knobs.capabilities.clone(),
                latency: knobs.latency,
                faults: Faults::new(),
                buckets,
                calls: Mutex::new(BTreeMap::new()),
                world: Mutex::new(World::new(knobs, clock)),
            }),
        }
    }

    /// A new handle on the account, as a process that has just started would open it.
    pub fn provisioner(&self) -> MemoryProvisioner {
        MemoryProvisioner::new(Wire::new(Arc::clone(&self.shared)))
    }

    /// The truth, out of band.
    pub fn oracle(&self) -> Oracle {
        Oracle::new(Arc::clone(&self.shared))
    }

    /// Changes from outside: what people at the console and the cloud itself do.
    pub fn operator(&self) -> Operator {
        Operator::new(Arc::clone(&self.shared))
    }

    /// What goes wrong between the handles and the cloud.
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
    /// Counts a call and answers its number among all of them.
    pub(crate) fn count(&self, call: WireCall) -> u64 {
        let mut calls = lock(&self.calls);
        *calls.entry(call).or_default() += 1;
        calls.values().sum()
    }

    /// How often each call was made.
    pub(crate) fn calls(&self) -> BTreeMap<WireCall, u64> {
        lock(&self.calls).clone()
    }

    /// Lets the cloud do `work` now, unless the call is throttled.
    pub(crate) fn serve<T>(
        &self,
        call: WireCall,
        work: impl FnOnce(&mut World) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if let Some(bucket) = self.buckets.get(&call) {
            bucket
                .take(std::num::NonZeroU32::MIN)
                .map_err(Refusal::Throttled)?;
        }
        self.look(work)
    }

    /// The account as it is now.
    pub(crate) fn look<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        let mut world = lock(&self.world);
        world.catch_up();
        work(&mut world)
    }
}

impl fmt::Debug for Shared {
    /// Shows nothing of what is in the account: it may be large, and consoles are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("provider", &self.capabilities.provider)
            .finish_non_exhaustive()
    }
}

/// A lock whose holder never leaves it half changed on purpose; a panic elsewhere must not spread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
