//! Requests for servers, without an instance.

use fleetwright::InstanceId;
use fleetwright_identity::{
    Actor, ActorName, Binding, Permission, Principal, Resource, Role, RoleName, Roles, Verb,
};
use fleetwright_region::{
    ids::NetworkId,
    server::{NewServer, Owner, Phase, ServerId, ServerSpec, ServerView},
};
use uuid::Uuid;

use crate::{
    flavor, image, north,
    principals::{Tenant, scope},
    tenant,
};

/// The id of a server by a number.
pub fn server_id(number: u128) -> ServerId {
    ServerId::from_uuid(Uuid::from_u128(0x1000 + number))
}

/// The smallest spec of a server: flavor `small`, image `debian`.
pub fn server_spec(network: NetworkId) -> ServerSpec {
    ServerSpec::new(flavor("small"), image("debian"), network)
}

/// The request for a server of `tenant(1, 1)` in region `north`.
pub fn new_server(number: u128, spec: ServerSpec) -> NewServer {
    let owner = Owner::new("instance", format!("i{number}"));
    NewServer::new(server_id(number), owner, north(), tenant(1, 1), spec)
}

/// A service with every permission on servers, and no other.
pub fn server_admin() -> Principal {
    let all = Verb::ALL.map(|verb| Permission::new(verb, Resource::Servers).unwrap());
    Principal::service(ActorName::new("tests").unwrap(), all)
}

/// The user `alice`, who works in a project and has every permission on its servers.
pub fn server_user(tenant: Tenant) -> Principal {
    let admin = RoleName::new("server-admin").unwrap();
    let servers = Verb::ALL.map(|verb| Permission::new(verb, Resource::Servers).unwrap());
    let scope = scope(tenant);
    let role = Role::new(admin.clone(), scope.level(), servers).unwrap();
    let bindings = [RoleName::new("project-user").unwrap(), admin];
    let bindings = bindings.map(|role| Binding::new(role, scope));
    let actor = Actor::User(ActorName::new("alice").unwrap());
    let roles = Roles::built_in().with(role).unwrap();
    roles.principal(actor, &bindings).unwrap()
}

/// Whether a server runs, with all that was requested.
pub fn is_server_running(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.server.observed_generation == view.server.generation
}

/// Returns the id of the machine that a server has.
pub fn machine_of(view: &ServerView) -> InstanceId {
    view.server.machine.as_ref().unwrap().id.clone()
}
