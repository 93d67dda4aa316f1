//! No condition and no event mentions the server behind an instance, or an id of the cloud.

use fleetwright_identity::{ActorName, Principal, Resource, Scope, Verb};
use fleetwright_region::{
    ids::RegionId,
    secret::KeyError,
    server::{Owner, ServerError, ServerId},
};
use serde_json::json;
use uuid::Uuid;

use super::{
    super::{
        messages::for_tenant,
        obstacles::{Failure, classify, obstacle},
    },
    *,
};

/// The id of the server, which differs from that of its instance here.
const SERVER: u128 = 0x5e;
const MACHINE: &str = "i-0abc";

const CONDITIONS: [ConditionKind; 13] = [
    ConditionKind::NoCapacity,
    ConditionKind::AccountLimit,
    ConditionKind::Refused,
    ConditionKind::CloudError,
    ConditionKind::AttemptsExhausted,
    ConditionKind::Lost,
    ConditionKind::NextLaunch,
    ConditionKind::Unsupported,
    ConditionKind::ConsentNeeded,
    ConditionKind::MachineRemoved,
    ConditionKind::IdConflict,
    ConditionKind::MachineDeleting,
    ConditionKind::NetworkDeleting,
];

const EVENTS: [EventKind; 11] = [
    EventKind::Created,
    EventKind::Updated,
    EventKind::Requested,
    EventKind::LossAccepted,
    EventKind::DeletionRequested,
    EventKind::Accessed,
    EventKind::Accepted,
    EventKind::Applied,
    EventKind::Phase,
    EventKind::Problem,
    EventKind::Completed,
];

fn assert_for_tenants(text: &str) {
    let server = Uuid::from_u128(SERVER).to_string();
    for hidden in ["server", server.as_str(), MACHINE] {
        assert!(!text.contains(hidden), "{text:?} contains {hidden:?}");
    }
}

#[test]
fn kinds_of_conditions_and_events_do_not_mention_servers() {
    for kind in CONDITIONS {
        assert_for_tenants(&serde_json::to_string(&kind).unwrap());
    }
    for kind in EVENTS {
        assert_for_tenants(&serde_json::to_string(&kind).unwrap());
    }
    let old = serde_json::from_str::<ConditionKind>("\"server-missing\"").unwrap();
    assert_eq!(old, ConditionKind::MachineRemoved);
}

/// An error of each kind that the region returns to the controller.
fn region_errors() -> Vec<ServerError> {
    let id = ServerId::from_uuid(Uuid::from_u128(SERVER));
    let owner = Owner::new("instance", "web");
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    let refused = nobody.authorize(Verb::Create, Resource::Servers, &Scope::Global);
    let plan: Plan = serde_json::from_value(json!({ "image": "replace" })).unwrap();
    let key = KeyError::NotFound(id.as_uuid());
    vec![
        ServerError::NotFound(id),
        ServerError::NoServerOwnedBy(owner.clone()),
        ServerError::Refused(refused.unwrap_err()),
        ServerError::NoRegion(RegionId::new("north").unwrap()),
        ServerError::UserDataTooLarge { id, actual: 99_999 },
        ServerError::TooManySecurityGroups { id, actual: 99 },
        ServerError::Key { id, source: key },
        ServerError::Taken {
            id,
            owner,
            reason: "the owner has another server",
        },
        ServerError::Deleting(id),
        ServerError::NeedsConsent { id, plan },
        ServerError::NotReady {
            id,
            found: "stopped",
            wanted: "running",
        },
        ServerError::Busy(id),
    ]
}

#[test]
fn obstacles_do_not_mention_servers_and_state_limits() {
    let waits = [
        Wait::Server,
        Wait::ServerDeletion,
        Wait::OperatorDeletion,
        Wait::ServerMissing,
        Wait::ServerConflict,
    ];
    for obstacle in waits.into_iter().filter_map(obstacle) {
        assert_for_tenants(&obstacle.message);
    }
    let mut messages = Vec::new();
    for error in region_errors() {
        if let Failure::Reported(obstacle) = classify(error) {
            assert_for_tenants(&obstacle.message);
            messages.push(obstacle.message);
        }
    }
    assert!(
        messages
            .iter()
            .any(|text| text.contains("at most 32 are allowed")),
        "{messages:?}"
    );
    assert!(
        messages
            .iter()
            .any(|text| text.contains("99999 bytes is too large: at most ")),
        "{messages:?}"
    );
}

#[test]
fn conditions_and_events_of_every_server_are_in_the_words_of_tenants() {
    let kinds = [
        "no-capacity",
        "quota-reached",
        "refused",
        "cloud-error",
        "attempts-exhausted",
        "lost",
        "next-launch",
        "unsupported",
    ];
    let server_id = Uuid::from_u128(SERVER);
    for kind in kinds {
        for text in [
            format!("server {server_id} has a problem"),
            format!("launch failed: {server_id}"),
            format!("start failed: instance {MACHINE} is busy"),
            format!("console-output failed: {MACHINE}: busy"),
        ] {
            let mut instance = instance();
            instance.server = ServerId::from_uuid(server_id);
            let mut value = server_of(&instance);
            value["machine"] = json!({
                "id": MACHINE, "incarnation": 1, "recorded_at": now(), "applied": value["spec"],
            });
            value["conditions"] = json!([{ "kind": kind, "message": text, "since": now() }]);
            let server: Server = serde_json::from_value(value).unwrap();
            let inputs = Inputs {
                server: Some(&server),
                plan: &Plan::default(),
                obstacle: None,
            };
            let status = project(&instance, &inputs, now());
            assert_eq!(status.conditions.len(), 1, "{kind}");
            assert_for_tenants(&status.conditions[0].message);
            for (_, message) in events_between(&instance.status, &status) {
                assert_for_tenants(&message);
            }
        }
    }
}

#[test]
fn only_whole_ids_are_replaced() {
    let instance = instance();
    let mut value = server_of(&instance);
    value["machine"] =
        json!({ "id": "m", "incarnation": 1, "recorded_at": now(), "applied": value["spec"] });
    let server: Server = serde_json::from_value(value).unwrap();
    let message = for_tenant(
        "machine m: some message about m-1 and m",
        &instance,
        Some(&server),
    );
    assert_eq!(
        message,
        "the machine: some message about m-1 and the machine"
    );
}
