//! Finds the fault point of a transaction by what it changes: the code under test has no hooks for
//! it.

use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_region::monitor::RegionScan;
use fleetwright_region::schema::{NETWORK_KIND, SECURITY_GROUP_KIND, SERVER_KIND};
use fleetwright_store::Document as _;

use super::Actor;
use crate::{fault::FaultPoint, rules::RecordChange};

/// Returns the fault point of a transaction.
pub(super) fn of_transaction(actor: Actor, changes: &[RecordChange]) -> FaultPoint {
    let find = |kind: &str| changes.iter().find(|change| change.kind() == kind);
    // A new server is written together with the status of its instance.
    if actor == Actor::InstanceController {
        if let Some(server) = find(SERVER_KIND).filter(|server| server.before.is_none()) {
            return of_server(actor, server);
        }
    }
    if let Some(instance) = find(INSTANCE_KIND) {
        return of_instance(actor, instance, find("allocation").is_some());
    }
    if let Some(server) = find(SERVER_KIND) {
        return of_server(actor, server);
    }
    if let Some(network) = find(NETWORK_KIND) {
        return if network.after.is_some() {
            FaultPoint::DeleteNetwork
        } else {
            FaultPoint::RemoveNetwork
        };
    }
    if find(SECURITY_GROUP_KIND).is_some() {
        return FaultPoint::RemoveNetwork;
    }
    if find("flavor").is_some() {
        return FaultPoint::LoadCatalog;
    }
    if let Some(image) = find("image") {
        return match (&image.before, &image.after) {
            (None, _) => FaultPoint::RequestImage,
            (Some(_), Some(_)) => FaultPoint::UpdateImage,
            (Some(_), None) => FaultPoint::RemoveImage,
        };
    }
    if find(RegionScan::KIND).is_some() {
        return FaultPoint::WriteScan;
    }
    // An entry without a change: a key or a console that is shown, or a refused call.
    if find("audit-entry").is_some() {
        return FaultPoint::RecordAccess;
    }
    // A charge without the record that it is for.
    match actor {
        Actor::Service => FaultPoint::Recharge,
        Actor::InstanceController => FaultPoint::RemoveInstance,
        Actor::Operator
        | Actor::Catalog
        | Actor::NetworkController
        | Actor::ServerController
        | Actor::Monitor
        | Actor::SnapshotController => FaultPoint::RecordResult,
    }
}

fn of_instance(actor: Actor, instance: &RecordChange, paid: bool) -> FaultPoint {
    match (&instance.before, &instance.after) {
        (_, None) => FaultPoint::RemoveInstance,
        (None, Some(_)) => FaultPoint::Create,
        (Some(_), Some(_)) if actor == Actor::NetworkController => FaultPoint::MarkByNetwork,
        (Some(_), Some(_)) if actor == Actor::InstanceController => FaultPoint::WriteStatus,
        (Some(_), Some(_)) if paid => FaultPoint::Recharge,
        (Some(_), Some(_)) if instance.differs("/deletion") => FaultPoint::MarkDeleted,
        (Some(_), Some(_)) if instance.differs("/modified") || instance.differs("/intent") => {
            FaultPoint::Update
        }
        (Some(_), Some(_)) => FaultPoint::RecordAccess,
    }
}

fn of_server(actor: Actor, server: &RecordChange) -> FaultPoint {
    if server.after.is_none() {
        return FaultPoint::RemoveServer;
    }
    match actor {
        Actor::Service | Actor::Operator | Actor::Catalog => FaultPoint::OperatorWrite,
        Actor::InstanceController | Actor::NetworkController if server.before.is_none() => {
            FaultPoint::CreateServer
        }
        Actor::InstanceController | Actor::NetworkController
            if server.is("/intent/power", "deleted") =>
        {
            FaultPoint::DeleteServer
        }
        Actor::InstanceController | Actor::NetworkController => FaultPoint::ApplyToServer,
        Actor::Monitor => FaultPoint::WriteObservation,
        Actor::ServerController | Actor::SnapshotController => of_machine(server),
    }
}

fn of_machine(server: &RecordChange) -> FaultPoint {
    if server.differs("/launch/incarnation") {
        FaultPoint::BeginLaunch
    } else if server.differs("/machine/id") {
        FaultPoint::RecordMachine
    } else if server.differs("/launch/sent_at") && server.has("/launch/sent_at") {
        FaultPoint::ResendLaunch
    } else if server.differs("/machine/termination/accepted_at")
        && server.has("/machine/termination/accepted_at")
    {
        FaultPoint::TerminationAccepted
    } else if server.differs("/machine/termination") {
        FaultPoint::BeginTermination
    } else if server.differs("/machine/last_action") {
        FaultPoint::RecordChange
    } else if server.differs("/machine/unconfirmed") && !server.differs("/retry") {
        FaultPoint::BeginChange
    } else {
        FaultPoint::RecordResult
    }
}
