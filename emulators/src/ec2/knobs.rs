//! The knobs of the emulated EC2, with which a test makes it slow, scarce, strict or inconsistent.
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

use super::catalog::{Image, KeyPair, SecurityGroup, Subnet, TypeSpec, default_subnets};
use crate::cloud::impl_common_knobs;
pub use crate::cloud::{
    knobs::{Capacity, Counts, LateFailure, Market, Refill, Throttle},
    lag::Lag,
};

/// The settings of the emulated EC2. [`Knobs::default`] is a region without lag, limits or
/// failures.
///
/// ```
/// use std::time::Duration;
///
/// use fleetwright_emulators::ec2::{Capacity, Ec2Emulator, Knobs, LateFailure, Timing};
///
/// let mut knobs = Knobs::default();
/// knobs.timing = Timing::all(Duration::from_secs(1));
/// knobs.vcpu_quota = Some(8);
/// // Two spare machines of one type, and every launch in one zone fails late.
/// let mut few = Capacity::of(2);
/// few.instance_type = Some("m5.large".to_owned());
/// knobs.capacity = vec![few];
/// let mut late = LateFailure::new("Server.InternalError", "internal error on launch");
/// late.zone = Some("us-east-1b".to_owned());
/// knobs.late_failures = vec![late];
/// Ec2Emulator::start(knobs)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// The seed of all random choices: ids and lags. Default 0. A change takes effect at the next
    /// reset.
    pub seed: u64,
    /// The region that responses name. Default `us-east-1`.
    pub region: String,
    /// Whether signatures must be scoped to [`Knobs::region`]. Default false: a client may be configured for any region, and
    /// sees the same resources.
    pub check_region: bool,
    /// The account that owns everything. Default `123456789012`.
    pub account: String,
    /// The access key ids that are accepted, with any secret. Default: empty, which accepts any.
    pub access_keys: BTreeSet<String>,
    /// How long transitions take, and how long things are remembered. Default: [`Timing::default`].
    pub timing: Timing,
    /// Eventual consistency of reads and writes. Default: none.
    pub lag: Lag,
    /// The maximum number of items on a page, whatever the client requests. Default 1000.
    pub page_size: NonZeroU32,
    /// The maximum number of vCPUs that run on demand at once; a launch or start beyond it is
    /// refused with `VcpuLimitExceeded`. Default: no limit.
    pub vcpu_quota: Option<u64>,
    /// The maximum number of vCPUs that run on the spot market at once; beyond it a launch is
    /// refused with `MaxSpotInstanceCountExceeded`. Default: no limit.
    pub spot_vcpu_quota: Option<u64>,
    /// The maximum number of instances that run at once; beyond it a launch is refused with
    /// `InstanceLimitExceeded`. Default: no limit.
    pub instance_quota: Option<u64>,
    /// The maximum number of volumes. A launch beyond it is accepted and fails late, with the state
    /// reason `Client.VolumeLimitExceeded`, as on EC2. Default: no limit.
    pub volume_quota: Option<u64>,
    /// Whether the client token of a launch that was refused for lack of capacity or quota stays bound to
    /// its parameters: with others it is refused with `IdempotentParameterMismatch`. Default true, as
    /// ubicloud#5898 (RunInstances with another type after `InsufficientInstanceCapacity`) and runs-on#251
    /// (CreateFleet on demand after spot) report of EC2.
    pub failed_launch_keeps_token: bool,
    /// The tag that IAM requires of an instance before it may be started, stopped, rebooted or terminated.
    /// A call that names any other id, also one that does not exist or whose instance is terminated, is
    /// refused with `UnauthorizedOperation` and changes nothing: an instance without a record has no tags
    /// for the condition to match (runs-on/terraform-aws-runs-on#60, aws/karpenter-provider-aws#2100).
    /// Default: none.
    pub required_tag: Option<RequiredTag>,
    /// The length of the lines in the base64 of console output. Default 76, as in the sample response of the Amazon
    /// EC2 API reference ("GetConsoleOutput"). Zero: one line.
    pub console_line_length: u32,
    /// Whether a launch with a zone beside a subnet of another zone is refused, with the message of EC2 that
    /// InQuicker/kaws#11 quotes. Default true. Otherwise the subnet decides, as in moto.
    pub check_zone_of_subnet: bool,
    /// How many machines there are. Default: no rule, so there is no limit.
    pub capacity: Vec<Capacity>,
    /// Launches that are accepted and fail before they run: `pending`, then `terminated` with a
    /// state reason. Default: none.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by action. All actions without their own bucket share the bucket `*`. Default:
    /// none.
    pub throttle: BTreeMap<String, Throttle>,
    /// The zones, in order of preference. Default `us-east-1a` to `us-east-1c`.
    pub zones: Vec<String>,
    /// The subnets; the first one of a zone is its default subnet. Default: one for each zone.
    pub subnets: Vec<Subnet>,
    /// The security groups; the first one is the default group. Default: one, called `default`.
    pub security_groups: Vec<SecurityGroup>,
    /// The key pairs. Default: one, called `default`.
    pub key_pairs: Vec<KeyPair>,
    /// The names of the instance profiles that exist. Default: empty, which accepts any name.
    pub instance_profiles: BTreeSet<String>,
    /// The images of the catalog. Default: three of Amazon's.
    pub images: Vec<Image>,
    /// The instance types. Default: eleven common ones.
    pub types: Vec<TypeSpec>,
}

