//! Whether a server has a machine of which something can be asked. Pure.

use std::time::Duration;

use fleetwright::CloudInstanceState;

use super::MachineError;
use crate::server::{CloudInstance, ConditionKind, Field, Power, Presence, Server, Why};

/// When to ask again for what is not there yet: about as long as a monitor takes to see a change.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// In which state a machine must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// In any in which it exists: a console is the only witness of a boot that fails.
    Machine,
    /// Running.
    Running,
    /// Running or stopped, with what is on its disk known.
    AtRest,
}

impl Needs {
    const fn words(self) -> &'static str {
        match self {
            Self::Machine => "launched",
            Self::Running => "running",
            Self::AtRest => "running or stopped",
        }
    }
}

/// The machine of a server, by what is recorded. That may be old; the cloud has the last word.
pub(crate) fn reach(server: &Server, needs: Needs) -> Result<&CloudInstance, MachineError> {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
    let wait = |found| Err(not_ready(server, needs, found));
    if server.intent.power == Power::Deleted {
        return Err(MachineError::Deleting(server.id));
    }
    let Some(machine) = &server.instance else {
        return Err(not_launched(server, needs));
    };
    match machine.ending.map(|ending| ending.why) {
        Some(Why::Delete) => return Err(MachineError::Deleting(server.id)),
        Some(Why::Replace) => return wait("being replaced"),
        Some(Why::Failed | Why::Missing) => return Err(gone(server, needs)),
        None => {}
    }
    let state = match server.seen() {
        Some(seen) if matches!(seen.presence, Presence::Missing(_)) => {
            return Err(gone(server, needs));
        }
        Some(seen) => Some(seen.state),
        None => None,
    };
    match (needs, state) {
        (_, Some(Terminating | Terminated)) => Err(gone(server, needs)),
        (Needs::Machine, None | Some(Pending | Running | Stopping | Stopped))
        | (Needs::Running, Some(Running)) => Ok(machine),
        (Needs::AtRest, Some(Running | Stopped)) => {
            if machine.doubt.fields.contains(&Field::Image) {
                return wait("being given another image");
            }
            Ok(machine)
        }
        (Needs::Running | Needs::AtRest, None | Some(Pending)) => wait("booting"),
        (Needs::Running | Needs::AtRest, Some(Stopping)) => wait("stopping"),
        (Needs::Running, Some(Stopped)) => wait("stopped"),
    }
}

fn not_ready(server: &Server, needs: Needs, found: &'static str) -> MachineError {
    MachineError::NotReady {
        id: server.id,
        found,
        wanted: needs.words(),
        retry_after: RETRY_AFTER,
    }
}

/// There is none yet.
fn not_launched(server: &Server, needs: Needs) -> MachineError {
    let holds = |kind| server.condition(kind).is_some();
    if holds(ConditionKind::AttemptsUsed) || holds(ConditionKind::Refused) {
        let found = "could not be launched";
        return MachineError::NoMachine {
            id: server.id,
            found,
        };
    }
    let found = match &server.launch {
        None => "not launched yet",
        Some(launch) if launch.life > 1 => "being replaced",
        Some(_) => "being launched",
    };
    not_ready(server, needs, found)
}

/// It had one, which is gone or going, and nobody asked for that.
fn gone(server: &Server, needs: Needs) -> MachineError {
    let id = server.id;
    if server.condition(ConditionKind::AttemptsUsed).is_some() {
        let found = "has no machine that boots";
        return MachineError::NoMachine { id, found };
    }
    if server.has_booted() {
        let found = "has lost its machine";
        return MachineError::NoMachine { id, found };
    }
    not_ready(server, needs, "being launched again")
}
