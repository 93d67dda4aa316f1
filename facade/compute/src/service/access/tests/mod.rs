//! No error of a call mentions the server behind an instance, or an id of the cloud.

use std::{error::Error, time::Duration};

use fleetwright::{Call, InvalidValue, Operation, Problem, ProvisionError};
use fleetwright_identity::{ActorName, Refused, Resource, Scope};
use fleetwright_region::{
    catalog::ImageError,
    ids::ImageId,
    name::Name,
    secret::KeyError,
    server::{Owner, ServerId},
};
use fleetwright_store::StoreError;
use uuid::Uuid;

use super::*;

const MACHINE: &str = "i-0abc";

fn instance_id() -> InstanceId {
    InstanceId::from_uuid(Uuid::from_u128(0xa))
}

/// The id of the server, which differs from that of the instance here.
fn server_id() -> ServerId {
    ServerId::from_uuid(Uuid::from_u128(0x5e))
}

fn refused() -> Refused {
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    let refused = nobody.authorize(Verb::Read, Resource::Servers, &Scope::Global);
    refused.unwrap_err()
}

fn key_error() -> KeyError {
    KeyError::NotFound(server_id().as_uuid())
}

fn image() -> ImageId {
    ImageId::new("debian").unwrap()
}

fn name() -> Name {
    Name::new("copy").unwrap()
}

fn cloud_error() -> ProvisionError {
    let machine = fleetwright::InstanceId::new(MACHINE).unwrap();
    Call::new("test", Operation::ConsoleOutput).not_found(&machine)
}

fn machine_errors() -> Vec<MachineError> {
    let (id, verb, source) = (server_id(), Verb::ConsoleOutput, cloud_error());
    let (region, retry_after) = (RegionId::new("north").unwrap(), Duration::from_secs(5));
    vec![
        MachineError::NotFound(id),
        MachineError::Refused(refused()),
        MachineError::NotReady {
            id,
            found: "booting",
            wanted: "running",
            retry_after,
        },
        MachineError::NoMachine {
            id,
            found: "has lost its machine",
        },
        MachineError::Deleting(id),
        MachineError::Unsupported {
            region: region.clone(),
            verb,
        },
        MachineError::Unavailable {
            id,
            verb,
            retry_after,
            source: source.clone(),
        },
        MachineError::Declined { id, verb, source },
        MachineError::NoRegion(region),
        MachineError::NoKey(id),
        MachineError::NoKeyring(id),
        MachineError::Key {
            id,
            source: key_error(),
        },
        MachineError::Tags(InvalidValue::new("tag", Problem::Empty)),
        MachineError::DescriptionTooLong { actual: 9999 },
        MachineError::ImageNameTaken(name()),
        MachineError::NoSource { id, image: image() },
        MachineError::Image {
            name: name(),
            source: ImageError::NotFound(image()),
        },
    ]
}

fn server_errors() -> Vec<ServerError> {
    let id = server_id();
    let owner = Owner::new("instance", "web");
    vec![
        ServerError::NotFound(id),
        ServerError::NoServerOwnedBy(owner.clone()),
        ServerError::Refused(refused()),
        ServerError::NoRegion(RegionId::new("north").unwrap()),
        ServerError::UserDataTooLarge { id, actual: 1 },
        ServerError::TooManySecurityGroups { id, actual: 99 },
        ServerError::Key {
            id,
            source: key_error(),
        },
        ServerError::Taken {
            id,
            owner,
            reason: "the owner has another server",
        },
        ServerError::Deleting(id),
        ServerError::NotReady {
            id,
            found: "stopped",
            wanted: "running",
        },
        ServerError::Busy(id),
    ]
}

/// An error with its sources, and what `Debug` shows of it.
fn whole_text(error: &dyn Error) -> String {
    let own = format!("{error} {error:?}");
    let rest = error.source().map(whole_text);
    rest.map_or(own.clone(), |rest| format!("{own} {rest}"))
}

#[test]
fn errors_of_calls_mention_neither_servers_nor_ids_of_the_cloud() {
    let id = instance_id();
    let of_machines = machine_errors()
        .into_iter()
        .map(|error| machine_error(id, error));
    let of_servers = server_errors()
        .into_iter()
        .map(|error| server_error(id, error));
    for error in of_machines.chain(of_servers) {
        let text = whole_text(&error);
        for hidden in ["server", &server_id().to_string(), MACHINE] {
            assert!(!text.contains(hidden), "{text:?} contains {hidden:?}");
        }
    }
}

#[test]
fn message_for_the_tenant_leaves_out_sources_about_records() {
    let key = format!("server/{}", server_id());
    let source = StoreError::Corrupt {
        what: format!("{key} cannot be read"),
        source: None,
    };
    let store = ComputeError::Store(source);
    assert_eq!(store.tenant_message(), "the store failed");
    let not_permitted = ComputeError::Refused(refused());
    assert!(
        not_permitted
            .tenant_message()
            .starts_with("not permitted: ")
    );
    let unconverted = ComputeError::Server(ServerError::Busy(server_id()));
    assert!(!unconverted.tenant_message().contains("server"));
}

#[test]
fn refused_call_names_the_instance_and_what_to_do() {
    let (id, verb, source) = (server_id(), Verb::ConsoleOutput, cloud_error());
    let error = machine_error(instance_id(), MachineError::Declined { id, verb, source });
    assert_eq!(
        error.to_string(),
        format!(
            "console-output: the cloud refuses this for instance {}, and refuses it again if it is repeated: replace the instance, or ask an operator",
            instance_id()
        )
    );
}

#[test]
fn lost_machine_is_no_reason_to_retry() {
    let found = "has lost its machine";
    let lost = MachineError::NoMachine {
        id: server_id(),
        found,
    };
    assert_eq!(machine_error(instance_id(), lost).retry_after(), None);
}
