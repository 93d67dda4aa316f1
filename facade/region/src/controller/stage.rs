//! The stages of a server, as in the diagram of the [module](super).

use fleetwright::CloudInstanceState;

use crate::server::{Presence, Server};

/// A stage in the diagram. It follows from the record alone and is not stored.
///
/// ```
/// use fleetwright_region::controller::Stage;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
/// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
/// # let (region, admin) = (TestRegion::new(std::sync::Arc::new(cloud)), server_admin());
/// let created = region.servers.ensure(&admin, &bare_server(1)).await?;
/// assert_eq!(Stage::of(&created.server), Stage::New);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing was ever launched.
    New,
    /// A launch was sent, or is about to be, and its outcome is unknown.
    Unsettled,
    /// The last launch had no effect.
    Unlaunched,
    /// There is a machine that was not observed yet.
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
    /// The last scan did not find the machine.
    Absent,
    /// The machine is being terminated.
    Terminating,
    /// The machine no longer exists.
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

    /// Returns the stage of a server.
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

    /// Returns the name in the diagram.
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
