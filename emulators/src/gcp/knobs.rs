//! The knobs of the emulated Compute Engine, with which a test makes it slow, scarce, strict or
//! inconsistent.
//!
//! Owns only values. The same JSON document is the program's `--knobs` file and the body of the
//! control endpoint's `/_emulator/knobs`; durations are milliseconds there. Fields that a file
//! leaves out have their defaults; fields that a `PATCH` leaves out keep their values.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::catalog::{Image, MachineType, Subnetwork, default_subnetworks};
use crate::cloud::impl_common_knobs;
pub use crate::cloud::{
    knobs::{Capacity, Counts, LateFailure, LimitCheck, Market, Refill, Throttle},
    lag::Lag,
};

/// The settings of the emulated Compute Engine. [`Knobs::default`] is a cloud without lag, limits
/// or failures.
///
/// ```
/// use fleetwright_emulators::gcp::{Capacity, GcpEmulator, Knobs, LimitCheck};
///
/// let mut knobs = Knobs::default();
/// // No machines at all, and a quota that the operation reports.
/// knobs.capacity = vec![Capacity::of(0)];
/// knobs.cpu_quota = Some(8);
/// knobs.quota_check = LimitCheck::InOperation;
/// GcpEmulator::start(knobs)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// The seed of all random choices: ids and lags. Default 0. A change takes effect at the next
    /// reset.
    pub seed: u64,
    /// The projects that exist, besides those of the images. Default: empty, which accepts any
    /// name.
    pub projects: BTreeSet<String>,
    /// The access tokens that are accepted. Default: empty, which accepts any token or none.
    pub access_tokens: BTreeSet<String>,
    /// How long transitions take, and how long things are remembered. Default: [`Timing::default`].
    pub timing: Timing,
    /// Eventual consistency of reads and writes. Default: none.
    pub lag: Lag,
    /// The maximum number of items on a page, whatever the client requests. Default 500, as
    /// documented.
    pub page_size: NonZeroU32,
    /// The maximum number of vCPUs that run at once in a region, without spot instances (`CPUS`).
    /// Default: no limit.
    pub cpu_quota: Option<u64>,
    /// The maximum number of vCPUs of spot instances that run at once in a region
    /// (`PREEMPTIBLE_CPUS`). Default: no limit.
    pub spot_cpu_quota: Option<u64>,
    /// The maximum number of instances in a region, running or not (`INSTANCES`). Default: no
    /// limit.
    pub instance_quota: Option<u64>,
    /// When an exhausted quota is reported. Default: immediately, 403 `quotaExceeded`; in the
    /// operation it is `QUOTA_EXCEEDED`.
    pub quota_check: LimitCheck,
    /// How many machines there are. Default: no rule, so there is no limit.
    pub capacity: Vec<Capacity>,
    /// When missing capacity is reported. Default: in the operation; immediately it is a 503.
    pub stockout_check: LimitCheck,
    /// The error code of an operation without capacity. Default `ZONE_RESOURCE_POOL_EXHAUSTED`;
    /// Google also uses `ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS` (cirrus-ci-docs#131,
    /// scylla-cluster-tests#12477).
    pub stockout_code: String,
    /// The constraints of organization policies that inserts violate, such as
    /// `constraints/compute.vmExternalIpAccess`, which only an instance with an external address
    /// violates. Default: none. Google refuses with 412 `conditionNotMet`, the reason of a stale
    /// fingerprint (compute-image-tools#1476, gardener-extension-provider-gcp#415).
    pub organization_policies: BTreeSet<String>,
    /// When a violated organization policy is reported. Default: immediately; in the operation it is
    /// `CONDITION_NOT_MET` (GoogleCloudPlatform/pubsub#258).
    pub policy_check: LimitCheck,
    /// Inserts and starts that are accepted and whose operation fails. Default: none.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by method. All methods without their own bucket share the bucket `*`. Default:
    /// none.
    pub throttle: BTreeMap<String, Throttle>,
    /// The HTTP status of `rateLimitExceeded`: 403, the default, or 429. Google documents both.
    pub throttle_status: u16,
    /// How many records the lists with a filter may compare in one minute, in a project. A list with a
    /// filter is charged for every instance or operation of its scope, whatever it returns. Default
    /// 750,000; the quota is full again at the next full minute (Compute Engine documentation,
    /// "Compute Engine rate quotas and system limits": filtered list cost overhead; openshift/installer#9169).
    pub filtered_list_quota: u64,
    /// How much the cloud's clock is behind the real one, in milliseconds. Default 0.
    #[serde(with = "crate::cloud::millis")]
    pub clock_behind: Duration,
    /// Whether the operation of a stop is done while the instance is still `STOPPING`. Default
    /// false.
    pub stop_done_early: bool,
    /// How many more deletes of an instance are accepted while it is being deleted. Default 1.
    pub repeated_deletes: u32,
    /// The zones. A region exists if it has a zone. Default: four zones of `us-central1`, two of
    /// `europe-west1`.
    pub zones: Vec<String>,
    /// The zones that are unreachable: their lists fail with 503. Default: none.
    pub unreachable_zones: BTreeSet<String>,
    /// Whether aggregated lists skip and name unreachable zones even without
    /// `returnPartialSuccess`, which newer clients cannot send. Default false: such a list fails.
    pub partial_by_default: bool,
    /// Whether operations are listed newest first without `orderBy`. Default true. The reference
    /// sorts them by name, which begins with the time; a client must work with both.
    pub newest_operations_first: bool,
    /// The subnetworks; the first one of a region is its default.
    pub subnetworks: Vec<Subnetwork>,
    /// The images of public projects. Default: some of `debian-cloud`, `ubuntu-os-cloud` and
    /// `windows-cloud`.
    pub images: Vec<Image>,
    /// The machine types, in every zone. Default: ten common ones.
    pub machine_types: Vec<MachineType>,
}

