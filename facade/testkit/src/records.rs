//! Records, requests and errors.

use chrono::{DateTime, Utc};
use fleetwright_compute::{
    instance::{Instance, InstanceId, InstanceSpec},
    service::NewInstance,
};
use fleetwright_region::ids::NetworkId;
use fleetwright_store::RecordId;
use serde_json::json;

use crate::{flavor, image, name, north, project_user, tenant};

/// The smallest spec: flavor `small`, image `debian`.
pub fn spec() -> InstanceSpec {
    InstanceSpec::new(flavor("small"), image("debian"))
}

/// The request for an instance of `tenant(1, 1)` with the smallest spec.
pub fn new_instance(network: NetworkId, called: &str) -> NewInstance {
    NewInstance::new(name(called), tenant(1, 1), network, spec())
}

/// The record of such an instance, as it was just requested. It has no event.
pub fn instance_record(network: NetworkId, called: &str, now: DateTime<Utc>) -> Instance {
    let id = InstanceId::derive(network, &name(called));
    let (organization, project) = tenant(1, 1);
    let creator = project_user(tenant(1, 1));
    serde_json::from_value(json!({
        "id": id, "server": id, "name": called, "organization": organization, "project": project,
        "region": north(), "network": network, "created_at": now, "created_by": creator.actor(),
        "spec": spec(), "intent": { "power": "running", "reboot_how": "soft" },
        "consent": "keep-everything", "generation": 1,
    }))
    .unwrap()
}

/// The id of a record.
pub fn record_id(kind: &str, key: &impl ToString) -> RecordId {
    RecordId::new(kind, key.to_string()).unwrap()
}

/// An error with all its causes, as an interface would log it.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let message = error.to_string();
    match error.source() {
        Some(cause) => format!("{message}: {}", error_chain(cause)),
        None => message,
    }
}
