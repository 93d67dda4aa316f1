//! Permissions and results of the service of servers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright::{OptionalVerb, Reboot, UserData};
use fleetwright_facade_testkit::{
    bare_server, memory_store, north, server_admin, server_id, tenant,
};
use fleetwright_identity::{
    Actor, ActorName, Binding, Permission, Principal, Resource, Role, RoleName, Roles, Scope, Verb,
};
use fleetwright_region::{
    ids::{FlavorId, NetworkId, RegionId},
    secret::SshKeys,
    server::{
        Consent, ListServers, MAX_USER_DATA_BYTES, NewServer, NoDependencyCheck, Owner, Phase,
        Power, ServerError, ServerId, Servers,
    },
};
use fleetwright_runtime::clock::SystemClock;
use uuid::Uuid;

fn servers() -> Servers {
    let clock = Arc::new(SystemClock);
    let servers = Servers::new(
        memory_store(),
        clock,
        Arc::new(NoDependencyCheck),
        SshKeys::Disabled,
    );
    let servers = servers.unwrap();
    servers.with_region(north(), OptionalVerb::ALL.into())
}

/// A tenant's principal with these verbs on servers in a project.
fn user(verbs: &[Verb], scope: Scope) -> Principal {
    let permissions = verbs
        .iter()
        .map(|verb| Permission::new(*verb, Resource::Servers).unwrap());
    let name = RoleName::new("some").unwrap();
    let role = Role::new(name.clone(), scope.level(), permissions).unwrap();
    let roles = Roles::built_in().with(role).unwrap();
    let actor = Actor::User(ActorName::new("alice").unwrap());
    roles
        .principal(actor, &[Binding::new(name, scope)])
        .unwrap()
}

fn own_project() -> Scope {
    Scope::Project(tenant(1, 1).0, tenant(1, 1).1)
}

fn other_project() -> Scope {
    Scope::Project(tenant(1, 1).0, Uuid::from_u128(99).into())
}

/// Makes the call that needs the verb.
async fn call(servers: &Servers, principal: &Principal, verb: Verb) -> Result<(), ServerError> {
    let id = server_id(1);
    match verb {
        Verb::Create => servers.ensure(principal, &bare_server(1)).await.map(drop),
        Verb::Read => servers.read(principal, id).await.map(drop),
        Verb::Update => {
            let keep = Consent::KeepEverything;
            servers
                .set_spec(principal, id, &bare_server(1).spec, keep)
                .await
                .map(drop)
        }
        Verb::Delete => servers.delete(principal, id).await.map(drop),
        Verb::Start => servers
            .set_power(principal, id, Power::Running)
            .await
            .map(drop),
        Verb::Stop => servers
            .set_power(principal, id, Power::Stopped)
            .await
            .map(drop),
        Verb::Reboot => servers
            .request_reboot(principal, id, Reboot::Soft)
            .await
            .map(drop),
        Verb::List => servers
            .list(principal, &ListServers::default())
            .await
            .map(drop),
        Verb::ConsoleOutput | Verb::ConsoleSession | Verb::SshKey | Verb::Snapshot => Ok(()),
    }
}

const CALLS: [Verb; 8] = [
    Verb::Create,
    Verb::Read,
    Verb::Update,
    Verb::Start,
    Verb::Reboot,
    Verb::Stop,
    Verb::List,
    Verb::Delete,
];

