//! The steps of the controller: plain values, decided in one place and carried out in another.

use chrono::{DateTime, Utc};
use fleetwright::Reboot;

use crate::server::TerminationReason;

/// The next step for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store a new launch and send it.
    Launch(LaunchReason),
    /// Send the stored launch again.
    Resend,
    /// Find out the outcome of a launch that was sent.
    Settle,
    /// Start the machine.
    Start,
    /// Stop the machine.
    Stop,
    /// Reboot the machine.
    Reboot(Reboot),
    /// Resize the stopped machine.
    Resize,
    /// Reimage the machine.
    Reimage,
    /// Set the machine's tags.
    Retag,
    /// Terminate the machine.
    Terminate(TerminationReason),
    /// Withdraw a termination that the cloud has not accepted: the machine is listed again, or its replacement cannot be launched.
    KeepMachine,
    /// Report that a change cannot be applied, with the reason. The machine stays as it is.
    Refuse(String),
    /// Delete the record: the server has no machine any more.
    DeleteRecord,
    /// Record that the controller does nothing more until the desired state changes.
    Fail(FailureReason),
    /// Wait until the record changes, or until this date.
    Wait(Wait, Option<DateTime<Utc>>),
    /// The desired state is reached.
    Done,
}

/// Why a machine is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchReason {
    /// It is the first machine.
    First,
    /// The previous launch had no effect, and the spec has changed since.
    Changed,
    /// The previous machine did not boot.
    Retry,
    /// A replacement was requested.
    Replace,
}

/// Why the controller does nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// No attempt is left.
    AttemptsExhausted,
    /// The machine had booted and no longer exists.
    Lost,
}

/// What the controller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The delay after a failed call.
    Backoff,
    /// The first observation of the machine, or the next one after a change.
    Observation,
    /// The cloud, which is changing the state of the machine.
    Cloud,
    /// The termination of the machine.
    Termination,
}

impl Step {
    /// Returns the name in the diagram and in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Launch(LaunchReason::First) => "launch",
            Self::Launch(LaunchReason::Changed) => "launch-changed",
            Self::Launch(LaunchReason::Retry) => "launch-retry",
            Self::Launch(LaunchReason::Replace) => "launch-replace",
            Self::Resend => "resend",
            Self::Settle => "settle",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Reboot(_) => "reboot",
            Self::Resize => "resize",
            Self::Reimage => "reimage",
            Self::Retag => "retag",
            Self::Terminate(_) => "terminate",
            Self::KeepMachine => "keep-machine",
            Self::Refuse(_) => "refuse",
            Self::DeleteRecord => "delete-record",
            Self::Fail(_) => "fail",
            Self::Wait(..) => "wait",
            Self::Done => "done",
        }
    }
}
