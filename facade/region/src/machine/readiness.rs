//! Whether the machine of a server can serve a call now. Pure.

use std::time::Duration;

use fleetwright::CloudInstanceState;

use super::MachineError;
use crate::server::{ConditionKind, Field, Machine, Power, Presence, Server, TerminationReason};

/// The retry delay while a machine is not ready: about one scan of the monitor.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The state that a call requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredState {
    /// Any in which it exists: the console is the only trace of a boot that fails.
    Machine,
    /// Running.
    Running,
    /// Running or stopped, without an unconfirmed reimage.
    RunningOrStopped,
}

impl RequiredState {
    const fn description(self) -> &'static str {
        match self {
            Self::Machine => "launched",
            Self::Running => "running",
            Self::RunningOrStopped => "running or stopped",
        }
    }
}

/// Returns the machine of a server if it is ready, by the record. The record may be outdated; the cloud decides.
pub(crate) fn ready_machine(
    server: &Server,
    needs: RequiredState,
) -> Result<&Machine, MachineError> {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
    let wait = |found| Err(not_ready(server, needs, found));
    if server.intent.power == Power::Deleted {
        return Err(MachineError::Deleting(server.id));
    }
    let Some(machine) = &server.machine else {
        return Err(not_launched(server, needs));
    };
    match machine.termination.map(|termination| termination.reason) {
        Some(TerminationReason::Delete) => return Err(MachineError::Deleting(server.id)),
        Some(TerminationReason::Replace) => return wait("being replaced"),
        Some(TerminationReason::Failed | TerminationReason::Missing) => {
            return Err(gone(server, needs));
        }
        None => {}
    }
    let state = match server.current_observation() {
        Some(seen) if matches!(seen.presence, Presence::Missing(_)) => {
            return Err(gone(server, needs));
        }
        Some(seen) => Some(seen.state),
        None => None,
    };
    match (needs, state) {
        (_, Some(Terminating | Terminated)) => Err(gone(server, needs)),
        (RequiredState::Machine, None | Some(Pending | Running | Stopping | Stopped))
        | (RequiredState::Running, Some(Running)) => Ok(machine),
        (RequiredState::RunningOrStopped, Some(Running | Stopped)) => {
            if machine.unconfirmed.fields.contains(&Field::Image) {
                return wait("being given another image");
            }
            Ok(machine)
        }
        (RequiredState::Running | RequiredState::RunningOrStopped, None | Some(Pending)) => {
            wait("booting")
        }
        (RequiredState::Running | RequiredState::RunningOrStopped, Some(Stopping)) => {
            wait("stopping")
        }
        (RequiredState::Running, Some(Stopped)) => wait("stopped"),
    }
}

fn not_ready(server: &Server, needs: RequiredState, found: &'static str) -> MachineError {
    MachineError::NotReady {
        id: server.id,
        found,
        wanted: needs.description(),
        retry_after: RETRY_AFTER,
    }
}

/// The error of a server without a machine.
fn not_launched(server: &Server, needs: RequiredState) -> MachineError {
    let holds = |kind| server.condition(kind).is_some();
    if holds(ConditionKind::AttemptsExhausted) || holds(ConditionKind::Refused) {
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

/// The error of a server whose machine was terminated without a request.
fn gone(server: &Server, needs: RequiredState) -> MachineError {
    let id = server.id;
    if server.condition(ConditionKind::AttemptsExhausted).is_some() {
        let found = "has no machine that boots";
        return MachineError::NoMachine { id, found };
    }
    if server.has_booted() {
        let found = "has lost its machine";
        return MachineError::NoMachine { id, found };
    }
    not_ready(server, needs, "being launched again")
}
