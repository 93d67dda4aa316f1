//! The knobs of the simulated cloud.
//!
//! Owns the settings with which a cloud is built. The [`ExternalActor`](crate::ExternalActor) can change some of
//! them later. All randomness comes from the seed, so the same seed and the same calls give the same
//! results.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use fleetwright::{
    AccountId, BatchLaunch, Capabilities, ImageId, InstanceType, Market, NativeCost, Operation,
    OptionalVerb, PlacementField, PublicAddress, TagLimits, Zone,
};
use fleetwright_chaos::{Clock, TokioClock};

use crate::{MemoryCloud, wire::WireCall};

/// How long each transition of an instance takes.
///
/// The defaults are 5 s to boot, 3 s to stop, 2 s to terminate and 8 s to reimage.
///
/// ```
/// use fleetwright_memory::Timing;
/// use std::time::Duration;
///
/// let mut timing = Timing::all(Duration::from_secs(1));
/// timing.boot = Duration::from_secs(30);
/// assert_eq!(timing.stop, Duration::from_secs(1));
/// assert_eq!(Timing::default().boot, Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From launch to running, and from start to running. Default: 5 s.
    pub boot: Duration,
    /// From stop to stopped. Default: 3 s.
    pub stop: Duration,
    /// From terminate to terminated. Default: 2 s.
    pub terminate: Duration,
    /// How long a running instance is pending while it is reimaged. Default: 8 s.
    pub reimage: Duration,
}

impl Timing {
    /// Every transition takes `duration`. Zero is allowed: a transition is then complete at the next
    /// call.
    pub const fn all(duration: Duration) -> Self {
        Self {
            boot: duration,
            stop: duration,
            terminate: duration,
            reimage: duration,
        }
    }
}

impl Default for Timing {
    /// Boots in 5 s, stops in 3 s, terminates in 2 s, reimages in 8 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            boot: seconds(5),
            stop: seconds(3),
            terminate: seconds(2),
            reimage: seconds(8),
        }
    }
}

/// A limit on how many machines can be in use at once. Here, a machine is the hardware
/// that one instance runs on.
///
/// The limit applies to the machines that match its fields; an unset field matches any value. An
/// instance uses a machine from its launch or start until it is stopped or terminated. If several
/// limits match, all of them apply. A launch or a start beyond a limit fails with
/// [`ErrorKind::Capacity`](fleetwright::ErrorKind::Capacity).
///
/// ```
/// use fleetwright::{Market, Zone};
/// use fleetwright_memory::{Capacity, MemoryCloud};
///
/// let spot = Capacity::of(10).in_zone(Zone::new("mem-a")?).on_market(Market::Spot);
/// let cloud = MemoryCloud::builder().capacity(Capacity::of(100)).capacity(spot).build();
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// Applies to this type only. Default: every type.
    pub instance_type: Option<InstanceType>,
    /// Applies to this zone only. Default: every zone.
    pub zone: Option<Zone>,
    /// Applies to this market only. Default: every market.
    pub market: Option<Market>,
    /// The largest number of matching machines in use at once. With 0, nothing that matches can be
    /// launched or started.
    pub machines: u64,
}

impl Capacity {
    /// Limits all machines to `machines`. Narrow it with [`of_type`](Self::of_type),
    /// [`in_zone`](Self::in_zone) and [`on_market`](Self::on_market).
    pub fn of(machines: u64) -> Self {
        Self {
            machines,
            ..Self::default()
        }
    }

    /// Applies the limit to this type only.
    #[must_use]
    pub fn of_type(mut self, instance_type: InstanceType) -> Self {
        self.instance_type = Some(instance_type);
        self
    }

    /// Applies the limit to this zone only.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Applies the limit to this market only.
    #[must_use]
    pub fn on_market(mut self, market: Market) -> Self {
        self.market = Some(market);
        self
    }
}

/// Builds a [`MemoryCloud`]. The defaults describe a well-behaved cloud: consistent reads, no
/// latency, no throttling, no limits, every optional verb.
///
/// # Example
///
/// A slow, eventually consistent cloud with a quota:
///
/// ```
/// use fleetwright_memory::{MemoryCloud, Timing, WireCall};
/// use std::{num::NonZeroU32, time::Duration};
///
/// let cloud = MemoryCloud::builder()
///     .seed(42)
///     .timing(Timing::all(Duration::from_secs(60)))
///     .latency(Duration::from_millis(80))
///     .read_lag(Duration::from_secs(5))
///     .quota(20)
///     .throttle(WireCall::Describe, Duration::from_millis(100), NonZeroU32::MIN)
///     .build();
/// assert!(cloud.oracle().leftovers().is_empty());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct MemoryCloudBuilder {
    pub(crate) knobs: Knobs,
}

