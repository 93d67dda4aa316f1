//! Where a server is on its way, as the drawing of the [module](super) names it.

use fleetwright::CloudInstanceState;

use crate::server::{Presence, Server};

/// A place in the drawing. It follows from the record alone and is stored nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing was ever launched.
    New,
    /// A launch was sent, or is about to be, and nobody knows what became of it.
    Unsettled,
    /// The last launch made nothing.
    Unlaunched,
    /// There is a machine, and nobody has seen it yet.
    Unobserved,
    /// The machine has not booted in this life.
    Booting,
    /// The machine is starting again.
    Starting,
    /// The machine runs.
    Running,
    /// The machine is shutting down.
    Stopping,
    /// The machine is stopped.
    Stopped,
    /// The machine was not shown in the last look.
    Absent,
    /// The machine is being destroyed.
    Terminating,
    /// The machine is not there any more.
    Terminated,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 12] = [
        Self::New,
        Self::Unsettled,
        Self::Unlaunched,
        Self::Unobserved,
        Self::Booting,
        Self::Starting,
        Self::Running,
        Self::Stopping,
        Self::Stopped,
        Self::Absent,
        Self::Terminating,
        Self::Terminated,
    ];

    /// The stage of a server.
    pub fn of(server: &Server) -> Self {
        let Some(machine) = &server.machine else {
            return match &server.launch {
                None => Self::New,
                Some(launch) if launch.sent_at.is_some() => Self::Unsettled,
                Some(_) => Self::Unlaunched,
            };
        };
        let Some(seen) = server.current_observation() else {
            return if machine.termination.is_some() {
                Self::Terminating
            } else {
                Self::Unobserved
            };
        };
        match (seen.presence, seen.state) {
            (Presence::Missing(_), _) | (_, CloudInstanceState::Terminated) => Self::Terminated,
            _ if machine.termination.is_some() => Self::Terminating,
            (_, CloudInstanceState::Terminating) => Self::Terminating,
            (Presence::Absent(_), _) => Self::Absent,
            (Presence::Shown, CloudInstanceState::Pending) => {
                if server.has_booted() {
                    Self::Starting
                } else {
                    Self::Booting
                }
            }
            (Presence::Shown, CloudInstanceState::Running) => Self::Running,
            (Presence::Shown, CloudInstanceState::Stopping) => Self::Stopping,
            (Presence::Shown, CloudInstanceState::Stopped) => Self::Stopped,
        }
    }

    /// Its name in the drawing.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Unsettled => "unsettled",
            Self::Unlaunched => "unlaunched",
            Self::Unobserved => "unobserved",
            Self::Booting => "booting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Absent => "absent",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        }
    }
}
