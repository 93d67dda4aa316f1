//! The status of an instance, projected from its record and its server's. Pure. The status is written only if it differs from the
//! recorded one, and the differences become events.

use chrono::{DateTime, Utc};
use fleetwright::CloudInstanceState;
use fleetwright_region::server::{
    ChangeMethod, Health, Observed, Phase, Plan, Power, Presence, Server,
};

use super::messages;
use crate::{
    instance::{
        Condition, ConditionKind, DeletionCause, EventKind, Instance, PendingAction, ServerLink,
        Status,
    },
    loss::loss,
};

/// What prevents an instance's progress, beside the conditions of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The kind of the condition.
    pub kind: ConditionKind,
    /// One line: what is wrong, and what to do.
    pub message: String,
}

impl Obstacle {
    /// Creates one.
    pub fn new(kind: ConditionKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// What a reconcile read about an instance.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Its own server, if it exists. A server of another owner is an obstacle.
    pub server: Option<&'a Server>,
    /// How the machine differs from the desired state.
    pub plan: &'a Plan,
    /// What prevents progress.
    pub obstacle: Option<&'a Obstacle>,
}

/// Returns the status of an instance. Projecting it again gives the same status: no age is part of it, so that time alone causes no
/// write.
pub fn project(instance: &Instance, found: &Inputs<'_>, now: DateTime<Utc>) -> Status {
    let before = &instance.status;
    let observation = found.server.and_then(observed_machine);
    let mut status = before.clone();
    status.phase = phase(instance, found);
    status.health = health(instance, found);
    status.private_ip = observation.and_then(|observation| observation.private_ip);
    status.public_ip = observation.and_then(|observation| observation.public_ip);
    status.mac_address = observation.and_then(|observation| observation.mac_address);
    let observed = found.server.and_then(Server::current_observation);
    status.observed_at = observed.map(|observation| observation.at);
    status.conditions = conditions(instance, found, now);
    status.pending = pending(instance, found, now);
    let Some(server) = found.server else {
        return status;
    };
    status.server = Some(ServerLink {
        // Replacements that an operator requested of the server do not count as the tenant's.
        replaces: server.intent.replaces.min(instance.intent.replaces),
        generation: server.generation,
    });
    if is_applied(instance, server) {
        status.applied_generation = instance.generation;
        let done = server.observed_generation == server.generation;
        if instance.deletion.is_none() && done {
            status.observed_generation = instance.generation;
        }
    }
    status
}

/// Whether the desired state of an instance is that of its server.
fn is_applied(instance: &Instance, server: &Server) -> bool {
    match &instance.deletion {
        Some(_) => server.intent.power == Power::Deleted,
        None => instance.desired_state().holds_for(server),
    }
}

/// The last observation of a machine that may still exist.
fn observed_machine(server: &Server) -> Option<&Observed> {
    let observation = server.current_observation()?;
    match (observation.presence, observation.state) {
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
        ) => Some(observation),
    }
}

fn phase(instance: &Instance, found: &Inputs<'_>) -> Phase {
    if instance.deletion.is_some() {
        return Phase::Deleting;
    }
    match (found.server, found.obstacle.map(|obstacle| obstacle.kind)) {
        (Some(server), _) => server.phase(),
        (None, Some(ConditionKind::MachineRemoved)) => Phase::Lost,
        (None, Some(_)) => Phase::Failed,
        (None, None) => Phase::Pending,
    }
}

fn health(instance: &Instance, found: &Inputs<'_>) -> Health {
    match (&instance.deletion, found.server, found.obstacle) {
        (Some(_), _, _) | (None, None, None) => Health::Unknown,
        (None, Some(server), _) => server.last_observed_health(),
        (None, None, Some(_)) => Health::Error,
    }
}

/// At most one of each kind, in the order of the kinds. An obstacle takes precedence over the server's condition of the same kind.
fn conditions(instance: &Instance, found: &Inputs<'_>, now: DateTime<Utc>) -> Vec<Condition> {
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
                kind: ConditionKind::NetworkDeleting,
                message: format!(
                    "its network {} is being deleted, and the instance with it",
                    instance.network
                ),
                since: mark.at,
            });
        }
    }
    let reported = found.server.iter().flat_map(|server| &server.conditions);
    for condition in reported {
        let kind = ConditionKind::from(condition.kind);
        if conditions.iter().all(|held| held.kind != kind) {
            conditions.push(Condition {
                kind,
                message: messages::for_tenant(&condition.message, instance, found.server),
                since: condition.since,
            });
        }
    }
    conditions.sort_by_key(|condition| condition.kind);
    conditions
}

