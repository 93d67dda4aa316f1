//! The knobs that all clouds have. Owns only values; durations are milliseconds on the wire.

use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

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
    /// By the hour, until it is ended.
    OnDemand,
    /// Until the cloud wants it back.
    Spot,
}

/// Launches that fail late. Unset fields mean any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LateFailure {
    /// Of this type.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// In this zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// The code of the reason.
    pub code: String,
    /// The words of the reason.
    pub message: String,
}

impl LateFailure {
    /// Every launch fails so; narrow it with the public fields.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            instance_type: None,
            zone: None,
            code: code.into(),
            message: message.into(),
        }
    }

    /// Whether a launch of this type in this zone fails so.
    pub(crate) fn strikes(&self, instance_type: &str, zone: &str) -> bool {
        is_or_any(self.instance_type.as_deref(), instance_type)
            && is_or_any(self.zone.as_deref(), zone)
    }
}

/// When a cloud with asynchronous operations reports that a limit is reached.
///
/// On the wire: `immediate` or `in_operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitCheck {
    /// The request is refused, and nothing is created.
    Immediate,
    /// The request is accepted, and its operation fails.
    InOperation,
}

/// Whether a field of a rule means this.
pub(super) fn is_or_any(only: Option<&str>, it: &str) -> bool {
    only.is_none_or(|only| only == it)
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
    /// Whether a refusal says when to come back, in a `Retry-After` header.
    #[serde(default)]
    pub retry_after: bool,
}

impl Throttle {
    /// One call every `period`, and `burst` of them at once.
    pub const fn new(period: Duration, burst: NonZeroU32) -> Self {
        Self {
            period,
            burst,
            counts: Counts::Requests,
            retry_after: false,
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
