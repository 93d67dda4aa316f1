//! Applying an observation to the record of a server. Pure.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, InstanceStatus, Tags};
use fleetwright_runtime::clock::{between, later};

use crate::{
    controller::tags,
    server::{
        Booted, Drift, EventKind, Machine, MachineAction, Observed, Power, Presence, Server, Writer,
    },
};

/// What one scan found out about one machine.
#[derive(Clone, Debug)]
pub(super) enum Observation {
    /// The cloud reported it, with its tags if it was listed.
    Shown(Box<InstanceStatus>, Option<Tags>),
    /// It was not listed, which is no proof.
    Absent,
    /// The machine does not exist.
    Missing,
}

/// The start and the settings of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanContext {
    pub(super) began: DateTime<Utc>,
    /// The current time, which is later.
    pub(super) now: DateTime<Utc>,
    pub(super) window: Duration,
    pub(super) stuck_after: Duration,
}

/// By how much the clocks of two processes may differ.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// Applies an observation of the server's machine to the monitor's fields.
pub(super) fn apply(server: &mut Server, observation: &Observation, look: &ScanContext) {
    let Some(machine) = server.machine.clone() else {
        return;
    };
    note_future_dates(server, &machine, look.now);
    let recorded = server.current_observation().cloned();
    let before = recorded.clone().map(|seen| without_future(seen, look.now));
    let Some(now_seen) = observed(&machine, before.as_ref(), observation, look.began) else {
        server.observed = None;
        return;
    };
    let drift = drift(server, &machine, &now_seen, observation, look);
    add_events(server, before.as_ref(), &now_seen, &drift, look.began);
    // A machine that is being terminated is replaced anyway, whatever its state is until then.
    let running = now_seen.state == CloudInstanceState::Running && machine.termination.is_none();
    let known = |booted: &Booted| booted.incarnation >= machine.incarnation;
    if running && !server.booted.as_ref().is_some_and(known) {
        server.booted = Some(Booted {
            incarnation: machine.incarnation,
            at: look.began,
        });
    }
    server.drift = drift;
    // The scan record covers a scan without changes.
    let from_the_future = recorded != before;
    if from_the_future || !before.is_some_and(|before| before.same_observation(&now_seen)) {
        server.observed = Some(now_seen);
    }
}

/// Adds an event if the controller's dates of the machine are in the future, because a clock was set back since. Until then nothing would
/// prove that the machine is missing or was changed by others. The event wakes the controller, which replaces its dates.
fn note_future_dates(server: &mut Server, machine: &Machine, now: DateTime<Utc>) {
    let latest = later(now, CLOCK_DIFFERENCE);
    let last_action = machine.last_action.map(|last| last.at);
    if machine.recorded_at > latest || last_action.is_some_and(|at| at > latest) {
        let message = "a clock was set back: the dates of the machine are replaced";
        server.note(now, Writer::Monitor, EventKind::Changed, message);
    }
}

/// Replaces the dates of an observation that are in the future: a clock was set back since.
fn without_future(mut seen: Observed, now: DateTime<Utc>) -> Observed {
    seen.at = seen.at.min(now);
    seen.since = seen.since.min(now);
    seen.presence = match seen.presence {
        Presence::Shown => Presence::Shown,
        Presence::Absent(since) => Presence::Absent(since.min(now)),
        Presence::Missing(since) => Presence::Missing(since.min(now)),
    };
    seen
}