#[tokio::test]
async fn each_call_needs_exactly_its_own_permission() {
    for needed in CALLS {
        for held in CALLS {
            let servers = servers();
            servers
                .ensure(&server_admin(), &bare_server(1))
                .await
                .unwrap();
            let result = call(&servers, &user(&[held], own_project()), needed).await;
            match result {
                Ok(()) => assert_eq!(held, needed),
                // A reader gets a refusal; other callers get "not found".
                Err(ServerError::Refused(_)) => {
                    let may_know =
                        held == Verb::Read || matches!(needed, Verb::Create | Verb::List);
                    assert!(held != needed && may_know, "{held:?} for {needed:?}");
                }
                Err(ServerError::NotFound(_)) => {
                    assert!(
                        held != needed && held != Verb::Read,
                        "{held:?} for {needed:?}"
                    );
                }
                Err(error) => panic!("{held:?} for {needed:?}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn server_of_another_project_looks_absent() {
    let servers = servers();
    servers
        .ensure(&server_admin(), &bare_server(1))
        .await
        .unwrap();
    let stranger = user(&CALLS, other_project());
    for verb in CALLS {
        match (verb, call(&servers, &stranger, verb).await) {
            (Verb::Create, Err(ServerError::Refused(_))) | (Verb::List, Ok(())) => {}
            (_, Err(ServerError::NotFound(id))) => assert_eq!(id, server_id(1)),
            (verb, result) => panic!("{verb:?}: {result:?}"),
        }
    }
    let page = servers
        .list(&stranger, &ListServers::default())
        .await
        .unwrap();
    assert!(page.servers.is_empty());
    let owner = bare_server(1).owner;
    let hidden = servers.read_by_owner(&stranger, &owner).await.unwrap_err();
    assert_eq!(hidden.to_string(), "there is no server of instance i1");
    assert_eq!(
        servers
            .read_by_owner(&server_admin(), &owner)
            .await
            .unwrap()
            .server
            .id,
        server_id(1)
    );
}

#[tokio::test]
async fn owner_has_one_server_and_repeating_changes_nothing() {
    let (servers, principal) = (servers(), server_admin());
    let first = servers.ensure(&principal, &bare_server(1)).await.unwrap();
    let mut other = bare_server(1);
    other.spec.flavor = FlavorId::new("large").unwrap();
    let again = servers.ensure(&principal, &other).await.unwrap();
    assert_eq!(again.revision, first.revision);
    assert_eq!((again.phase, again.server.generation), (Phase::Pending, 1));
    let twin = NewServer::new(
        server_id(2),
        bare_server(1).owner,
        north(),
        tenant(1, 1),
        bare_server(1).spec,
    );
    let error = servers.ensure(&principal, &twin).await.unwrap_err();
    assert!(
        error.to_string().ends_with("the owner has another server"),
        "{error}"
    );
    let mut other_owner = bare_server(1);
    other_owner.owner = Owner::new("instance", "another");
    let error = servers.ensure(&principal, &other_owner).await.unwrap_err();
    assert!(error.to_string().contains("another owner"), "{error}");
    let mut nowhere = bare_server(3);
    nowhere.region = RegionId::new("nowhere").unwrap();
    let error = servers.ensure(&principal, &nowhere).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "region nowhere is unknown: choose a region that this service serves"
    );
}

#[tokio::test]
async fn concurrent_requests_create_one_server_and_lose_no_request() {
    let (servers, principal) = (servers(), server_admin());
    let new = bare_server(1);
    let created =
        futures_util::future::join_all((0..20).map(|_| servers.ensure(&principal, &new))).await;
    assert!(created.into_iter().all(|result| result.is_ok()));
    let reboots = (0..10).map(|_| servers.request_reboot(&principal, new.id, Reboot::Soft));
    for result in futures_util::future::join_all(reboots).await {
        result.unwrap();
    }
    let view = servers.read(&principal, new.id).await.unwrap();
    assert_eq!(
        (view.server.intent.reboots, view.server.generation),
        (10, 11)
    );
}

#[tokio::test]
async fn server_being_deleted_accepts_no_other_change() {
    let (servers, principal, id) = (servers(), server_admin(), server_id(1));
    servers.ensure(&principal, &bare_server(1)).await.unwrap();
    servers
        .set_power(&principal, id, Power::Stopped)
        .await
        .unwrap();
    let error = servers
        .request_reboot(&principal, id, Reboot::Hard)
        .await
        .unwrap_err();
    assert!(matches!(error, ServerError::NotReady { .. }), "{error}");
    let deleted = servers.delete(&principal, id).await.unwrap();
    let again = servers.delete(&principal, id).await.unwrap();
    assert_eq!(again.revision, deleted.revision);
    assert_eq!(again.phase, Phase::Deleting);
    for result in [
        servers
            .set_power(&principal, id, Power::Running)
            .await
            .map(drop),
        servers.request_replace(&principal, id).await.map(drop),
        servers.ensure(&principal, &bare_server(1)).await.map(drop),
    ] {
        assert!(
            matches!(result, Err(ServerError::Deleting(_))),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn list_contains_selected_visible_servers() {
    let (servers, principal) = (servers(), server_admin());
    let servers = servers.with_region(RegionId::new("there").unwrap(), OptionalVerb::ALL.into());
    for number in 1..=4 {
        let mut new = bare_server(number);
        if number % 2 == 0 {
            new.spec.network = NetworkId::from_uuid(Uuid::from_u128(50));
        }
        if number == 3 {
            new.region = RegionId::new("there").unwrap();
        }
        if number == 4 {
            new.project = Uuid::from_u128(99).into();
        }
        servers.ensure(&principal, &new).await.unwrap();
    }
    let listed = |principal: Principal, wanted: ListServers| {
        let servers = servers.clone();
        async move {
            let page = servers.list(&principal, &wanted).await.unwrap();
            assert!(page.next.is_none());
            let ids = page.servers.into_iter().map(|view| view.server.id);
            ids.collect::<Vec<ServerId>>()
        }
    };
    let ids = |numbers: &[u128]| numbers.iter().map(|n| server_id(*n)).collect::<Vec<_>>();
    let (mut by_network, mut by_region) = (ListServers::default(), ListServers::default());
    by_network.network = Some(NetworkId::from_uuid(Uuid::from_u128(50)));
    by_region.region = Some(RegionId::new("there").unwrap());
    let member = || user(&[Verb::List], own_project());
    let all = ListServers::default();
    assert_eq!(
        listed(server_admin(), all.clone()).await,
        ids(&[1, 2, 3, 4])
    );
    assert_eq!(listed(member(), all.clone()).await, ids(&[1, 2, 3]));
    assert_eq!(
        listed(server_admin(), by_network.clone()).await,
        ids(&[2, 4])
    );
    assert_eq!(listed(member(), by_network).await, ids(&[2]));
    assert_eq!(listed(server_admin(), by_region.clone()).await, ids(&[3]));
    assert_eq!(listed(member(), by_region).await, ids(&[3]));
    let organization = user(&[Verb::List], Scope::Organization(tenant(1, 1).0));
    assert_eq!(listed(organization, all).await, ids(&[1, 2, 3, 4]));
}

#[tokio::test]
async fn user_data_fits_into_a_record_or_is_refused() {
    let (servers, principal) = (servers(), server_admin());
    let mut new = bare_server(1);
    let script = |bytes: usize| UserData::new(format!("{:x<bytes$}", "#!/bin/sh\n")).ok();
    new.spec.user_data = script(MAX_USER_DATA_BYTES + 1);
    let error = servers.ensure(&principal, &new).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("user data of 32769 bytes is too large"),
        "{error}"
    );
    new.spec.user_data = script(MAX_USER_DATA_BYTES);
    servers.ensure(&principal, &new).await.unwrap();
}
