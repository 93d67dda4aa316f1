//! What an instance is to its tenant: a pure projection of its record and its server's. It is written only if it differs from what is
//! recorded, and what differs is what events are made of.

use chrono::{DateTime, Utc};
use fleetwright::CloudInstanceState;
use fleetwright_region::server::{
    ChangeMethod, Health, Observed, Phase, Plan, Power, Presence, Server,
};

use super::words;
use crate::{
    instance::{
        Condition, ConditionKind, DeletionCause, EventKind, Instance, PendingAction, ServerLink,
        Status,
    },
    lost::lost,
};

/// What is in the way of an instance, beside what its server tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Which sort.
    pub kind: ConditionKind,
    /// In one line: what, and what to do.
    pub message: String,
}

impl Obstacle {
    /// Something of a sort, in words.
    pub fn new(kind: ConditionKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// What was found of an instance in a pass.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its own server, if there is one. Another's is an obstacle.
    pub server: Option<&'a Server>,
    /// What it takes to give its machine what is asked for.
    pub plan: &'a Plan,
    /// What is in the way.
    pub obstacle: Option<&'a Obstacle>,
}

/// The status of an instance of which this was found. The same if it is projected again; how long ago something was seen is in no
/// part of it, so that time alone changes nothing.
pub fn project(instance: &Instance, found: &Found<'_>, now: DateTime<Utc>) -> Status {
    let before = &instance.status;
    let seen = found.server.and_then(standing);
    let mut status = before.clone();
    status.phase = phase(instance, found);
    status.health = health(instance, found);
    status.private_ip = seen.and_then(|seen| seen.private_ip);
    status.public_ip = seen.and_then(|seen| seen.public_ip);
    status.mac_address = seen.and_then(|seen| seen.mac_address);
    let observed = found.server.and_then(Server::current_observation);
    status.observed_at = observed.map(|seen| seen.at);
    status.conditions = conditions(instance, found, now);
    status.pending = pending(instance, found, now);
    let Some(server) = found.server else {
        return status;
    };
    status.server = Some(ServerLink {
        // What others asked of the server does not count for what its tenant asked for.
        replaces: server.intent.replaces.min(instance.intent.replaces),
        generation: server.generation,
    });
    if heard(instance, server) {
        status.passed_generation = instance.generation;
        let done = server.observed_generation == server.generation;
        if instance.deletion.is_none() && done {
            status.observed_generation = instance.generation;
        }
    }
    status
}

/// Whether a server was asked for what is asked of its instance.
fn heard(instance: &Instance, server: &Server) -> bool {
    match &instance.deletion {
        Some(_) => server.intent.power == Power::Deleted,
        None => instance.wish().holds_for(server),
    }
}

/// What was seen of a machine that may still be there.
fn standing(server: &Server) -> Option<&Observed> {
    let seen = server.current_observation()?;
    match (seen.presence, seen.state) {
        (Presence::Missing(_), _) => None,
        (
            Presence::Shown | Presence::Absent(_),
            CloudInstanceState::Terminating | CloudInstanceState::Terminated,
        ) => None,
        (
            Presence::Shown | Presence::Absent(_),
            CloudInstanceState::Pending
            | CloudInstanceState::Running
            | CloudInstanceState::Stopping
            | CloudInstanceState::Stopped,
        ) => Some(seen),
    }
}

fn phase(instance: &Instance, found: &Found<'_>) -> Phase {
    if instance.deletion.is_some() {
        return Phase::Deleting;
    }
    match (found.server, found.obstacle.map(|obstacle| obstacle.kind)) {
        (Some(server), _) => server.phase(),
        (None, Some(ConditionKind::ServerMissing)) => Phase::Lost,
        (None, Some(_)) => Phase::Failed,
        (None, None) => Phase::Pending,
    }
}

fn health(instance: &Instance, found: &Found<'_>) -> Health {
    match (&instance.deletion, found.server, found.obstacle) {
        (Some(_), _, _) | (None, None, None) => Health::Unknown,
        (None, Some(server), _) => server.last_observed_health(),
        (None, None, Some(_)) => Health::Error,
    }
}

/// At most one of each sort, in the order of the sorts. What is in the way here comes before what the server tells of the same sort.
fn conditions(instance: &Instance, found: &Found<'_>, now: DateTime<Utc>) -> Vec<Condition> {
    let before = &instance.status;
    let mut conditions = Vec::new();
    if let Some(Obstacle { kind, message }) = found.obstacle.cloned() {
        let since = before.condition(kind).map_or(now, |held| held.since);
        conditions.push(Condition {
            kind,
            message,
            since,
        });
    }
    if let Some(mark) = &instance.deletion {
        if mark.cause == DeletionCause::Network {
            conditions.push(Condition {
                kind: ConditionKind::NetworkGoing,
                message: format!("its network {} is going, and it goes", instance.network),
                since: mark.at,
            });
        }
    }
    let told = found.server.iter().flat_map(|server| &server.conditions);
    for condition in told {
        let kind = ConditionKind::from(condition.kind);
        if conditions.iter().all(|held| held.kind != kind) {
            conditions.push(Condition {
                kind,
                message: condition.message.clone(),
                since: condition.since,
            });
        }
    }
    conditions.sort_by_key(|condition| condition.kind);
    conditions
}

/// What is being done to a machine, as long as it is not what is asked for and nothing is in the way of that.
fn pending(instance: &Instance, found: &Found<'_>, now: DateTime<Utc>) -> Option<PendingAction> {
    let server = found.server?;
    if instance.deletion.is_some() || found.obstacle.is_some() {
        return None;
    }
    let done = server.observed_generation == server.generation;
    // Between the end of one machine and the first boot of the next there is nothing to compare with: it still goes on.
    let going_on = || {
        let held = instance.status.pending.clone();
        held.filter(|held| held.lost.is_some() && !done)
    };
    let (Some(machine), Some(launch)) = (&server.machine, &server.launch) else {
        return going_on();
    };
    let replace = server.intent.replaces > launch.replaces;
    let changes = found
        .plan
        .methods
        .values()
        .any(|way| *way != ChangeMethod::NextLaunch);
    let seen = standing(server).map(|seen| seen.state);
    let (reason, destroyed) = if replace {
        let reason = "another machine was asked for".to_owned();
        (reason, Some(words::ALL_LOST.to_owned()))
    } else if changes {
        (words::changes(found.plan), lost(found.plan))
    } else if done {
        return None;
    } else if server.intent.power == Power::Stopped && seen == Some(CloudInstanceState::Running) {
        ("it is to be stopped".to_owned(), None)
    } else if server.intent.power == Power::Running && seen == Some(CloudInstanceState::Stopped) {
        ("it is to be started".to_owned(), None)
    } else if server.intent.reboots > machine.reboots {
        ("a reboot was asked for".to_owned(), None)
    } else {
        return going_on();
    };
    let plan = found.plan.clone();
    let same = |held: &&PendingAction| held.plan == plan && held.reason == reason;
    let held = instance.status.pending.as_ref().filter(same);
    Some(PendingAction {
        since: held.map_or(now, |held| held.since),
        plan,
        reason,
        lost: destroyed,
    })
}

/// What has happened between two statuses of an instance, in the order in which it is told.
pub fn happened(before: &Status, after: &Status) -> Vec<(EventKind, String)> {
    let mut events = Vec::new();
    let made = match (&before.server, &after.server) {
        (None, Some(_)) => true,
        (Some(_), Some(_)) => {
            let missing =
                |status: &Status| status.condition(ConditionKind::ServerMissing).is_some();
            missing(before) && !missing(after)
        }
        (_, None) => false,
    };
    let heard = before.passed_generation != after.passed_generation;
    if made {
        events.push((EventKind::ServerMade, "its server was made".to_owned()));
    } else if heard {
        let words = format!("generation {} was passed on", after.passed_generation);
        events.push((EventKind::PassedOn, words));
    }
    if before.phase != after.phase {
        events.push((EventKind::Phase, words::phase(after.phase).to_owned()));
    }
    for condition in &after.conditions {
        let told = match condition.kind {
            // One is no trouble, and the other was told when the deletion was asked for.
            ConditionKind::NextLaunch | ConditionKind::NetworkGoing => true,
            ConditionKind::NoCapacity
            | ConditionKind::AccountLimit
            | ConditionKind::Refused
            | ConditionKind::CloudError
            | ConditionKind::AttemptsExhausted
            | ConditionKind::Lost
            | ConditionKind::Unsupported
            | ConditionKind::ConsentNeeded
            | ConditionKind::ServerMissing
            | ConditionKind::ServerTaken
            | ConditionKind::ServerGoing => before.condition(condition.kind).is_some(),
        };
        if !told {
            events.push((EventKind::Trouble, condition.message.clone()));
        }
    }
    if before.observed_generation != after.observed_generation {
        let words = format!(
            "what generation {} asked for is true",
            after.observed_generation
        );
        events.push((EventKind::Settled, words));
    }
    events
}