/// Returns what is known of the machine after an observation, or `None` if it was never observed.
fn observed(
    machine: &Machine,
    before: Option<&Observed>,
    observation: &Observation,
    began: DateTime<Utc>,
) -> Option<Observed> {
    let absent = |presence| {
        before.map(|seen| Observed {
            presence,
            ..seen.clone()
        })
    };
    match observation {
        Observation::Shown(status, _) => {
            let possible = |seen: &&Observed| status.state.can_be_observed_after(seen.state);
            match before {
                // The list is older than the known state: a terminated machine does not come back.
                Some(seen) if !possible(&seen) => Some(seen.clone()),
                Some(_) | None => Some(Observed::of((**status).clone(), began, before)),
            }
        }
        Observation::Absent => match before.map(|seen| seen.presence) {
            None => None,
            Some(Presence::Shown) => absent(Presence::Absent(began)),
            Some(Presence::Absent(_) | Presence::Missing(_)) => before.cloned(),
        },
        Observation::Missing => match before.map(|seen| seen.presence) {
            Some(Presence::Missing(_)) => before.cloned(),
            Some(Presence::Shown | Presence::Absent(_)) => absent(Presence::Missing(began)),
            None => {
                let status = InstanceStatus::new(machine.id.clone(), CloudInstanceState::Pending);
                let mut seen = Observed::of(status, began, None);
                seen.presence = Presence::Missing(began);
                Some(seen)
            }
        },
    }
}

fn drift(
    server: &Server,
    machine: &Machine,
    seen: &Observed,
    observation: &Observation,
    look: &ScanContext,
) -> BTreeSet<Drift> {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
    let mut drift = BTreeSet::new();
    let own_end = machine.termination.is_some();
    if matches!(seen.presence, Presence::Missing(_)) && !own_end {
        drift.insert(Drift::Missing);
        return drift;
    }
    match seen.state {
        Terminating | Terminated if !own_end => {
            drift.insert(Drift::Destroyed);
        }
        Pending | Running | Stopping | Stopped | Terminating | Terminated => {}
    }
    match seen.state {
        Pending | Stopping | Terminating => {
            if between(seen.since, look.began) > look.stuck_after {
                drift.insert(Drift::Stuck);
            }
        }
        Running | Stopped | Terminated => {}
    }
    // Our own change may not be visible yet.
    let settled = |at: DateTime<Utc>| look.began > later(at, look.window);
    let act = machine.last_action.map(|last_action| last_action.action);
    let quiet = machine
        .last_action
        .is_none_or(|last_action| settled(last_action.at));
    let by_others = match (server.intent.power, seen.state) {
        (Power::Running, Stopping | Stopped) => {
            !matches!(act, Some(MachineAction::Stop | MachineAction::Resize)) && quiet
        }
        (Power::Stopped, Running) => act == Some(MachineAction::Stop) && quiet,
        (Power::Running, Pending | Running | Terminating | Terminated)
        | (Power::Stopped, Pending | Stopping | Stopped | Terminating | Terminated)
        | (Power::Deleted, Pending | Running | Stopping | Stopped | Terminating | Terminated) => {
            false
        }
    };
    if by_others && !own_end {
        drift.insert(Drift::Power);
    }
    let tags = match observation {
        Observation::Shown(_, Some(tags)) => Some(tags),
        Observation::Shown(_, None) | Observation::Absent | Observation::Missing => None,
    };
    let retagged = match tags {
        Some(tags) => quiet && !tags.contains_all(&tags::applied(server, machine)),
        None => server.drift.contains(&Drift::Tags),
    };
    if retagged && !seen.state.is_ending() {
        drift.insert(Drift::Tags);
    }
    drift
}

fn add_events(
    server: &mut Server,
    before: Option<&Observed>,
    seen: &Observed,
    drift: &BTreeSet<Drift>,
    at: DateTime<Utc>,
) {
    if before.is_none_or(|before| before.state != seen.state) {
        let reason = seen.state_reason.as_deref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let message = format!("machine {} is {}{reason}", seen.machine, seen.state);
        server.note(at, Writer::Monitor, EventKind::StateObserved, message);
    }
    let new: Vec<_> = drift.difference(&server.drift).copied().collect();
    for kind in new {
        let message = match kind {
            Drift::Missing => "the machine no longer exists at the cloud",
            Drift::Destroyed => "the machine was terminated outside this system",
            Drift::Power => "the machine was started or stopped outside this system",
            Drift::Tags => "the machine's tags were changed outside this system",
            Drift::Stuck => "the machine has been in a transitional state for too long",
        };
        server.note(at, Writer::Monitor, EventKind::Drifted, message);
    }
}