/// The change of the machine that is under way, unless everything is applied or something prevents it.
///
/// A replacement that was requested comes first, then changed fields, then power and reboots. A change that destroys the machine stays
/// shown until it is applied, because between two machines there is nothing to compare with.
fn pending(instance: &Instance, found: &Inputs<'_>, now: DateTime<Utc>) -> Option<PendingAction> {
    let server = found.server?;
    if instance.deletion.is_some() || found.obstacle.is_some() {
        return None;
    }
    let before = instance.status.pending.as_ref();
    let applied = server.observed_generation == server.generation;
    let Some((reason, lost)) = pending_change(server, found.plan, applied) else {
        let replacing = before.filter(|action| action.lost.is_some() && !applied);
        return replacing.cloned();
    };
    let plan = found.plan.clone();
    let same = |action: &&PendingAction| action.plan == plan && action.reason == reason;
    Some(PendingAction {
        since: before.filter(same).map_or(now, |action| action.since),
        plan,
        reason,
        lost,
    })
}

/// Why the machine is being changed, and what is lost by that. `None` if it has no machine, or no change is known.
fn pending_change(server: &Server, plan: &Plan, applied: bool) -> Option<(String, Option<String>)> {
    let (machine, launch) = (server.machine.as_ref()?, server.launch.as_ref()?);
    if server.intent.replaces > launch.replaces {
        let lost = messages::ALL_LOST.to_owned();
        return Some(("a replacement was requested".to_owned(), Some(lost)));
    }
    if plan
        .methods
        .values()
        .any(|method| *method != ChangeMethod::NextLaunch)
    {
        return Some((messages::changes(plan), loss(plan)));
    }
    if applied {
        return None;
    }
    let state = observed_machine(server).map(|observed| observed.state);
    let reason = match (server.intent.power, state) {
        (Power::Stopped, Some(CloudInstanceState::Running)) => "the machine is being stopped",
        (Power::Running, Some(CloudInstanceState::Stopped)) => "the machine is being started",
        _ if server.intent.reboots > machine.reboots => "a reboot was requested",
        _ => return None,
    };
    Some((reason.to_owned(), None))
}

/// Returns the events between two statuses of an instance, in their order.
pub fn events_between(before: &Status, after: &Status) -> Vec<(EventKind, String)> {
    let mut events = Vec::new();
    let created = match (&before.server, &after.server) {
        (None, Some(_)) => true,
        (Some(_), Some(_)) => {
            let missing =
                |status: &Status| status.condition(ConditionKind::MachineRemoved).is_some();
            missing(before) && !missing(after)
        }
        (_, None) => false,
    };
    let applied = before.applied_generation != after.applied_generation;
    if created {
        events.push((
            EventKind::Accepted,
            "the region accepted the instance".to_owned(),
        ));
    } else if applied {
        let message = "the requested change is being applied".to_owned();
        events.push((EventKind::Applied, message));
    }
    if before.phase != after.phase {
        events.push((EventKind::Phase, messages::phase(after.phase).to_owned()));
    }
    for condition in &after.conditions {
        let reported = match condition.kind {
            // One is no problem, and the other has an event of its own.
            ConditionKind::NextLaunch | ConditionKind::NetworkDeleting => true,
            ConditionKind::NoCapacity
            | ConditionKind::AccountLimit
            | ConditionKind::Refused
            | ConditionKind::CloudError
            | ConditionKind::AttemptsExhausted
            | ConditionKind::Lost
            | ConditionKind::Unsupported
            | ConditionKind::ConsentNeeded
            | ConditionKind::MachineRemoved
            | ConditionKind::IdConflict
            | ConditionKind::MachineDeleting => before.condition(condition.kind).is_some(),
        };
        if !reported {
            events.push((EventKind::Problem, condition.message.clone()));
        }
    }
    if before.observed_generation != after.observed_generation {
        let message = "everything requested is applied".to_owned();
        events.push((EventKind::Completed, message));
    }
    events
}
