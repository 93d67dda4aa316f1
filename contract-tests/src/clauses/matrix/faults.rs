//! The faults of the matrix, with what the contract says about the error of each.
//!
//! Owns one table. A new fault is one more row of it; every property of the matrix then holds with
//! it, for every operation and at every native call.

use fleetwright::ErrorKind;

use super::operations::{Change, Row};
use crate::{Context, WireFault, WireOp};

/// One fault.
pub(super) struct Fault {
    /// What happens.
    pub(super) what: What,
    /// The kinds of error that fit it.
    pub(super) kinds: &'static [ErrorKind],
    /// What an error must advise.
    pub(super) advice: Advice,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Throttled,
    BadCredentials,
    Forbidden,
    /// Into the native call that needs capacity.
    Capacity,
    /// As [`Capacity`](Self::Capacity).
    Quota,
    RequestLost,
    ResponseLost,
    ServerErrorBefore,
    ServerErrorAfter,
    Malformed,
    CrashBefore,
    CrashAfter,
    /// The caller drops the future at its nth poll.
    Dropped,
}

/// What an error must advise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// A retry after the delay that the cloud demands.
    AfterDelay,
    /// A retry.
    Retry,
    /// Anything but a retry at once.
    NotAtOnce,
    /// Anything.
    Anything,
}

const fn fault(what: What, kinds: &'static [ErrorKind], advice: Advice) -> Fault {
    Fault {
        what,
        kinds,
        advice,
    }
}

/// The kinds of an error without a response.
const NO_RESPONSE: &[ErrorKind] = &[ErrorKind::Timeout, ErrorKind::Unavailable];

/// Every fault.
pub(super) const FAULTS: &[Fault] = &[
    fault(What::Throttled, &[ErrorKind::Throttled], Advice::AfterDelay),
    fault(
        What::BadCredentials,
        &[ErrorKind::Unauthenticated],
        Advice::Anything,
    ),
    fault(What::Forbidden, &[ErrorKind::Forbidden], Advice::Anything),
    fault(What::Capacity, &[ErrorKind::Capacity], Advice::Anything),
    fault(What::Quota, &[ErrorKind::Quota], Advice::NotAtOnce),
    fault(What::RequestLost, NO_RESPONSE, Advice::Retry),
    fault(What::ResponseLost, NO_RESPONSE, Advice::Retry),
    fault(
        What::ServerErrorBefore,
        &[ErrorKind::Unavailable],
        Advice::Retry,
    ),
    fault(
        What::ServerErrorAfter,
        &[ErrorKind::Unavailable],
        Advice::Retry,
    ),
    fault(What::Malformed, &[ErrorKind::Unexpected], Advice::Retry),
    fault(What::CrashBefore, &[], Advice::Anything),
    fault(What::CrashAfter, &[], Advice::Anything),
    fault(What::Dropped, &[], Advice::Anything),
];

impl Fault {
    /// Returns the fault on the wire, unless it is the caller's own doing.
    pub(super) fn wire(&self, cx: &Context) -> Option<WireFault> {
        Some(match self.what {
            What::Throttled => WireFault::Throttled(cx.throttle_delay()),
            What::BadCredentials => WireFault::BadCredentials,
            What::Forbidden => WireFault::Forbidden,
            What::Capacity => WireFault::Capacity,
            What::Quota => WireFault::Quota,
            What::RequestLost => WireFault::RequestLost,
            What::ResponseLost => WireFault::ResponseLost,
            What::ServerErrorBefore => WireFault::ServerErrorBefore,
            What::ServerErrorAfter => WireFault::ServerErrorAfter,
            What::Malformed => WireFault::Malformed,
            What::CrashBefore => WireFault::CrashBefore,
            What::CrashAfter => WireFault::CrashAfter,
            What::Dropped => return None,
        })
    }

    /// Returns into which native calls of an operation the fault is injected, or `None` if it makes no
    /// sense there.
    pub(super) fn strikes(&self, row: &Row) -> Option<WireOp> {
        match self.what {
            What::Capacity | What::Quota => row.capacity,
            What::CrashBefore | What::CrashAfter | What::Dropped => {
                (row.change != Change::Nothing).then_some(WireOp::Any)
            }
            What::Throttled
            | What::BadCredentials
            | What::Forbidden
            | What::RequestLost
            | What::ResponseLost
            | What::ServerErrorBefore
            | What::ServerErrorAfter
            | What::Malformed => Some(WireOp::Any),
        }
    }

    /// Returns whether it is the turn of this fault among those that are alike.
    pub(super) fn is_in_turn(&self, turn: usize) -> bool {
        match self.what {
            What::Throttled => turn % 3 == 0,
            What::BadCredentials => turn % 3 == 1,
            What::Forbidden => turn % 3 == 2,
            What::RequestLost | What::CrashBefore => turn % 2 == 0,
            What::ServerErrorBefore | What::CrashAfter => turn % 2 == 1,
            What::ResponseLost => turn % 3 == 0,
            What::ServerErrorAfter => turn % 3 == 1,
            What::Malformed => turn % 3 == 2,
            What::Capacity | What::Quota | What::Dropped => true,
        }
    }

    /// Returns whether the call returns a result.
    pub(super) fn returns(&self) -> bool {
        !matches!(
            self.what,
            What::CrashBefore | What::CrashAfter | What::Dropped
        )
    }
}
