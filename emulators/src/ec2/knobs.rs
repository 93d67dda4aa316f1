//! The knobs of the emulated EC2: what a test turns to make it slow, scarce, strict or late.
//!
//! Owns only values. The same document is the program's `--knobs` file and the body of the control
//! endpoint's `knobs`; durations there are milliseconds, and what is left out keeps its value.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::catalog::{Image, KeyPair, SecurityGroup, Subnet, TypeSpec, default_subnets};
use crate::cloud::impl_common_knobs;
pub use crate::cloud::{
    knobs::{Capacity, Counts, LateFailure, Market, Throttle},
    lag::Lag,
};

/// Everything that can be turned. [`Knobs::default`] is a well-behaved region that answers at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// Where all chance comes from: ids, lags. Counts from the next reset.
    pub seed: u64,
    /// The region that credentials must be scoped to.
    pub region: String,
    /// The account that owns everything.
    pub account: String,
    /// The access key ids that are known. Any secret will do.
    pub access_keys: BTreeSet<String>,
    /// How long things take.
    pub timing: Timing,
    /// How far reads and writes trail behind.
    pub lag: Lag,
    /// The most that a page holds, whatever the client asks for.
    pub page_size: NonZeroU32,
    /// The most vCPUs that run on demand at once.
    pub vcpu_quota: Option<u64>,
    /// The most vCPUs that run on the spot market at once.
    pub spot_vcpu_quota: Option<u64>,
    /// The most instances that run at once.
    pub instance_quota: Option<u64>,
    /// The most volumes; a launch beyond it fails late, with `Client.VolumeLimitExceeded`.
    pub volume_quota: Option<u64>,
    /// How many machines there are; none said, no limit.
    pub capacity: Vec<Capacity>,
    /// Launches that are accepted and fail before they run.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by action; `*` is shared by all actions that have none of their own.
    pub throttle: BTreeMap<String, Throttle>,
    /// The zones, in order of preference.
    pub zones: Vec<String>,
    /// The subnets; the first of a zone is its default.
    pub subnets: Vec<Subnet>,
    /// The security groups; the first is the default.
    pub security_groups: Vec<SecurityGroup>,
    /// The key pairs.
    pub key_pairs: Vec<KeyPair>,
    /// The names of the instance profiles that exist; empty, any name does.
    pub instance_profiles: BTreeSet<String>,
    /// The images that nobody made here.
    pub images: Vec<Image>,
    /// The instance types.
    pub types: Vec<TypeSpec>,
}

impl Default for Knobs {
    fn default() -> Self {
        let zones = ["us-east-1a", "us-east-1b", "us-east-1c"].map(str::to_owned);
        Self {
            seed: 0,
            region: "us-east-1".to_owned(),
            account: "123456789012".to_owned(),
            access_keys: ["test".to_owned()].into(),
            timing: Timing::default(),
            lag: Lag::default(),
            page_size: NonZeroU32::MIN.saturating_add(999),
            vcpu_quota: None,
            spot_vcpu_quota: None,
            instance_quota: None,
            volume_quota: None,
            capacity: Vec::new(),
            late_failures: Vec::new(),
            throttle: BTreeMap::new(),
            subnets: default_subnets(&zones),
            zones: zones.into(),
            security_groups: vec![SecurityGroup::standard()],
            key_pairs: vec![KeyPair::standard()],
            instance_profiles: BTreeSet::new(),
            images: Image::standard(),
            types: TypeSpec::standard(),
        }
    }
}

/// How long things take, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// From launch or start to running.
    #[serde(with = "crate::cloud::millis")]
    pub boot: Duration,
    /// From stop to stopped.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From terminate to terminated.
    #[serde(with = "crate::cloud::millis")]
    pub terminate: Duration,
    /// From running until the status checks pass.
    #[serde(with = "crate::cloud::millis")]
    pub checks: Duration,
    /// From CreateImage until the image is available.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// For how long a terminated instance is still described.
    #[serde(with = "crate::cloud::millis")]
    pub terminated_visible: Duration,
    /// For how long a client token is remembered after its instances are terminated.
    #[serde(with = "crate::cloud::millis")]
    pub token_retention: Duration,
}

impl Timing {
    /// Every transition takes `duration`; what is remembered is remembered as long as by default.
    pub fn all(duration: Duration) -> Self {
        Self {
            boot: duration,
            stop: duration,
            terminate: duration,
            checks: duration,
            image: duration,
            ..Self::default()
        }
    }
}

impl Default for Timing {
    /// A tenth of a second for what EC2 takes seconds for, an hour for terminated instances and a day
    /// for tokens.
    fn default() -> Self {
        let tenth = Duration::from_millis(100);
        Self {
            boot: tenth,
            stop: tenth,
            terminate: tenth,
            checks: tenth,
            image: tenth,
            terminated_visible: Duration::from_secs(3600),
            token_retention: Duration::from_secs(24 * 3600),
        }
    }
}

impl_common_knobs!(Knobs);
