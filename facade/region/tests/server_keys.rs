//! One SSH key pair per server: created and deleted with it, installed on its machines, and readable with one permission only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{error::Error, sync::Arc};

use fleetwright::UserData;
use fleetwright_cloud_init::{MAX_ASSEMBLED_BYTES, ManagedConfig, assemble};
use fleetwright_facade_testkit::{
    TestFacade, advance_until, new_server, north, operator, server_id, server_spec, server_user,
    tenant,
};
use fleetwright_identity::{Actor, ActorName, Binding, Principal, RoleName, Roles, Scope};
use fleetwright_region::{
    secret::{KeyError, SshKeys},
    server::{MAX_USER_DATA_BYTES, NoDependencyCheck, Phase, ServerError, Servers},
};
use fleetwright_runtime::entropy::{Entropy, EntropyError};
use fleetwright_store::{Interest, Revision};

async fn delete_server(facade: &TestFacade) {
    let (principal, id) = (operator(), server_id(1));
    facade.servers.delete(&principal, id).await.unwrap();
    advance_until("the deletion", async || {
        (facade.servers.read(&principal, id).await.is_err()).then_some(())
    })
    .await;
}

fn reader() -> Principal {
    let (organization, project) = tenant(1, 1);
    let role = RoleName::new("project-reader").unwrap();
    let binding = Binding::new(role, Scope::Project(organization, project));
    let actor = Actor::User(ActorName::new("bob").unwrap());
    Roles::built_in().principal(actor, &[binding]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn key_is_created_and_deleted_with_its_server_and_public_on_the_machine() {
    let facade = TestFacade::new().await;
    let cloud = facade.cloud.clone();
    let (alice, id) = (server_user(tenant(1, 1)), server_id(1).as_uuid());
    let mut wanted = server_spec(facade.network("blue").await);
    wanted.user_data = Some(UserData::new("#!/bin/sh\necho hello\n").unwrap());
    let created = facade.ensure(&alice, 1, &wanted).await.unwrap().server;
    let public = created.public_key.unwrap();
    assert_eq!(facade.keys.public_key(&alice, id).await.unwrap(), public);
    // A repeated request returns the same server with the same key.
    let again = facade.ensure(&alice, 1, &wanted).await.unwrap().server;
    assert_eq!(again.public_key.as_ref(), Some(&public));
    let other = facade.ensure(&alice, 2, &wanted).await.unwrap().server;
    assert_ne!(other.public_key.unwrap(), public);
    facade.servers.delete(&alice, server_id(2)).await.unwrap();

    let revealed = facade.keys.private_key(&alice, id).await.unwrap();
    assert!(revealed.expose().starts_with(b"-----BEGIN OPENSSH"));
    let refused = facade.keys.private_key(&reader(), id).await.unwrap_err();
    assert!(matches!(refused, KeyError::Refused(_)), "{refused:?}");

    let work = async {
        facade.until_server(Phase::Running).await;
        let first = facade.user_data();
        assert!(first.contains(&public), "{first}");
        assert!(first.contains("\n\n#!/bin/sh\necho hello\n"), "{first}");
        // The next machine of the server accepts the same key.
        facade.replace_server().await;
        assert!(cloud.oracle().instances().len() > 1);
        assert_eq!(facade.user_data(), first);
        delete_server(&facade).await;
    };
    facade.during_region(work).await;
    let error = facade.keys.private_key(&alice, id).await.unwrap_err();
    assert!(matches!(error, KeyError::NotFound(_)), "{error:?}");
    assert_eq!(facade.count("server-key").await, 0);
    // A server created again with the same id has another key.
    let recreated = facade.ensure(&alice, 1, &wanted).await.unwrap().server;
    assert_ne!(recreated.public_key.unwrap(), public);
}

#[tokio::test(start_paused = true)]
async fn private_key_appears_nowhere() {
    let facade = TestFacade::new().await;
    let cloud = facade.cloud.clone();
    let (alice, id) = (server_user(tenant(1, 1)), server_id(1));
    let wanted = server_spec(facade.network("blue").await);
    facade.ensure(&alice, 1, &wanted).await.unwrap();
    let secret = facade.keys.private_key(&alice, id.as_uuid()).await.unwrap();
    // The first line is the header, and the second is the same in every key of this type.
    let lines: Vec<_> = secret.expose_text().unwrap().lines().skip(2).collect();
    let private: Vec<_> = lines.into_iter().filter(|line| line.len() > 60).collect();
    assert!(private.len() >= 2);

    let mut outputs = vec![format!("{:?} {:?}", facade.servers, secret)];
    facade
        .during_region(facade.until_server(Phase::Running))
        .await;
    let view = facade.servers.read(&alice, id).await.unwrap();
    outputs.push(format!("{view:?} {:?}", view.server.events));
    outputs.push(serde_json::to_string(&view.server).unwrap());
    outputs.push(facade.user_data());
    outputs.push(format!("{:?}", cloud.oracle().instances()));
    let refused = facade
        .keys
        .private_key(&reader(), id.as_uuid())
        .await
        .unwrap_err();
    outputs.push(format!("{refused} {refused:?}"));
    // Every value that was ever written to any record.
    let everything = Interest::all();
    let mut watch = facade
        .store
        .watch(Revision::default(), everything)
        .await
        .unwrap();
    let head = facade.store.head().await.unwrap();
    loop {
        let commit = watch.next().await.unwrap();
        outputs.push(format!("{commit:?}"));
        if commit.revision >= head {
            break;
        }
    }
    assert!(outputs.iter().any(|text| text.contains("private_key")));
    for line in private {
        assert!(outputs.iter().all(|text| !text.contains(line)));
    }
}

#[tokio::test(start_paused = true)]
async fn servers_without_a_keyring_have_no_keys_and_unchanged_user_data() {
    let facade = TestFacade::new().await;
    let clock = facade.clock.clone();
    let servers = Servers::new(
        facade.store.clone(),
        clock,
        Arc::new(NoDependencyCheck),
        SshKeys::Disabled,
    );
    let servers = servers.unwrap().with_region(north(), [].into());
    let mut wanted = server_spec(facade.network("blue").await);
    wanted.user_data = Some(UserData::new("#!/bin/sh\n").unwrap());
    let new = new_server(1, wanted);
    let created = servers.ensure(&operator(), &new).await.unwrap().server;
    assert_eq!(created.public_key, None);
    let json = serde_json::to_value(&created).unwrap();
    assert!(json.get("public_key").is_none(), "{json}");
    assert_eq!(facade.count("server-key").await, 0);
    let work = async {
        facade.until_server(Phase::Running).await;
        assert_eq!(facade.user_data(), "#!/bin/sh\n");
        delete_server(&facade).await;
    };
    facade.during_region(work).await;
}

#[tokio::test(start_paused = true)]
async fn largest_user_data_and_a_key_fit_into_a_record() {
    let facade = TestFacade::new().await;
    let mut wanted = server_spec(facade.network("blue").await);
    wanted.user_data = Some(UserData::new("#!/bin/sh\n").unwrap());
    facade.ensure(&operator(), 1, &wanted).await.unwrap();
    facade
        .during_region(facade.until_server(Phase::Running))
        .await;
    let read = facade.servers.read(&operator(), server_id(1)).await;
    let mut server = read.unwrap().server;
    // A record at the limit, with binary data, whatever its cloud accepts.
    let own = format!("{:\u{e9}<1$}", "#!/bin/sh\n", MAX_USER_DATA_BYTES / 2 + 5);
    let own = UserData::new(own).unwrap();
    assert_eq!(own.as_bytes().len(), MAX_USER_DATA_BYTES);
    let key = server.public_key.as_ref().unwrap();
    let managed = ManagedConfig::new(server.id.as_uuid()).with_public_key(key);
    let composed = assemble(own.as_bytes(), &managed).unwrap();
    assert!(composed.len() < MAX_ASSEMBLED_BYTES);
    let composed = UserData::new(vec![0xff; MAX_ASSEMBLED_BYTES]).unwrap();
    server.spec.user_data = Some(own.clone());
    let launch = server.launch.as_mut().unwrap();
    launch.spec.user_data = Some(own.clone());
    launch.config.user_data = Some(composed);
    server.machine.as_mut().unwrap().applied.user_data = Some(own);
    let json = serde_json::to_string(&server).unwrap();
    let limit = fleetwright_store::limits::MAX_VALUE_BYTES;
    assert!(json.len() < limit * 9 / 10, "{} bytes", json.len());
}

/// A system without entropy.
#[derive(Debug)]
struct EmptyEntropy;

impl Entropy for EmptyEntropy {
    fn fill(&self, _: &mut [u8]) -> Result<(), EntropyError> {
        Err(EntropyError::new("the source is empty"))
    }
}

#[tokio::test]
async fn server_is_not_created_without_its_key() {
    let facade = TestFacade::new().await;
    let wanted = server_spec(facade.network("blue").await);
    let servers = facade.servers_with_key_entropy(Arc::new(EmptyEntropy));
    let requested = servers.ensure(&operator(), &new_server(1, wanted)).await;
    let error = requested.unwrap_err();
    assert!(matches!(error, ServerError::Key { .. }), "{error:?}");
    let id = server_id(1);
    assert_eq!(
        error.to_string(),
        format!("the key pair of server {id} could not be created; nothing was written: retry")
    );
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("the source is empty")
    );
    assert_eq!(
        facade.count("server").await + facade.count("server-key").await,
        0
    );
}
