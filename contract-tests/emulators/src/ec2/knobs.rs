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
    pub fail_late: Vec<FailLate>,
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
            fail_late: Vec::new(),
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
    #[serde(with = "super::millis")]
    pub boot: Duration,
    /// From stop to stopped.
    #[serde(with = "super::millis")]
    pub stop: Duration,
    /// From terminate to terminated.
    #[serde(with = "super::millis")]
    pub terminate: Duration,
    /// From running until the status checks pass.
    #[serde(with = "super::millis")]
    pub checks: Duration,
    /// From CreateImage until the image is available.
    #[serde(with = "super::millis")]
    pub image: Duration,
    /// For how long a terminated instance is still described.
    #[serde(with = "super::millis")]
    pub terminated_visible: Duration,
    /// For how long a client token is remembered after its instances are terminated.
    #[serde(with = "super::millis")]
    pub token_memory: Duration,
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
            token_memory: Duration::from_secs(24 * 3600),
        }
    }
}

/// Eventual consistency, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Lag {
    /// A read sees the world as it was up to so long ago, by chance.
    #[serde(with = "super::millis")]
    pub reads: Duration,
    /// Up to so long after its launch, by chance, a call that names an instance does not find it.
    #[serde(with = "super::millis")]
    pub writes: Duration,
}

/// A number of machines. Unset fields mean any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Capacity {
    /// Of this type.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// In this zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// For this market.
    #[serde(default)]
    pub market: Option<Market>,
    /// The most that run at once.
    pub machines: u64,
}

impl Capacity {
    /// At most `machines` of everything; narrow it with the public fields.
    pub const fn of(machines: u64) -> Self {
        Self {
            instance_type: None,
            zone: None,
            market: None,
            machines,
        }
    }
}

/// How an instance is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// By the hour, until it is terminated.
    OnDemand,
    /// Until EC2 wants it back.
    Spot,
}

/// Launches that fail late. Unset fields mean any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FailLate {
    /// Of this type.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// In this zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// The state reason's code.
    pub code: String,
    /// The state reason's words.
    pub message: String,
}

impl FailLate {
    /// Every launch fails so; narrow it with the public fields.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            instance_type: None,
            zone: None,
            code: code.into(),
            message: message.into(),
        }
    }
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Throttle {
    /// A token comes back every so many milliseconds.
    #[serde(with = "super::millis")]
    pub period: Duration,
    /// The most tokens.
    pub burst: NonZeroU32,
    /// What a token is spent on.
    #[serde(default)]
    pub counts: Counts,
}

impl Throttle {
    /// One call every `period`, and `burst` of them at once.
    pub const fn new(period: Duration, burst: NonZeroU32) -> Self {
        Self {
            period,
            burst,
            counts: Counts::Requests,
        }
    }
}

/// What throttling counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// One for each call.
    #[default]
    Requests,
    /// One for each instance that a call asks for or names, and one for a call that names none.
    Resources,
}
