//! Invariants of every decision and every projection.

mod fixtures;
mod tenant_text;

use std::{collections::BTreeSet, sync::LazyLock};

use chrono::TimeDelta;
use fleetwright_region::server::{Plan, Power, Server};
use proptest::prelude::*;

use super::{Inputs, Obstacle, Step, Wait, decide, decide::is_owned, events_between, project};
use crate::instance::{ConditionKind, EventKind, Instance, Status};
use fixtures::{every_shape, instance, now, server_of};

static SHAPES: LazyLock<Vec<(Instance, Option<Server>)>> = LazyLock::new(every_shape);

fn step_of(instance: &Instance, server: Option<&Server>) -> Step {
    decide(instance, server)
}

#[test]
fn every_step_is_decided_for_some_shape() {
    let steps = SHAPES.iter();
    let steps = steps.map(|(instance, server)| step_of(instance, server.as_ref()).name());
    let all = [
        "create-server",
        "apply",
        "delete-server",
        "remove-instance",
        "wait-for-server",
        "wait-for-server-deletion",
        "wait-for-operator-deletion",
        "server-missing",
        "server-conflict",
        "idle",
    ];
    assert_eq!(steps.collect::<BTreeSet<_>>(), all.into());
}

#[test]
fn decision_keeps_its_promises_for_every_shape() {
    for (instance, server) in &*SHAPES {
        let own = server.as_ref().filter(|server| is_owned(instance, server));
        let being_deleted = own.is_some_and(|server| server.intent.power == Power::Deleted);
        let had = instance.status.server;
        let allowed = match step_of(instance, server.as_ref()) {
            Step::CreateServer => {
                let requested = had.is_none_or(|link| instance.intent.replaces > link.replaces);
                server.is_none() && requested && instance.deletion.is_none()
            }
            Step::Apply => {
                let applied = own.is_none_or(|server| instance.desired_state().holds_for(server));
                !applied && !being_deleted && instance.deletion.is_none()
            }
            Step::DeleteServer => own.is_some() && !being_deleted && instance.deletion.is_some(),
            Step::RemoveInstance => own.is_none() && instance.deletion.is_some(),
            Step::Wait(Wait::ServerDeletion) => being_deleted && instance.deletion.is_some(),
            Step::Wait(Wait::OperatorDeletion) => being_deleted && instance.deletion.is_none(),
            Step::Wait(Wait::ServerMissing) => {
                server.is_none() && had.is_some() && instance.deletion.is_none()
            }
            Step::Wait(Wait::ServerConflict) => {
                server.is_some() && own.is_none() && instance.deletion.is_none()
            }
            Step::Wait(Wait::Server) | Step::Idle => {
                let applied = own.is_some_and(|server| instance.desired_state().holds_for(server));
                applied && instance.deletion.is_none()
            }
        };
        assert!(allowed, "{instance:#?} {server:#?}");
    }
}

/// A server's own requests beyond its instance's do not cause an endless loop of changes.
#[test]
fn requests_of_operators_to_a_server_are_not_reverted() {
    let instance = instance();
    let mut server = server_of(&instance);
    server["intent"]["reboots"] = serde_json::json!(5);
    server["intent"]["replaces"] = serde_json::json!(4);
    let server: Server = serde_json::from_value(server).unwrap();
    assert_eq!(step_of(&instance, Some(&server)), Step::Idle);
    let plan = Plan::default();
    let found = Inputs {
        server: Some(&server),
        plan: &plan,
        obstacle: None,
    };
    let status = project(&instance, &found, now());
    assert_eq!(
        status.server.unwrap().replaces,
        0,
        "no replacement was requested"
    );
}

fn shown(instance: &Instance, server: Option<&Server>, days: i64) -> Status {
    let (plan, date) = (Plan::default(), now() + TimeDelta::days(days));
    let own = server.filter(|server| is_owned(instance, server));
    let taken = Obstacle::new(ConditionKind::IdConflict, "taken");
    let found = Inputs {
        server: own,
        plan: &plan,
        obstacle: (server.is_some() && own.is_none()).then_some(&taken),
    };
    project(instance, &found, date)
}

proptest! {
    /// Time alone changes no status, so it causes no write; and equal statuses have no events between them.
    #[test]
    fn projecting_a_status_again_changes_nothing(shape in 0..SHAPES.len(), days in 0_i64..1000) {
        let (instance, server) = &SHAPES[shape];
        let status = shown(instance, server.as_ref(), 0);
        let mut again = instance.clone();
        again.status = status.clone();
        prop_assert_eq!(&shown(&again, server.as_ref(), days), &status);
        prop_assert!(events_between(&status, &status).is_empty());
    }
}

#[test]
fn status_matches_server_and_machine() {
    for (instance, server) in &*SHAPES {
        let status = shown(instance, server.as_ref(), 0);
        let own = server.as_ref().filter(|server| is_owned(instance, server));
        let done = |server: &Server| {
            instance.desired_state().holds_for(server)
                && server.observed_generation == server.generation
        };
        assert!(status.observed_generation <= status.applied_generation);
        assert!(status.applied_generation <= instance.generation);
        if status.observed_generation == instance.generation {
            assert!(own.is_some_and(done), "{instance:#?} {server:#?}");
        }
        let exists = own
            .and_then(Server::current_observation)
            .is_some_and(|observation| {
                let missing = matches!(
                    observation.presence,
                    fleetwright_region::server::Presence::Missing(_)
                );
                !missing && !observation.state.is_ending()
            });
        assert_eq!(status.private_ip.is_some(), exists, "{server:#?}");
        assert_eq!(status.public_ip.is_some(), exists);
        assert_eq!(status.mac_address.is_some(), exists);
        let kinds: BTreeSet<_> = status.conditions.iter().map(|held| held.kind).collect();
        assert_eq!(kinds.len(), status.conditions.len(), "each at most once");
    }
}

#[test]
fn condition_keeps_its_date_and_has_one_event() {
    let mut instance = instance();
    let plan = Plan::default();
    let at = |instance: &Instance, message: &str, days| {
        let obstacle = Obstacle::new(ConditionKind::Refused, message);
        let found = Inputs {
            server: None,
            plan: &plan,
            obstacle: Some(&obstacle),
        };
        project(instance, &found, now() + TimeDelta::days(days))
    };
    let first = at(&instance, "no flavor", 0);
    let events = events_between(&instance.status, &first);
    let problem = (EventKind::Problem, "no flavor".to_owned());
    assert!(events.contains(&problem), "{events:?}");
    instance.status = first.clone();
    let later = at(&instance, "no image", 5);
    assert_eq!(later.conditions[0].since, now());
    assert_eq!(later.conditions[0].message, "no image");
    assert_eq!(events_between(&first, &later), []);
}
