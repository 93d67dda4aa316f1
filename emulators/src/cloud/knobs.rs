//! The knobs that all clouds have. Owns only values. Durations are milliseconds in JSON.

use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

/// A limit on the machines that run at once. Fields that are not set match everything.
///
/// A launch needs a free machine under every rule that matches it. Without capacity the cloud
/// reports its own error: `InsufficientInstanceCapacity`, `ZONE_RESOURCE_POOL_EXHAUSTED` or
/// `AllocationFailed`.
///
/// In JSON: `{"instance_type": "m5.large", "zone": "us-east-1a", "market": "spot", "machines": 3}`.
///
/// ```
/// # #[cfg(feature = "ec2")] {
/// use fleetwright_emulators::ec2::{Capacity, Knobs};
///
/// let mut three_large = Capacity::of(3);
/// three_large.instance_type = Some("m5.large".to_owned());
/// let mut knobs = Knobs::default();
/// knobs.capacity.push(three_large);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Capacity {
    /// Only machines of this instance type. By default of all types.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// Only machines in this zone. By default in all zones.
    #[serde(default)]
    pub zone: Option<String>,
    /// Only machines of this market. By default of both.
    #[serde(default)]
    pub market: Option<Market>,
    /// The maximum number of machines that run at once. 0 means that there is no capacity.
    pub machines: u64,
}

impl Capacity {
    /// Limits all machines together; set the public fields to narrow the rule.
    pub const fn of(machines: u64) -> Self {
        Self {
            instance_type: None,
            zone: None,
            market: None,
            machines,
        }
    }
}

/// The market that an instance is bought on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// On demand: runs until it is terminated.
    OnDemand,
    /// Spot: the cloud may take the machine back at any time.
    Spot,
}

/// Launches that the cloud accepts and that fail before they run. Fields that are not set match
/// everything; the first rule that matches applies.
///
/// On EC2 the instance becomes `terminated` with `code` as its state reason; on Compute Engine and
/// Azure the operation ends with `code` as its error.
///
/// ```
/// # #[cfg(feature = "ec2")] {
/// use fleetwright_emulators::ec2::{Knobs, LateFailure};
///
/// let mut failure = LateFailure::new("Server.InternalError", "internal error on launch");
/// failure.zone = Some("us-east-1b".to_owned());
/// let mut knobs = Knobs::default();
/// knobs.late_failures.push(failure);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LateFailure {
    /// Only launches of this instance type. By default of all types.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// Only launches in this zone. By default in all zones.
    #[serde(default)]
    pub zone: Option<String>,
    /// The cloud's error code, for example `Server.InternalError`.
    pub code: String,
    /// The cloud's message.
    pub message: String,
}

impl LateFailure {
    /// Makes every launch fail; set the public fields to narrow the rule.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            instance_type: None,
            zone: None,
            code: code.into(),
            message: message.into(),
        }
    }

    /// Whether the rule matches a launch of this type in this zone.
    pub(crate) fn matches(&self, instance_type: &str, zone: &str) -> bool {
        is_or_any(self.instance_type.as_deref(), instance_type)
            && is_or_any(self.zone.as_deref(), zone)
    }
}

/// When a cloud with asynchronous operations reports that a limit is reached.
///
/// In JSON: `immediate` or `in_operation`.
#[cfg(any(feature = "gcp", feature = "azure"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitCheck {
    /// The request is refused, and nothing is created.
    Immediate,
    /// The request is accepted, and its operation fails.
    InOperation,
}

/// Whether an optional field of a rule matches a value.
pub(super) fn is_or_any(expected: Option<&str>, value: &str) -> bool {
    expected.is_none_or(|expected| expected == value)
}

/// A token bucket that refuses calls which come too fast.
///
/// In JSON: `{"period": 500, "burst": 5, "counts": "resources", "retry_after": true}`.
///
/// The refusal is the cloud's own: `RequestLimitExceeded` (EC2), `rateLimitExceeded` (Compute
/// Engine), `TooManyRequests` (Azure).
///
/// ```
/// # #[cfg(feature = "ec2")] {
/// use std::{num::NonZeroU32, time::Duration};
/// use fleetwright_emulators::ec2::{Counts, Knobs, Throttle};
///
/// // Five instances at once, then two per second.
/// let burst = NonZeroU32::MIN.saturating_add(4);
/// let mut throttle = Throttle::new(Duration::from_millis(500), burst);
/// throttle.counts = Counts::Resources;
/// let mut knobs = Knobs::default();
/// knobs.throttle.insert("RunInstances".to_owned(), throttle);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Throttle {
    /// The time after which one token is added, in milliseconds; without meaning if the bucket is
    /// refilled each minute.
    #[serde(with = "super::millis")]
    pub period: Duration,
    /// The maximum number of tokens, and the number at the start.
    pub burst: NonZeroU32,
    /// What costs a token. By default every call.
    #[serde(default)]
    pub counts: Counts,
    /// Whether a refusal has a `Retry-After` header. By default it has none.
    #[serde(default)]
    pub retry_after: bool,
    /// When tokens are added. By default one by one.
    #[serde(default)]
    pub refill: Refill,
}

impl Throttle {
    /// Allows one call every `period`, and `burst` calls at once.
    pub const fn new(period: Duration, burst: NonZeroU32) -> Self {
        Self {
            period,
            burst,
            counts: Counts::Requests,
            retry_after: false,
            refill: Refill::Steady,
        }
    }

    /// Allows `burst` calls between two full minutes of the calendar.
    pub const fn each_minute(burst: NonZeroU32) -> Self {
        Self {
            refill: Refill::EachMinute,
            ..Self::new(Duration::from_secs(60), burst)
        }
    }
}

/// When tokens are added to a [`Throttle`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// One after each period.
    #[default]
    Steady,
    /// All of them at each full minute. Compute Engine refills its quotas in this way: one that is
    /// used up at 10:00:15 is full again at 10:01:00 (Compute Engine documentation, "Compute Engine
    /// rate quotas and system limits").
    EachMinute,
}

/// What costs a token of a [`Throttle`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// One token for each call.
    #[default]
    Requests,
    /// One token for each instance that a call creates or names, and one for a call that names
    /// none. EC2 throttles `RunInstances` and `TerminateInstances` in this way.
    Resources,
}
