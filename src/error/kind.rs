//! The kinds, effects and advice of errors, which a control loop acts on.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// What went wrong, the same on every cloud. Quota, capacity, throttling and authorization are
/// different kinds, because a control loop reacts to each in another way.
///
/// ```
/// use fleetwright::ErrorKind;
///
/// fn reaction(kind: ErrorKind) -> &'static str {
///     match kind {
///         ErrorKind::Capacity => "try another offering",
///         ErrorKind::Quota => "terminate something or raise the quota",
///         ErrorKind::TokenSpent => "launch with a new token",
///         ErrorKind::Throttled | ErrorKind::Unavailable | ErrorKind::Timeout => "retry later",
///         _ => "notify an operator",
///     }
/// }
/// assert_eq!(reaction(ErrorKind::Capacity), "try another offering");
/// assert_eq!(ErrorKind::TokenSpent.to_string(), "token spent");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value was refused. Change the config.
    ///
    /// Nothing was created. [`ProvisionError::invalid_value`](crate::ProvisionError::invalid_value)
    /// has the field and the limit.
    Invalid,
    /// The cloud has no such instance or object.
    ///
    /// Check the id and the account. A retry is advised only for an instance that the same handle has
    /// just launched and that is not visible yet. A handle cannot know what other handles and
    /// processes launch: if one of them launched the instance, the error proves that it is gone only
    /// once the [consistency window](crate::Capabilities::consistency_window) has passed since then.
    NotFound,
    /// Another change is in progress, or the name is taken.
    ///
    /// Follow the retry advice: a change in progress ends, a taken name does not.
    Conflict,
    /// The instance's state does not allow the call.
    ///
    /// The message names the state and the one that the call needs.
    WrongState,
    /// The launch token was used with another config. That is a bug in the caller.
    ///
    /// Nothing was launched, and the instance of the token is not affected.
    TokenConflict,
    /// The launch token's instances are terminating or terminated. Launch with a new token.
    ///
    /// [`launch_next_attempt`](crate::InstanceProvisionerExt::launch_next_attempt) does that.
    TokenSpent,
    /// The cloud has no capacity for this offering now. Try another one, or try later.
    ///
    /// The scopes name the offering. [`layer::Fallback`](crate::layer::Fallback) tries alternatives.
    Capacity,
    /// A limit of the account is reached. Terminate instances or request a higher limit.
    ///
    /// Another offering does not help, unless the scopes say that the limit applies to one only.
    Quota,
    /// Too many calls. Send fewer.
    ///
    /// The retry advice has the delay that the cloud requests.
    Throttled,
    /// The credentials are missing, expired or wrong.
    ///
    /// A retry does not help until they are replaced.
    Unauthenticated,
    /// The credentials do not allow the call.
    ///
    /// A person must grant the permission.
    Forbidden,
    /// The backend does not support the call.
    ///
    /// [`Capabilities::supports`](crate::Capabilities::supports) says so in advance.
    Unsupported,
    /// A list could not read every part. The scopes name the missing ones.
    ///
    /// Never treat instances in those parts as terminated.
    /// [`stream_instances`](crate::InstanceProvisioner::stream_instances) returns the other parts.
    Incomplete,
    /// No response within the timeout.
    ///
    /// The effect of a change is unknown; a read may be retried.
    Timeout,
    /// The cloud cannot be reached or cannot serve the call now.
    ///
    /// The effect says whether the call may have reached it.
    Unavailable,
    /// The backend does not understand the cloud's response.
    ///
    /// Report it to the backend's author, with the native code and the request id.
    Unexpected,
}

impl ErrorKind {
    /// All kinds.
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

    /// Returns the kind's name, as in `Display` and metrics.
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

/// Whether a failed call changed anything. Ordered from the weakest to the strongest effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call changed nothing.
    None,
    /// The call, or a part of it, was done although it failed.
    Done,
    /// It is not known whether the call changed anything. Settle a launch with
    /// [`settle_launch`](crate::InstanceProvisionerExt::settle_launch), or replay its token, before
    /// anything else is launched.
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
///
/// ```
/// use std::time::Duration;
/// use fleetwright::RetryAdvice;
///
/// assert_eq!(RetryAdvice::Never.delay(), None);
/// assert_eq!(RetryAdvice::SameToken.delay(), Some(Duration::ZERO));
/// let minute = Duration::from_secs(60);
/// assert_eq!(RetryAdvice::After(minute).delay(), Some(minute));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    /// The same call would fail again.
    Never,
    /// The call may be sent again. A launch needs the same token, so one without a token must not be
    /// sent again; a reboot may reboot twice; every other call is idempotent.
    SameToken,
    /// Like [`SameToken`](Self::SameToken), but only after this delay.
    After(Duration),
}

impl RetryAdvice {
    /// Returns the least delay before the call may be sent again, or `None` if it must not be.
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
