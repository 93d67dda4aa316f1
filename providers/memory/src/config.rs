//! The knobs of the simulated cloud.
//!
//! Owns what a test or a program may turn before the cloud begins; what changes during its life is
//! the [`Operator`](crate::Operator)'s. Everything is deterministic from the seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use fleetwright::{
    BatchLaunch, Capabilities, ImageId, InstanceType, Market, OptionalVerb, PlacementField,
    PublicAddress, TagLimits, Zone,
};
use fleetwright_chaos::{Clock, TokioClock};

use crate::{MemoryCloud, wire::WireCall};

/// How long the cloud takes to carry things out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From launch to running, and from start to running.
    pub boot: Duration,
    /// From stop to stopped.
    pub stop: Duration,
    /// From terminate to terminated.
    pub terminate: Duration,
    /// For how long a running instance is pending while it is reimaged.
    pub reimage: Duration,
}

impl Timing {
    /// Everything takes `duration`.
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

/// A limit on how many machines of a kind can run at once. Unset fields mean any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// Of this type.
    pub instance_type: Option<InstanceType>,
    /// In this zone.
    pub zone: Option<Zone>,
    /// On this market.
    pub market: Option<Market>,
    /// The most that run at once.
    pub machines: u64,
}

impl Capacity {
    /// At most `machines` in all; narrow it with the public fields.
    pub fn of(machines: u64) -> Self {
        Self {
            machines,
            ..Self::default()
        }
    }

    /// Of this type only.
    #[must_use]
    pub fn of_type(mut self, instance_type: InstanceType) -> Self {
        self.instance_type = Some(instance_type);
        self
    }

    /// In this zone only.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.zone = Some(zone);
        self
    }

    /// On this market only.
    #[must_use]
    pub fn on_market(mut self, market: Market) -> Self {
        self.market = Some(market);
        self
    }
}

/// Builds a [`MemoryCloud`]. The defaults are a well-behaved cloud.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct MemoryCloudBuilder {
    pub(crate) knobs: Knobs,
}

/// The knobs as the engine reads them.
#[derive(Clone, Debug)]
pub(crate) struct Knobs {
    pub(crate) seed: u64,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) timing: Timing,
    pub(crate) latency: Duration,
    pub(crate) zones: Vec<Zone>,
    pub(crate) types: BTreeSet<InstanceType>,
    pub(crate) images: BTreeSet<ImageId>,
    pub(crate) public_address: PublicAddress,
    pub(crate) quota: Option<u64>,
    pub(crate) capacity: Vec<Capacity>,
    pub(crate) buckets: BTreeMap<WireCall, (Duration, NonZeroU32)>,
}

impl MemoryCloudBuilder {
    /// The knobs of a well-behaved cloud.
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
        capabilities.batch_launch = BatchLaunch::AllOrNothing;
        capabilities.poll_interval = Duration::from_millis(100);
        capabilities.placement = PlacementField::ALL.into();
        capabilities.verbs = OptionalVerb::ALL.into();
        Self {
            knobs: Knobs {
                seed: 0,
                clock: None,
                capabilities,
                timing: Timing::default(),
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

    /// Where all chance comes from: ids, lags, console sessions.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|knobs| knobs.seed = seed)
    }

    /// The clock that transitions run on; tokio's unless set.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.set(|knobs| knobs.clock = Some(clock))
    }

    /// How long transitions take.
    pub fn timing(self, timing: Timing) -> Self {
        self.set(|knobs| knobs.timing = timing)
    }

    /// How long a call is on the wire, half of it each way.
    pub fn latency(self, latency: Duration) -> Self {
        self.set(|knobs| knobs.latency = latency)
    }

    /// Declares a consistency window, and lets every read lag by chance up to all of it.
    pub fn read_lag(self, window: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.consistency_window = window)
    }

    /// How many instances a page of a list holds.
    pub fn page_size(self, size: NonZeroUsize) -> Self {
        self.set(|knobs| knobs.capabilities.page_size = size)
    }

    /// How many ids a batch call takes.
    pub fn batch_size(self, size: NonZeroUsize) -> Self {
        self.set(|knobs| knobs.capabilities.batch_size = size)
    }

    /// What a batch launch does when only a part can be had.
    pub fn batch_launch(self, how: BatchLaunch) -> Self {
        self.set(|knobs| knobs.capabilities.batch_launch = how)
    }

    /// For how long a token is remembered after its instances are terminated.
    pub fn token_after_terminate(self, memory: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.token_after_terminate = memory)
    }

    /// For how long a terminated instance lingers before it vanishes.
    pub fn terminated_visible(self, memory: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.terminated_visible = memory)
    }

    /// The shortest time between two polls that the cloud declares.
    pub fn poll_interval(self, tick: Duration) -> Self {
        self.set(|knobs| knobs.capabilities.poll_interval = tick)
    }

    /// Adds a zone. The first one is where launches go that name none; without any, there are
    /// `mem-a` and `mem-b`.
    pub fn zone(self, zone: Zone) -> Self {
        self.set(|knobs| knobs.zones.push(zone))
    }

    /// Offers a type. Once one is offered, all others are refused; without any, every type is.
    pub fn offer_type(self, instance_type: InstanceType) -> Self {
        self.set(|knobs| knobs.types.extend([instance_type]))
    }

    /// Offers an image. Once one is offered, all others are refused; without any, every image is.
    pub fn offer_image(self, image: ImageId) -> Self {
        self.set(|knobs| knobs.images.extend([image]))
    }

    /// The most instances the account may have that are not terminated.
    pub fn quota(self, instances: u64) -> Self {
        self.set(|knobs| knobs.quota = Some(instances))
    }

    /// Limits how many machines of a kind run at once. Every limit that fits a machine counts.
    pub fn capacity(self, capacity: Capacity) -> Self {
        self.set(|knobs| knobs.capacity.push(capacity))
    }

    /// Throttles a call: `burst` at once, then one every `period`.
    pub fn throttle(self, call: WireCall, period: Duration, burst: NonZeroU32) -> Self {
        self.set(|knobs| knobs.buckets.extend([(call, (period, burst))]))
    }

    /// Leaves an optional verb out.
    pub fn without(self, verb: OptionalVerb) -> Self {
        self.set(|knobs| {
            knobs.capabilities.verbs.remove(&verb);
        })
    }

    /// Gives public addresses only to launches that ask for one; otherwise all get one unless they
    /// ask for none.
    pub fn without_public_addresses(self) -> Self {
        self.set(|knobs| knobs.public_address = PublicAddress::Absent)
    }

    /// Leaves a field of the placement out.
    pub fn without_placement(self, field: PlacementField) -> Self {
        self.set(|knobs| {
            knobs.capabilities.placement.remove(&field);
        })
    }

    /// Begins the cloud: an empty account.
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
        MemoryCloud::begin(self.knobs, clock)
    }

    fn set(mut self, change: impl FnOnce(&mut Knobs)) -> Self {
        change(&mut self.knobs);
        self
    }
}