impl Default for Knobs {
    fn default() -> Self {
        let zones = ["us-east-1a", "us-east-1b", "us-east-1c"].map(str::to_owned);
        Self {
            seed: 0,
            region: "us-east-1".to_owned(),
            account: "123456789012".to_owned(),
            check_region: false,
            access_keys: BTreeSet::new(),
            timing: Timing::default(),
            lag: Lag::default(),
            page_size: NonZeroU32::MIN.saturating_add(999),
            vcpu_quota: None,
            spot_vcpu_quota: None,
            instance_quota: None,
            volume_quota: None,
            failed_launch_keeps_token: true,
            required_tag: None,
            console_line_length: 76,
            check_zone_of_subnet: true,
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

impl Knobs {
    /// Renames the region and its zones: zones whose names begin with the old name get the new one, and so do those of the subnets
    /// and the types.
    ///
    /// ```
    /// let mut knobs = fleetwright_emulators::ec2::Knobs::default();
    /// knobs.rename_region("eu-west-1");
    /// assert_eq!(knobs.zones[0], "eu-west-1a");
    /// assert_eq!(knobs.subnets[0].zone, "eu-west-1a");
    /// ```
    pub fn rename_region(&mut self, name: &str) {
        let zones = self.zones.iter_mut();
        let zones = zones.chain(self.subnets.iter_mut().map(|subnet| &mut subnet.zone));
        let zones = zones.chain(self.types.iter_mut().flat_map(|spec| &mut spec.zones));
        for zone in zones {
            if let Some(rest) = zone.strip_prefix(&self.region) {
                *zone = format!("{name}{rest}");
            }
        }
        name.clone_into(&mut self.region);
    }
}

/// A tag that a condition of an IAM policy requires (`aws:ResourceTag`).
///
/// ```
/// use fleetwright_emulators::ec2::{Knobs, RequiredTag};
///
/// let mut knobs = Knobs::default();
/// knobs.required_tag = Some(RequiredTag::new("team", "blue"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RequiredTag {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

impl RequiredTag {
    /// Creates a condition for a tag.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

/// How long transitions take, and how long things are remembered. In JSON, milliseconds.
///
/// The times of transitions are chosen, so that tests are fast: EC2 documents none.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_emulators::ec2::Knobs;
///
/// let mut knobs = Knobs::default();
/// knobs.timing.boot = Duration::from_secs(30);
/// knobs.timing.terminated_visible = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// From launch or start to `running`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub boot: Duration,
    /// From stop to `stopped`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From terminate to `terminated`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub terminate: Duration,
    /// From `running` until the status checks pass. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub checks: Duration,
    /// From CreateImage until the image is `available`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// How long a terminated instance is still described. Default one hour: EC2 documents "usually less than one
    /// hour" (Amazon EC2 API reference, "DescribeInstances").
    #[serde(with = "crate::cloud::millis")]
    pub terminated_visible: Duration,
    /// How long a client token is remembered after its instances are terminated. Default one day: "at least 24
    /// hours" in an earlier version of AWS's page "Ensuring idempotency".
    #[serde(with = "crate::cloud::millis")]
    pub token_retention: Duration,
}

impl Timing {
    /// Sets the duration of every transition. How long things are remembered keeps its default.
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
    /// A tenth of a second for transitions, an hour for terminated instances, and a day for tokens.
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
