//! The faults that can be injected between a handle and the cloud.
//!
//! Owns their names and meaning; the [wire](crate::wire) applies them.

use std::time::Duration;

use fleetwright::{InvalidValue, Problem};
use fleetwright_chaos::FaultPlan;

use crate::error::NativeError;

/// The fault rules of an account, selected by [`WireCall`](crate::WireCall) and number of the call.
///
/// ```
/// use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, WireCall};
///
/// let cloud = MemoryCloud::new();
/// // The response of the second launch from now is lost.
/// cloud.faults().add(Rule::nth(WireCall::Launch, 2, Fault::Lost(Phase::After)));
/// // No fault was injected yet, which a test can assert at its end.
/// assert_eq!(cloud.faults().unused_rules().len(), 1);
/// ```
pub type Faults = FaultPlan<Fault>;

/// A failure of one call between a handle and the cloud.
///
/// The README lists what the caller observes for each fault and what has happened in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The cloud refuses the call and changes nothing.
    Refused(RefusalReason),
    /// The call times out: [`Phase::Before`] loses the request, [`Phase::After`] the response. The
    /// caller cannot tell which, so the effect is unknown.
    Lost(Phase),
    /// The cloud returns an internal error. The caller cannot tell whether the call took effect.
    ServerError(Phase),
    /// The call never returns, as on a dead connection.
    Hang(Phase),
    /// The calling process dies at this point: the call never returns, and neither does any later
    /// call of the same handle. Drop the handle and open a new one, as a restarted process would.
    Crash(Phase),
    /// The call takes effect, and its response cannot be parsed.
    Malformed,
    /// A read returns the oldest state that the consistency window allows. Ignored by writes.
    StaleRead,
    /// Every instance in the response has this native state. The provider reports an unknown one as
    /// pending.
    UnknownState(String),
    /// The launch succeeds, and the instance is terminated instead of running, with this code and
    /// message as its reason. Ignored by other calls.
    FailsLate {
        /// The cloud's code.
        code: String,
        /// The cloud's message.
        message: String,
    },
}

/// When a fault is injected: before or after the cloud handles the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The call has no effect.
    Before,
    /// The call has had its effect.
    After,
}

/// Why the cloud refuses a call with [`Fault::Refused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Too many calls; retry after this time. Reported as
    /// [`ErrorKind::Throttled`](fleetwright::ErrorKind::Throttled).
    Throttled(Duration),
    /// The credentials have expired. Reported as
    /// [`ErrorKind::Unauthenticated`](fleetwright::ErrorKind::Unauthenticated).
    BadCredentials,
    /// The credentials do not allow the call. Reported as
    /// [`ErrorKind::Forbidden`](fleetwright::ErrorKind::Forbidden).
    AccessDenied,
    /// The region has no capacity. Reported as
    /// [`ErrorKind::Capacity`](fleetwright::ErrorKind::Capacity).
    Capacity,
    /// All addresses are in use. Reported as
    /// [`ErrorKind::Quota`](fleetwright::ErrorKind::Quota).
    Quota,
    /// The quota of the account is reached. Reported as
    /// [`ErrorKind::Quota`](fleetwright::ErrorKind::Quota).
    AccountQuota,
    /// The size of the disk is refused. Reported as
    /// [`ErrorKind::Invalid`](fleetwright::ErrorKind::Invalid).
    DiskSize,
    /// Another change is in progress. Reported as
    /// [`ErrorKind::Conflict`](fleetwright::ErrorKind::Conflict).
    ChangeInProgress,
    /// The instance does not allow the call in any state. Reported as
    /// [`ErrorKind::Unsupported`](fleetwright::ErrorKind::Unsupported).
    Unsupported,
}

impl From<RefusalReason> for NativeError {
    fn from(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::Throttled(delay) => Self::Throttled(delay),
            RefusalReason::BadCredentials => Self::BadCredentials,
            RefusalReason::AccessDenied => Self::AccessDenied,
            RefusalReason::Capacity => Self::NoCapacityAnywhere,
            RefusalReason::Quota => Self::NoAddressLeft,
            RefusalReason::AccountQuota => Self::QuotaExceeded {
                used: 0,
                requested: 1,
                limit: 0,
            },
            RefusalReason::DiskSize => {
                let instead = "another size".to_owned();
                Self::Invalid(InvalidValue::new(
                    "disk size",
                    Problem::NotOffered { instead },
                ))
            }
            RefusalReason::ChangeInProgress => Self::ChangeInProgress,
            RefusalReason::Unsupported => Self::Unsupported,
        }
    }
}
