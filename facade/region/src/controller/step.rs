//! What a controller does next: plain values, decided in one place and carried out in another.

use chrono::{DateTime, Utc};
use fleetwright::Reboot;

use crate::server::TerminationReason;

/// The next step for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write down a new launch, and send it.
    Launch(LaunchReason),
    /// Send the launch that is written down, once more.
    Resend,
    /// Find out what became of a launch that was sent.
    Settle,
    /// Start the machine.
    Start,
    /// Stop the machine.
    Stop,
    /// Reboot the machine.
    Reboot(Reboot),
    /// Give the stopped machine another size.
    Resize,
    /// Put another image on the machine.
    Reimage,
    /// Change the machine's tags to what they should be.
    Retag,
    /// Destroy the machine.
    Terminate(TerminationReason),
    /// Delete the record: nothing of the server is left in the cloud.
    DeleteRecord,
    /// Say that nothing more is done without somebody's word.
    Fail(FailureReason),
    /// Nothing until the record changes, or until then.
    Wait(Wait, Option<DateTime<Utc>>),
    /// Everything is as it is asked for.
    Done,
}

/// Why a launch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchReason {
    /// It is the first.
    First,
    /// The one before made nothing, and something else is asked for since.
    Changed,
    /// The one before did not come to a boot.
    Retry,
    /// Another machine is asked for.
    Replace,
}

/// Why nothing more is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// No attempt is left.
    AttemptsExhausted,
    /// The machine had booted and is gone.
    Lost,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The time for the next call, after one that failed.
    Backoff,
    /// The monitor's first observation of the machine, or its next observation after a change.
    Observation,
    /// The cloud, which is bringing the machine into another state.
    Cloud,
    /// The end of the machine.
    Termination,
}

impl Step {
    /// Its name in the drawing.
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
            Self::DeleteRecord => "delete-record",
            Self::Fail(_) => "fail",
            Self::Wait(..) => "wait",
            Self::Done => "done",
        }
    }
}