/// The knobs as the engine reads them.
#[derive(Clone, Debug)]
pub(crate) struct Knobs {
    pub(crate) seed: u64,
    /// `None` is an id that no other cloud of the process has.
    pub(crate) account: Option<AccountId>,
    /// `None` is tokio's clock.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) timing: Timing,
    /// Whether missing capacity shows only after a launch was accepted.
    pub(crate) accepts_without_capacity: bool,
    pub(crate) latency: Duration,
    /// The zones; launches without a zone use the first one.
    pub(crate) zones: Vec<Zone>,
    /// The catalog of types; empty accepts all.
    pub(crate) types: BTreeSet<InstanceType>,
    /// The catalog of images; empty accepts all.
    pub(crate) images: BTreeSet<ImageId>,
    /// The choice for launches whose config has none.
    pub(crate) public_address: PublicAddress,
    pub(crate) quota: Option<u64>,
    pub(crate) capacity: Vec<Capacity>,
    /// The period and the burst of the token bucket of each throttled call.
    pub(crate) buckets: BTreeMap<WireCall, (Duration, NonZeroU32)>,
}

impl MemoryCloudBuilder {
    /// Returns a builder with the default of every knob.
    pub(crate) fn new() -> Self {
        const HOUR: Duration = Duration::from_secs(3600);
        let mut tags = TagLimits::new(50, 128, 256);
        tags.reserved_prefixes = vec!["memory:".to_owned()];
        let mut capabilities = Capabilities::new("memory", tags, 16 * 1024);
        capabilities.token_after_terminate = HOUR;
        capabilities.terminated_visible = HOUR;
        capabilities.terminated_listed = true;
        capabilities.page_size = NonZeroUsize::MIN.saturating_add(99);
        capabilities.batch_size = NonZeroUsize::MIN.saturating_add(999);
        let one_call = NativeCost::constant(1);
        capabilities.native_costs = [(Operation::LaunchInstances, one_call)].into();
        capabilities.batch_launch = BatchLaunch::AllOrNothing;
        capabilities.poll_interval = Duration::from_millis(100);
        capabilities.placement = PlacementField::ALL.into();
        capabilities.verbs = OptionalVerb::ALL.into();
        Self {
            knobs: Knobs {
                seed: 0,
                account: None,
                clock: None,
                capabilities,
                timing: Timing::default(),
                accepts_without_capacity: false,
                latency: Duration::ZERO,
                zones: Vec::new(),
                types: BTreeSet::new(),
                images: BTreeSet::new(),
                public_address: PublicAddress::Assigned,
                quota: None,
                capacity: Vec::new(),
                buckets: BTreeMap::new(),
            },
        }
    }

