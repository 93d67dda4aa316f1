//! Records of every shape that matters to a decision or a projection, for the tests.

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::InstanceConfig;
use fleetwright_identity::{Actor, ActorName};
use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    server::{Power, Server},
};
use serde_json::{Value, json};

use crate::instance::{DeletionCause, Instance, InstanceId};

pub(super) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(1)
}

pub(super) fn actor() -> Actor {
    Actor::User(ActorName::new("alice").unwrap())
}

/// A new instance.
pub(super) fn instance() -> Instance {
    let network = NetworkId::new("00000000-0000-0000-0000-000000000003").unwrap();
    let name = Name::new("web").unwrap();
    let id = InstanceId::derive(network, &name);
    serde_json::from_value(json!({
        "id": id, "server": id, "name": name, "network": network, "region": "here",
        "organization": "00000000-0000-0000-0000-000000000001",
        "project": "00000000-0000-0000-0000-000000000002",
        "created_at": now(), "created_by": actor(),
        "spec": { "flavor": "small", "image": "linux" },
        "intent": { "power": "running", "reboot_how": "soft" },
        "consent": "keep-everything", "generation": 3,
    }))
    .unwrap()
}

/// A server with the desired state of an instance.
pub(super) fn server_of(instance: &Instance) -> Value {
    let desired = instance.desired_state();
    json!({
        "id": instance.server, "owner": instance.id.owner(), "region": instance.region,
        "organization": instance.organization, "project": instance.project,
        "created_at": now(), "spec": desired.spec, "intent": desired.intent,
        "generation": 7, "observed_generation": 7,
    })
}

/// Whether a machine exists, and what was observed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    None,
    Unseen,
    Shown(&'static str),
    Absent,
    Missing,
}

pub(super) const MACHINES: [Machine; 9] = [
    Machine::None,
    Machine::Unseen,
    Machine::Shown("pending"),
    Machine::Shown("running"),
    Machine::Shown("stopped"),
    Machine::Shown("terminating"),
    Machine::Shown("terminated"),
    Machine::Absent,
    Machine::Missing,
];

fn with_machine(mut server: Value, machine: Machine) -> Value {
    let (presence, state) = match machine {
        Machine::None => return server,
        Machine::Unseen => (None, "pending"),
        Machine::Shown(state) => (Some(json!("shown")), state),
        Machine::Absent => (Some(json!({ "absent": now() })), "running"),
        Machine::Missing => (Some(json!({ "missing": now() })), "running"),
    };
    let config = InstanceConfig::builder("linux", "small").build().unwrap();
    let spec = server["spec"].clone();
    server["launch"] = json!({
        "incarnation": 1, "token": "t", "attempt": 1, "life": 1, "replaces": 0, "reboots": 0,
        "spec": spec, "config": config, "sent_at": null,
    });
    server["machine"] = json!({
        "id": "m", "incarnation": 1, "recorded_at": now(), "applied": spec,
    });
    if let Some(presence) = presence {
        server["booted"] = json!({ "incarnation": 1, "at": now() });
        server["observed"] = json!({
            "machine": "m", "at": now(), "state": state, "since": now(), "native_state": null,
            "state_reason": null, "private_ip": "10.0.0.4", "public_ip": "192.0.2.7",
            "mac_address": "02:00:00:00:00:01", "presence": presence,
        });
    }
    server
}

fn instances() -> Vec<Instance> {
    let mut all = Vec::new();
    for cause in [
        None,
        Some(DeletionCause::Requested),
        Some(DeletionCause::Network),
    ] {
        for linked in [false, true] {
            for replaces in [0, 1] {
                for power in [Power::Running, Power::Stopped] {
                    let mut instance = instance();
                    instance.intent.power = power;
                    instance.intent.replaces = replaces;
                    if linked {
                        let link = json!({ "replaces": 0, "generation": 7 });
                        instance.status.server = serde_json::from_value(link).unwrap();
                    }
                    if let Some(cause) = cause {
                        instance.mark_deleted(now(), &actor(), cause);
                    }
                    all.push(instance);
                }
            }
        }
    }
    all
}

/// Changes of a server that matter, each for itself.
const CHANGES: [fn(&mut Value); 9] = [
    |_| {},
    |server| server["owner"]["id"] = json!("another"),
    |server| server["region"] = json!("elsewhere"),
    |server| server["project"] = json!("00000000-0000-0000-0000-000000000009"),
    |server| server["intent"]["power"] = json!("deleted"),
    |server| server["spec"]["flavor"] = json!("large"),
    |server| server["intent"]["reboots"] = json!(5),
    |server| server["observed_generation"] = json!(6),
    |server| {
        server["conditions"] = json!([
            { "kind": "refused", "message": "no", "since": now() },
            { "kind": "lost", "message": "gone", "since": now() },
        ]);
    },
];

/// Every instance with every server that it can have.
pub(super) fn every_shape() -> Vec<(Instance, Option<Server>)> {
    let mut shapes = Vec::new();
    for instance in instances() {
        shapes.push((instance.clone(), None));
        for machine in MACHINES {
            for change in CHANGES {
                let mut server = with_machine(server_of(&instance), machine);
                change(&mut server);
                let server = serde_json::from_value(server).unwrap();
                shapes.push((instance.clone(), Some(server)));
            }
        }
    }
    shapes
}
