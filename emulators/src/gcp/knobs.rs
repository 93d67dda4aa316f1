//! The knobs of the emulated Compute Engine: what a test turns to make it slow, scarce, strict or late.
//!
//! Owns only values. The same document is the program's `--knobs` file and the body of the control
//! endpoint's `knobs`; durations there are milliseconds, and what is left out keeps its value.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::catalog::{Image, MachineType, Subnetwork, default_subnetworks};
use crate::cloud::impl_common_knobs;
pub use crate::cloud::{
    knobs::{Capacity, Counts, LateFailure, LimitCheck, Market, Throttle},
    lag::Lag,
};

/// Everything that can be turned. [`Knobs::default`] is a well-behaved cloud that answers at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// Where all chance comes from: ids, lags. Counts from the next reset.
    pub seed: u64,
    /// The projects that exist, besides those of the images; empty, any name does.
    pub projects: BTreeSet<String>,
    /// The access tokens that are known; empty, any or none does.
    pub access_tokens: BTreeSet<String>,
    /// How long things take.
    pub timing: Timing,
    /// How far reads and writes trail behind.
    pub lag: Lag,
    /// The most that a page holds, whatever the client asks for.
    pub page_size: NonZeroU32,
    /// The most vCPUs of a region that run at once, but for spot.
    pub cpu_quota: Option<u64>,
    /// The most vCPUs of a region that run at once as spot.
    pub spot_cpu_quota: Option<u64>,
    /// The most instances of a region, running or not.
    pub instance_quota: Option<u64>,
    /// Where a quota is found to be used up.
    pub quota_check: LimitCheck,
    /// How many machines there are; none said, no limit.
    pub capacity: Vec<Capacity>,
    /// Where it is found that there are no machines.
    pub stockout_check: LimitCheck,
    /// The code of an operation that finds no machines.
    pub stockout_code: String,
    /// Launches and starts that are accepted and fail before they run.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by method; `*` is shared by all methods that have none of their own.
    pub throttle: BTreeMap<String, Throttle>,
    /// The status of a refusal for too many calls: 403 or 429.
    pub throttle_status: u16,
    /// A stop's operation is done while the instance is still stopping.
    pub stop_done_early: bool,
    /// How many deletes of an instance that is being deleted are still accepted.
    pub repeated_deletes: u32,
    /// The zones; a region is there because of its zones.
    pub zones: Vec<String>,
    /// Zones that do not answer.
    pub unreachable_zones: BTreeSet<String>,
    /// Lists of all zones leave out those that do not answer and name them, even if nobody asks for a
    /// part: newer clients have no word for it.
    pub partial_by_default: bool,
    /// Operations are listed the newest first where nobody asks for an order. The reference has them by
    /// name, which begins with the time: a client must not care.
    pub newest_operations_first: bool,
    /// The subnetworks; the first of a region is its default.
    pub subnetworks: Vec<Subnetwork>,
    /// The images that nobody made here.
    pub images: Vec<Image>,
    /// The machine types.
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
            late_failures: Vec::new(),
            throttle: BTreeMap::new(),
            throttle_status: 403,
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

/// How long things take, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// For how long an operation is PENDING. What it does has begun by then.
    #[serde(with = "crate::cloud::millis")]
    pub pending: Duration,
    /// From insert or start to STAGING.
    #[serde(with = "crate::cloud::millis")]
    pub provision: Duration,
    /// From STAGING to RUNNING.
    #[serde(with = "crate::cloud::millis")]
    pub stage: Duration,
    /// From stop to TERMINATED.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From suspend to SUSPENDED.
    #[serde(with = "crate::cloud::millis")]
    pub suspend: Duration,
    /// From delete until nothing is there.
    #[serde(with = "crate::cloud::millis")]
    pub delete: Duration,
    /// What a change of labels, metadata or machine type takes, and a reset.
    #[serde(with = "crate::cloud::millis")]
    pub change: Duration,
    /// From REPAIRING to RUNNING.
    #[serde(with = "crate::cloud::millis")]
    pub repair: Duration,
    /// From an image's insert until it is READY.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// The longest that a call of `wait` waits.
    #[serde(with = "crate::cloud::millis")]
    pub wait: Duration,
    /// For how long an operation is remembered after it is done.
    #[serde(with = "crate::cloud::millis")]
    pub operation_retention: Duration,
    /// For how long a request id is remembered, as long as its operation is.
    #[serde(with = "crate::cloud::millis")]
    pub request_retention: Duration,
}

impl Timing {
    /// Every step takes `duration`; what is remembered is remembered as long as by default.
    pub fn all(duration: Duration) -> Self {
        Self {
            pending: duration,
            provision: duration,
            stage: duration,
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
    /// A tenth of a second for what takes many seconds there; two minutes for `wait`, and two weeks
    /// for operations, as documented; a day for request ids, which is not.
    fn default() -> Self {
        let half = Duration::from_millis(50);
        let day = Duration::from_secs(24 * 3600);
        Self {
            pending: Duration::from_millis(10),
            provision: half,
            stage: half,
            stop: half * 2,
            suspend: half * 2,
            delete: half * 2,
            change: Duration::from_millis(20),
            repair: half * 2,
            image: half * 2,
            wait: Duration::from_secs(120),
            operation_retention: day * 14,
            request_retention: day,
        }
    }
}
