//! The closed vocabulary that a control loop acts on.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{InstanceId, InstanceType, Market, NetworkId, Zone};

/// What went wrong. The same on every cloud: quota is not capacity is not throttling is not
/// authorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value is refused: change the config.
    Invalid,
    /// The cloud has no such instance or object.
    NotFound,
    /// Something else is being done to it, or the name is taken.
    Conflict,
    /// The instance's state does not allow the call.
    WrongState,
    /// The launch token belongs to a launch with another config: a mistake of the caller.
    TokenConflict,
    /// The launch token's instances are terminated, or being so: launch anew with a new token.
    TokenSpent,
    /// The cloud has no machine of this kind there now: try another offering, or later.
    Capacity,
    /// The account's limit is reached: terminate something or ask for more.
    Quota,
    /// Too many calls: slow down.
    Throttled,
    /// The credentials are missing, expired or wrong.
    Unauthenticated,
    /// The credentials do not allow this.
    Forbidden,
    /// The backend does not offer this call.
    Unsupported,
    /// A list could not see every part; the scopes name what is missing.
    Incomplete,
    /// No answer came in time.
    Timeout,
    /// The cloud cannot be reached or cannot serve the call now.
    Unavailable,
    /// An answer that the backend does not understand.
    Unexpected,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 16] = [
        Self::Invalid,
        Self::NotFound,
        Self::Conflict,
        Self::WrongState,
        Self::TokenConflict,
        Self::TokenSpent,
        Self::Capacity,
        Self::Quota,
        Self::Throttled,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::Unsupported,
        Self::Incomplete,
        Self::Timeout,
        Self::Unavailable,
        Self::Unexpected,
    ];

    /// The kind in words, as `Display` and metrics show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::WrongState => "wrong state",
            Self::TokenConflict => "token conflict",
            Self::TokenSpent => "token spent",
            Self::Capacity => "capacity",
            Self::Quota => "quota",
            Self::Throttled => "throttled",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::Unsupported => "unsupported",
            Self::Incomplete => "incomplete",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What became of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changed nothing.
    None,
    /// It, or a part of it, was done all the same.
    Done,
    /// Nobody knows. A launch is settled with
    /// [`find_launch`](crate::InstanceProvisioner::find_launch) before anything is sent again.
    Unknown,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no effect",
            Self::Done => "effect done",
            Self::Unknown => "effect unknown",
        })
    }
}

/// Whether and when the same call may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    /// Unchanged, it would only fail again.
    Never,
    /// It may be repeated: a launch only with the same token, so one without a token must not be;
    /// a reboot boots again; every other call is idempotent.
    SameToken,
    /// As [`SameToken`](Self::SameToken), but not before this time has passed.
    After(Duration),
}

impl RetryAdvice {
    /// How long to wait at least before the call is repeated; nothing where it must not be.
    pub const fn delay(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::SameToken => Some(Duration::ZERO),
            Self::After(delay) => Some(delay),
        }
    }
}

impl fmt::Display for RetryAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("do not retry"),
            Self::SameToken => f.write_str("retry with the same token"),
            Self::After(delay) => write!(f, "retry after {delay:?}"),
        }
    }
}

/// What a failure is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// One instance.
    Instance(InstanceId),
    /// What can be bought: any type, zone or market where it is unset.
    Offering {
        /// The type, or all of them.
        instance_type: Option<InstanceType>,
        /// The zone, or all of them.
        zone: Option<Zone>,
        /// The market, or both.
        market: Option<Market>,
    },
    /// A network or subnet.
    Network(NetworkId),
    /// The backend's whole region.
    Region,
    /// The whole account.
    Account,
}

impl Scope {
    /// Everything in one zone.
    pub const fn zone(zone: Zone) -> Self {
        Self::Offering {
            instance_type: None,
            zone: Some(zone),
            market: None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(id) => write!(f, "instance {id}"),
            Self::Offering {
                instance_type,
                zone,
                market,
            } => {
                let mut words = Vec::new();
                words.extend(instance_type.as_ref().map(|t| format!("type {t}")));
                words.extend(zone.as_ref().map(|z| format!("zone {z}")));
                words.extend(market.map(|m| match m {
                    Market::OnDemand => "on demand".to_owned(),
                    Market::Spot => "spot".to_owned(),
                }));
                if words.is_empty() {
                    f.write_str("every offering")
                } else {
                    f.write_str(&words.join(" "))
                }
            }
            Self::Network(id) => write!(f, "network {id}"),
            Self::Region => f.write_str("region"),
            Self::Account => f.write_str("account"),
        }
    }
}