    /// Sets the seed of all randomness: ids, read lags, console sessions. Default: 0.
    ///
    /// Separate generators serve ids and lags, so additional reads do not change the ids of later
    /// launches.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|knobs| knobs.seed = seed)
    }

    /// Sets the id of the account. Default: `memory/` and a number that no other cloud of this process has.
    pub fn account_id(self, id: AccountId) -> Self {
        self.set(|knobs| knobs.account = Some(id))
    }

    /// Sets the clock of the cloud: transitions, throttling and dates follow it. Default: tokio's
    /// clock, starting when the cloud is built.
    ///
    /// A [`ManualClock`](crate::ManualClock) advances only when the test advances it. A handle waits
    /// for the [`latency`](Self::latency) and the consistency window on tokio's clock, whatever this
    /// clock is.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.set(|knobs| knobs.clock = Some(clock))
    }

    /// Sets how long transitions take. Default: [`Timing::default`].
    pub fn timing(self, timing: Timing) -> Self {
        self.set(|knobs| knobs.timing = timing)
    }

    /// Sets the round-trip time of a call. Half of it passes before the cloud handles the call, half
    /// after. Default: zero.
    pub fn latency(self, latency: Duration) -> Self {
        self.set(|knobs| knobs.latency = latency)
    }

    /// Declares a consistency window and makes every read lag by a random duration up to the whole
    /// window. Default: zero, every read is current.
    pub fn read_lag(self, window: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.consistency_window = window)
    }

    /// Declares a usual lag that is shorter than the consistency window, and limits the random lag of reads
    /// to it. Only [`StaleRead`](crate::Fault::StaleRead) lags by the whole window. Default: the window.
    pub fn usual_lag(self, lag: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.usual_lag = Some(lag))
    }

    /// Sets the number of instances in one page of a list. Default: 100.
    pub fn page_size(self, size: NonZeroUsize) -> Self {
        self.set(|knobs| knobs.capabilities.page_size = size)
    }

    /// Sets how many ids one batch call takes. Longer batches are split. Default: 1,000.
    pub fn batch_size(self, size: NonZeroUsize) -> Self {
        self.set(|knobs| knobs.capabilities.batch_size = size)
    }

    /// Sets what a batch launch does if only some of its instances can be created. Default:
    /// [`BatchLaunch::AllOrNothing`].
    pub fn batch_launch(self, mode: BatchLaunch) -> Self {
        self.set(|knobs| knobs.capabilities.batch_launch = mode)
    }

    /// Sets how long a launch token is kept after its last instance is terminated. Until then, a
    /// launch with the token fails with
    /// [`ErrorKind::TokenSpent`](fleetwright::ErrorKind::TokenSpent). Default: 1 h.
    pub fn token_after_terminate(self, retention: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.token_after_terminate = retention)
    }

    /// Sets how long a terminated instance is still visible to reads. Default: 1 h.
    pub fn terminated_visible(self, retention: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.terminated_visible = retention)
    }

    /// Declares [late failures](fleetwright::Capabilities::late_failures): a launch that an injected fault
    /// makes fail late ends after `time` and frees its token. Default: zero, such a launch spends its token.
    pub fn late_failures(self, time: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.late_failures = time)
    }

    /// Lets the cloud accept launches for which it has no capacity: they fail after the time of
    /// [`late_failures`](Self::late_failures). Default: they are refused.
    pub fn accept_without_capacity(self) -> Self {
        self.set(|knobs| knobs.accepts_without_capacity = true)
    }

    /// Sets the shortest time between two polls that the cloud declares. Default: 100 ms.
    pub fn poll_interval(self, interval: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.poll_interval = interval)
    }

    /// Adds a zone. Launches without a zone use the first one. Default: `mem-a` and `mem-b`, if no zone
    /// is added.
    pub fn zone(self, zone: Zone) -> Self {
        self.set(|knobs| knobs.zones.push(zone))
    }

    /// Adds an instance type to the catalog. Types outside a non-empty catalog are refused with
    /// [`ErrorKind::Invalid`](fleetwright::ErrorKind::Invalid). Default: empty, every type is
    /// accepted.
    pub fn offer_type(self, instance_type: InstanceType) -> Self {
        self.set(|knobs| knobs.types.extend([instance_type]))
    }

    /// Adds an image to the catalog. Images outside a non-empty catalog are refused with
    /// [`ErrorKind::Invalid`](fleetwright::ErrorKind::Invalid), except snapshots of this account.
    /// Default: empty, every image is accepted.
    pub fn offer_image(self, image: ImageId) -> Self {
        self.set(|knobs| knobs.images.extend([image]))
    }

    /// Limits the number of instances that are not terminated. Default: no limit.
    pub fn quota(self, instances: u64) -> Self {
        self.set(|knobs| knobs.quota = Some(instances))
    }

    /// Adds a limit on machines in use. Every limit that matches a machine applies. Default: no
    /// limit.
    pub fn capacity(self, capacity: Capacity) -> Self {
        self.set(|knobs| knobs.capacity.push(capacity))
    }

    /// Throttles a call with a token bucket: `burst` calls at once, then one every `period`. The
    /// error says when the next call is possible. Default: no throttling.
    pub fn throttle(self, call: WireCall, period: Duration, burst: NonZeroU32) -> Self {
        self.set(|knobs| knobs.buckets.extend([(call, (period, burst))]))
    }

    /// Removes an optional verb: it is not declared, and calling it fails with
    /// [`ErrorKind::Unsupported`](fleetwright::ErrorKind::Unsupported). Default: all verbs work.
    pub fn without_verb(self, verb: OptionalVerb) -> Self {
        self.set(|knobs| {
            knobs.capabilities.verbs.remove(&verb);
        })
    }

    /// Assigns public addresses only to launches that request one. Default: every instance gets one
    /// unless its launch requests none.
    pub fn public_addresses_on_request(self) -> Self {
        self.set(|knobs| knobs.public_address = PublicAddress::Absent)
    }

    /// Removes a placement field: it is not declared, and launches that set it are refused. Default:
    /// all fields are declared.
    pub fn without_placement(self, field: PlacementField) -> Self {
        self.set(|knobs| {
            knobs.capabilities.placement.remove(&field);
        })
    }

    /// Builds the cloud with an empty account.
    ///
    /// Without a [`clock`](Self::clock), call it inside a tokio runtime with time enabled.
    pub fn build(mut self) -> MemoryCloud {
        if self.knobs.zones.is_empty() {
            self.knobs.zones.extend(
                ["mem-a", "mem-b"]
                    .iter()
                    .filter_map(|name| Zone::new(name).ok()),
            );
        }
        let clock = self
            .knobs
            .clock
            .clone()
            .unwrap_or_else(|| Arc::new(TokioClock::new()));
        MemoryCloud::from_knobs(self.knobs, clock)
    }

    /// Changes the knobs.
    fn set(mut self, change: impl FnOnce(&mut Knobs)) -> Self {
        change(&mut self.knobs);
        self
    }
}
