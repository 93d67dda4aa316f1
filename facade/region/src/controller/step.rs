//! What a controller does next: plain values, decided in one place and carried out in another.

use chrono::{DateTime, Utc};
use fleetwright::Reboot;

use crate::server::Why;

/// The next step for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write down a new launch, and send it.
    Begin(Begin),
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
    Terminate(Why),
    /// Delete the record: nothing of the server is left in the cloud.
    Forget,
    /// Say that nothing more is done without somebody's word.
    GiveUp(GiveUp),
    /// Nothing until the record changes, or until then.
    Wait(Wait, Option<DateTime<Utc>>),
    /// Everything is as it is asked for.
    Done,
}

/// Why a launch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
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
pub enum GiveUp {
    /// No attempt is left.
    AttemptsUsed,
    /// The machine had booted and is gone.
    Lost,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The time for the next call, after one that failed.
    Backoff,
    /// The monitor's first sight of the machine, or its next sight after a change.
    Sight,
    /// The cloud, which is bringing the machine into another state.
    Cloud,
    /// The end of the machine.
    End,
}

impl Step {
    /// Its name in the drawing.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begin(Begin::First) => "begin",
            Self::Begin(Begin::Changed) => "begin-changed",
            Self::Begin(Begin::Retry) => "begin-retry",
            Self::Begin(Begin::Replace) => "begin-replace",
            Self::Resend => "resend",
            Self::Settle => "settle",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Reboot(_) => "reboot",
            Self::Resize => "resize",
            Self::Reimage => "reimage",
            Self::Retag => "retag",
            Self::Terminate(_) => "terminate",
            Self::Forget => "forget",
            Self::GiveUp(_) => "give-up",
            Self::Wait(..) => "wait",
            Self::Done => "done",
        }
    }
}
