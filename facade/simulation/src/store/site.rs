//! What a transaction is for, by what it changes: the code under test has no hooks for it.

use fleetwright_region::{monitor::Pulse, uses};
use fleetwright_store::Document as _;

use super::Actor;
use crate::{fault::Site, rules::Written};

/// What a transaction is for.
pub(super) fn of(actor: Actor, written: &[Written]) -> Site {
    let find = |kind: &str| written.iter().find(|write| write.kind() == kind);
    if let Some(instance) = find(uses::INSTANCE) {
        return of_instance(actor, instance, find("allocation").is_some());
    }
    if let Some(server) = find(uses::SERVER) {
        return of_server(actor, server);
    }
    if let Some(network) = find(uses::NETWORK) {
        return if network.after.is_some() {
            Site::Condemn
        } else {
            Site::NetworkGone
        };
    }
    if find(uses::SECURITY_GROUP).is_some() {
        return Site::NetworkGone;
    }
    if find("flavor").is_some() {
        return Site::Reload;
    }
    if let Some(image) = find("image") {
        return if image.before.is_none() {
            Site::ImageAsk
        } else {
            Site::ImageNote
        };
    }
    if find(Pulse::KIND).is_some() {
        return Site::Beat;
    }
    // A payment without what is paid for.
    match actor {
        Actor::Service => Site::Recharge,
        Actor::Instances => Site::ForgetInstance,
        Actor::Operator
        | Actor::Catalog
        | Actor::Networks
        | Actor::Region
        | Actor::Monitor
        | Actor::Images => Site::Note,
    }
}

fn of_instance(actor: Actor, instance: &Written, paid: bool) -> Site {
    match (&instance.before, &instance.after) {
        (_, None) => Site::ForgetInstance,
        (None, Some(_)) => Site::Create,
        (Some(_), Some(_)) if actor == Actor::Networks => Site::MarkByNetwork,
        (Some(_), Some(_)) if actor == Actor::Instances => Site::Status,
        (Some(_), Some(_)) if paid => Site::Recharge,
        (Some(_), Some(_)) if instance.differs("/deletion") => Site::Mark,
        (Some(_), Some(_)) if instance.differs("/modified") || instance.differs("/intent") => {
            Site::Update
        }
        (Some(_), Some(_)) => Site::Access,
    }
}

fn of_server(actor: Actor, server: &Written) -> Site {
    if server.after.is_none() {
        return Site::Forget;
    }
    match actor {
        Actor::Service | Actor::Operator | Actor::Catalog => Site::Order,
        Actor::Instances | Actor::Networks if server.before.is_none() => Site::MakeServer,
        Actor::Instances | Actor::Networks if server.is("/intent/power", "deleted") => {
            Site::EndServer
        }
        Actor::Instances | Actor::Networks => Site::PassOn,
        Actor::Monitor => Site::Observe,
        Actor::Region | Actor::Images => of_machine(server),
    }
}

fn of_machine(server: &Written) -> Site {
    if server.differs("/launch/incarnation") {
        Site::Begin
    } else if server.differs("/instance/id") {
        Site::Record
    } else if server.differs("/launch/sent_at") && server.has("/launch/sent_at") {
        Site::Resend
    } else if server.differs("/instance/ending/accepted_at")
        && server.has("/instance/ending/accepted_at")
    {
        Site::Ended
    } else if server.differs("/instance/ending") {
        Site::Ending
    } else if server.differs("/instance/acted") {
        Site::Change
    } else if server.differs("/instance/doubt") && !server.differs("/retry") {
        Site::Attempt
    } else {
        Site::Note
    }
}
