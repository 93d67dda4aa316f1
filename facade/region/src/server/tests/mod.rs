//! Phase, health, tokens and events of a record.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, InstanceConfig, InstanceId, InstanceStatus};
use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_runtime::clock::later;
use uuid::Uuid;

use super::*;
use crate::{
    ids::{FlavorId, ImageId, NetworkId, RegionId},
    monitor::RegionScan,
};

fn at(seconds: u64) -> DateTime<Utc> {
    later(DateTime::UNIX_EPOCH, Duration::from_secs(seconds))
}

fn server(power: Power) -> Server {
    let spec = ServerSpec::new(
        FlavorId::new("small").unwrap(),
        ImageId::new("linux").unwrap(),
        NetworkId::from_uuid(Uuid::from_u128(3)),
    );
    Server {
        id: "cea82847-20ce-5f13-87fb-9f3cc7da081d".parse().unwrap(),
        owner: Owner::new("instance", "1"),
        region: RegionId::new("here").unwrap(),
        organization: OrganizationId::new(Uuid::from_u128(1)),
        project: ProjectId::new(Uuid::from_u128(2)),
        created_at: at(1),
        spec,
        intent: Intent::new(power),
        generation: 1,
        observed_generation: 0,
        launch: None,
        machine: None,
        retry: None,
        conditions: Vec::new(),
        observed: None,
        booted: None,
        drift: BTreeSet::new(),
        public_key: None,
        events: Vec::new(),
    }
}

/// A server whose machine was observed in a state a hundred seconds after its creation.
fn with_observation(power: Power, state: CloudInstanceState) -> Server {
    let mut server = server(power);
    server.launch = Some(Launch {
        incarnation: 1,
        token: server.token(1),
        attempt: 1,
        life: 1,
        replaces: 0,
        reboots: 0,
        spec: server.spec.clone(),
        config: InstanceConfig::builder("linux", "small").build().unwrap(),
        sent_at: None,
        spent: false,
        sealed_user_data: None,
        unconfirmed: None,
    });
    let id = InstanceId::new("i-1").unwrap();
    server.machine = Some(Machine {
        id: id.clone(),
        incarnation: 1,
        recorded_at: at(50),
        applied: server.spec.clone(),
        unconfirmed: UnconfirmedChange::default(),
        reboots: 0,
        last_action: None,
        refused: RefusedChanges::default(),
        termination: None,
        withdrawn_at: None,
    });
    server.observed = Some(Observed::of(InstanceStatus::new(id, state), at(100), None));
    server
}

fn scan(seconds: u64) -> RegionScan {
    serde_json::from_value(serde_json::json!({
        "region": "here", "at": at(seconds), "tick": Duration::from_secs(10), "machines": 1,
        "servers": 1, "gaps": [], "frozen": null, "orphans": [],
    }))
    .unwrap()
}

#[test]
fn tokens_are_stable_and_differ_by_server_creation_and_incarnation() {
    let one = server(Power::Running);
    assert_eq!(one.machine_name(1), "1000000-1");
    assert_eq!(
        one.token(1).as_str(),
        "a9f2ad31-acfd-5d5d-8fb4-0a0ad8fcfec4"
    );
    let mut recreated = one.clone();
    recreated.created_at = at(2);
    let mut other = one.clone();
    other.id = ServerId::from_uuid(Uuid::from_u128(7));
    for different in [one.token(2), recreated.token(1), other.token(1)] {
        assert_ne!(one.token(1), different);
    }
}

#[test]
fn server_stopped_on_purpose_is_healthy() {
    use CloudInstanceState::{Running, Stopped};
    let scan = scan(200);
    let health = |server: &Server| server.health(Some(&scan), at(205));
    assert_eq!(
        health(&with_observation(Power::Stopped, Stopped)),
        Health::Healthy
    );
    assert_eq!(
        health(&with_observation(Power::Running, Running)),
        Health::Healthy
    );
    let mut stopped_externally = with_observation(Power::Running, Stopped);
    stopped_externally.drift.insert(Drift::Power);
    assert_eq!(health(&stopped_externally), Health::Degraded);
    let mut retagged = with_observation(Power::Running, Running);
    retagged.drift.insert(Drift::Tags);
    assert_eq!(health(&retagged), Health::Healthy);
}

