//! What can go wrong in the simulated cloud.

use std::time::Duration;

use fleetwright_chaos::FaultPlan;

use crate::error::Refusal;

/// The faults in force, by [`WireCall`](crate::WireCall) name and number of the call.
pub type Faults = FaultPlan<Fault>;

/// Something that goes wrong with one call between a handle and the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The cloud refuses the call and does nothing.
    Refused(Refused),
    /// No answer: before the effect the request is lost, after it the reply. The caller cannot
    /// tell which.
    Lost(Phase),
    /// The cloud answers an internal error. The caller cannot tell whether it did anything.
    ServerError(Phase),
    /// The call never ends, as on a connection that went dead.
    Hang(Phase),
    /// The calling process dies at this point: the call never ends, and neither does any later one
    /// of the same handle. Drop them and open a new handle, as a restarted process would.
    Crash(Phase),
    /// The call is carried out, and its answer cannot be read.
    Malformed,
    /// A read shows the oldest that the consistency window allows.
    StaleRead,
    /// Every instance in the answer has this native state, which nobody knows.
    UnknownState(String),
    /// The launch is accepted and fails before the instance runs, with this code and message.
    FailsLate {
        /// The cloud's code.
        code: String,
        /// The cloud's words.
        message: String,
    },
}

/// When a fault strikes: before the cloud acts on the call, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The call has no effect.
    Before,
    /// The call has had its effect.
    After,
}

/// How the cloud refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Too many calls; come back after this time.
    Throttled(Duration),
    /// The credentials expired.
    BadCredentials,
    /// The credentials do not allow it.
    AccessDenied,
    /// Nothing is free.
    Capacity,
    /// Every address is in use.
    Quota,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Throttled(delay) => Self::Throttled(delay),
            Refused::BadCredentials => Self::BadCredentials,
            Refused::AccessDenied => Self::AccessDenied,
            Refused::Capacity => Self::NoCapacityAnywhere,
            Refused::Quota => Self::NoAddressLeft,
        }
    }
}