impl Default for Knobs {
    fn default() -> Self {
        let zones = [
            "us-central1-a",
            "us-central1-b",
            "us-central1-c",
            "us-central1-f",
            "europe-west1-b",
            "europe-west1-c",
        ];
        Self {
            seed: 0,
            projects: BTreeSet::new(),
            access_tokens: BTreeSet::new(),
            timing: Timing::default(),
            lag: Lag::default(),
            page_size: NonZeroU32::MIN.saturating_add(499),
            cpu_quota: None,
            spot_cpu_quota: None,
            instance_quota: None,
            quota_check: LimitCheck::Immediate,
            capacity: Vec::new(),
            stockout_check: LimitCheck::InOperation,
            stockout_code: "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
            organization_policies: BTreeSet::new(),
            policy_check: LimitCheck::Immediate,
            late_failures: Vec::new(),
            throttle: BTreeMap::new(),
            throttle_status: 403,
            filtered_list_quota: 750_000,
            clock_behind: Duration::ZERO,
            stop_done_early: false,
            repeated_deletes: 1,
            zones: zones.map(str::to_owned).into(),
            unreachable_zones: BTreeSet::new(),
            partial_by_default: false,
            newest_operations_first: true,
            subnetworks: default_subnetworks(),
            images: Image::standard(),
            machine_types: MachineType::standard(),
        }
    }
}

impl_common_knobs!(Knobs);

/// How long transitions take, and how long things are remembered. In JSON, milliseconds.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_emulators::gcp::{Knobs, Timing};
///
/// let mut knobs = Knobs::default();
/// knobs.timing = Timing::all(Duration::ZERO); // every step ends at once
/// knobs.timing.operation_retention = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// How long an operation is `PENDING`. Its work begins at once. Default 10 ms.
    #[serde(with = "crate::cloud::millis")]
    pub pending: Duration,
    /// From insert or start to `STAGING`. Default 50 ms.
    #[serde(with = "crate::cloud::millis")]
    pub provision: Duration,
    /// From `STAGING` to `RUNNING`. Default 50 ms.
    #[serde(with = "crate::cloud::millis")]
    pub stage: Duration,
    /// How much longer an insert or start takes to fail than to be `STAGING`: stockouts and quotas arrive
    /// late in the operation. Default 100 ms, at the scale of the other steps. On Compute Engine they
    /// took 6 seconds (GoogleCloudPlatform/ai-on-gke#849), 7 seconds (CCExtractor/sample-platform#901)
    /// and about 100 seconds (googlefonts/fontbakery-dashboard#81).
    #[serde(with = "crate::cloud::millis")]
    pub shortage: Duration,
    /// From stop to `TERMINATED`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From suspend to `SUSPENDED`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub suspend: Duration,
    /// From delete until the instance is removed. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub delete: Duration,
    /// The duration of a reset, and of a change of labels, metadata or machine type. Default 20 ms.
    #[serde(with = "crate::cloud::millis")]
    pub change: Duration,
    /// From `REPAIRING` to `RUNNING`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub repair: Duration,
    /// From the insert of an image until it is `READY`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// The maximum duration of a call of `wait`. Default two minutes (Compute Engine API reference,
    /// `zoneOperations.wait`).
    #[serde(with = "crate::cloud::millis")]
    pub wait: Duration,
    /// How long an operation is kept after it is done. Default one hour, the least that Google
    /// promises; the most is two weeks (Compute Engine documentation, "View Compute Engine
    /// operations", retention period).
    #[serde(with = "crate::cloud::millis")]
    pub operation_retention: Duration,
    /// How long a request id is remembered, at most as long as its operation. Default one day.
    #[serde(with = "crate::cloud::millis")]
    pub request_retention: Duration,
}

impl Timing {
    /// Returns how much longer a step takes if it fails.
    pub(crate) fn shortage_of(&self, fails: bool) -> Duration {
        if fails { self.shortage } else { Duration::ZERO }
    }

    /// Sets the duration of every step. How long things are remembered keeps its default.
    pub fn all(duration: Duration) -> Self {
        Self {
            pending: duration,
            provision: duration,
            stage: duration,
            shortage: duration,
            stop: duration,
            suspend: duration,
            delete: duration,
            change: duration,
            repair: duration,
            image: duration,
            ..Self::default()
        }
    }
}

impl Default for Timing {
    /// A tenth of a second for transitions; two minutes for `wait` and one hour for operations, as
    /// documented; a day for request ids, which is not documented.
    fn default() -> Self {
        let half = Duration::from_millis(50);
        let hour = Duration::from_secs(3600);
        Self {
            pending: Duration::from_millis(10),
            provision: half,
            stage: half,
            shortage: half * 2,
            stop: half * 2,
            suspend: half * 2,
            delete: half * 2,
            change: Duration::from_millis(20),
            repair: half * 2,
            image: half * 2,
            wait: Duration::from_secs(120),
            operation_retention: hour,
            request_retention: hour * 24,
        }
    }
}