#[test]
fn server_without_a_recent_scan_is_unknown() {
    let running = with_observation(Power::Running, CloudInstanceState::Running);
    let health = |scan: Option<&RegionScan>, now| running.health(scan, at(now));
    assert_eq!(health(Some(&scan(200)), 220), Health::Healthy);
    assert_eq!(health(Some(&scan(200)), 221), Health::Unknown);
    assert_eq!(health(None, 100), Health::Unknown);
    assert_eq!(
        running.observed_at(Some(&scan(200)), at(300)),
        Some(at(200))
    );
    // A scan says nothing about a machine that it did not contain.
    let mut absent = running.clone();
    if let Some(observed) = &mut absent.observed {
        observed.presence = Presence::Absent(at(150));
    }
    assert_eq!(absent.observed_at(Some(&scan(200)), at(300)), Some(at(100)));
    assert_eq!(absent.health(Some(&scan(200)), at(205)), Health::Unknown);
    // Neither does the observation of another machine.
    let mut renewed = running;
    if let Some(machine) = &mut renewed.machine {
        machine.id = InstanceId::new("i-2").unwrap();
    }
    assert_eq!(renewed.observed_at(Some(&scan(200)), at(300)), None);
}

#[test]
fn phases_follow_from_the_record() {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping};
    assert_eq!(server(Power::Running).phase(), Phase::Pending);
    assert_eq!(server(Power::Deleted).phase(), Phase::Deleting);
    for (state, phase) in [
        (Pending, Phase::Building),
        (Running, Phase::Running),
        (Stopping, Phase::Stopping),
        (Stopped, Phase::Stopped),
    ] {
        assert_eq!(with_observation(Power::Running, state).phase(), phase);
    }
    let mut failed = with_observation(Power::Running, Running);
    failed.set_condition(at(1), ConditionKind::AttemptsExhausted, "no".to_owned());
    assert_eq!(failed.phase(), Phase::Failed);
    let mut replaced = with_observation(Power::Running, Running);
    if let Some(machine) = &mut replaced.machine {
        machine.termination = Some(Termination {
            reason: TerminationReason::Replace,
            accepted_at: None,
            response: None,
        });
    }
    assert_eq!(replaced.phase(), Phase::Replacing);
}

#[test]
fn events_are_bounded_and_not_repeated() {
    let mut server = server(Power::Running);
    for number in 0..100_u64 {
        let message = format!("event {}", number / 2);
        server.note(
            at(number),
            Writer::Monitor,
            EventKind::StateObserved,
            message,
        );
    }
    assert_eq!(server.events.len(), EVENTS_KEPT);
    let last = server.events.last().unwrap();
    assert_eq!((last.message.as_str(), last.at), ("event 49", at(98)));
}

#[test]
fn condition_keeps_its_date_when_its_message_changes() {
    let mut server = server(Power::Running);
    server.set_condition(at(1), ConditionKind::NoCapacity, "one".to_owned());
    server.set_condition(at(2), ConditionKind::NoCapacity, "two".to_owned());
    server.set_condition(at(3), ConditionKind::Lost, "gone".to_owned());
    let found = server.condition(ConditionKind::NoCapacity).unwrap();
    assert_eq!((found.message.as_str(), found.since), ("two", at(1)));
    server.keep_conditions(&[ConditionKind::Lost]);
    assert_eq!(server.conditions.len(), 1);
}

#[test]
fn record_round_trips() {
    let mut server = with_observation(Power::Stopped, CloudInstanceState::Stopped);
    server.note(at(1), Writer::Service, EventKind::Created, "made");
    let json = serde_json::to_value(&server).unwrap();
    assert_eq!(serde_json::from_value::<Server>(json).unwrap(), server);
}
