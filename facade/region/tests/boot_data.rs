//! User data of machines: checked at the request, and never launched without the trusted authority.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{error::Error as _, sync::Arc};

use fleetwright::UserData;
use fleetwright_cloud_init::UserDataError;
use fleetwright_facade_testkit::{
    TestFacade, advance_until, new_server, north, operator, server_id, server_spec, tenant,
};
use fleetwright_region::{
    ids::SshAuthorityId,
    schema::SSH_AUTHORITY_KIND,
    secret::SshKeys,
    server::{NoDependencyCheck, Phase, ServerError, ServerView, Servers},
};
use fleetwright_store::{RecordId, Transaction};
use serde_json::json;

const TRUST: &str = "TrustedUserCAKeys /etc/ssh/fleetwright_user_ca.pub";

fn data(text: &str) -> Option<UserData> {
    Some(UserData::new(text).unwrap())
}

/// Servers without keys, with the given dependency checker.
fn plain(facade: &TestFacade) -> Servers {
    let (store, clock) = (facade.store.clone(), facade.clock.clone());
    let servers = Servers::new(store, clock, Arc::new(NoDependencyCheck), SshKeys::Disabled);
    servers.unwrap().with_region(north(), [].into())
}

fn record(id: SshAuthorityId) -> RecordId {
    RecordId::new(SSH_AUTHORITY_KIND, id.to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn trusted_authority_is_configured_on_each_machine() {
    let (facade, principal) = (TestFacade::new().await, operator());
    let mut wanted = server_spec(facade.network("blue").await);
    let id = facade.authority(tenant(1, 1)).await;
    wanted.ssh_authority = Some(id);
    wanted.user_data = data("#cloud-config\nruncmd:\n  - echo hello\n");
    let created = facade.ensure(&principal, 1, &wanted).await.unwrap().server;
    let work = async {
        facade.until_server(Phase::Running).await;
        let first = facade.user_data();
        let theirs = first
            .find("\n\n#cloud-config\nruncmd:\n  - echo hello\n")
            .unwrap();
        let ours = first.find("\nmerge_how:").unwrap();
        assert!(theirs < ours, "{first}");
        for part in [
            &created.public_key.unwrap(),
            TRUST,
            &format!("NCtjX {id}\n"),
        ] {
            assert!(first.get(ours..).unwrap().contains(part), "{first}");
        }
        assert!(!first.contains("comment of the tenant"), "{first}");
        facade.replace_server().await;
        assert_eq!(facade.user_data(), first);
    };
    facade.during_region(work).await;
}

#[tokio::test(start_paused = true)]
async fn authority_is_trusted_without_keys_and_user_data() {
    let facade = TestFacade::new().await;
    let servers = plain(&facade);
    let mut wanted = server_spec(facade.network("blue").await);
    wanted.ssh_authority = Some(facade.authority(tenant(1, 1)).await);
    let new = new_server(1, wanted);
    servers.ensure(&operator(), &new).await.unwrap();
    facade
        .during_region(facade.until_server(Phase::Running))
        .await;
    let booted = facade.user_data();
    assert!(
        booted.starts_with("#cloud-config\n") && booted.contains(TRUST),
        "{booted}"
    );
}

/// Waits until a condition of server 1 contains a text, and returns the server.
async fn until_condition(servers: &Servers, text: &str) -> ServerView {
    let read = async || servers.read(&operator(), server_id(1)).await.unwrap();
    let conditions = |view: &ServerView| format!("{:?}", view.server.conditions);
    advance_until("a condition", async || {
        (conditions(&read().await).contains(text)).then_some(())
    })
    .await;
    read().await
}

#[tokio::test(start_paused = true)]
async fn missing_authority_refuses_the_launch_with_a_message() {
    let facade = TestFacade::new().await;
    let cloud = facade.cloud.clone();
    let (servers, network) = (plain(&facade), facade.network("blue").await);
    let mine = facade.authority(tenant(1, 1)).await;
    let others = facade.authority(tenant(1, 2)).await;
    let kept = facade.store.get(&record(mine)).await.unwrap().unwrap();
    let lost = Transaction::new().delete(record(mine));
    let damaged = Transaction::new().put(record(mine), json!({ "organization": 7 }));
    let absent = |id| {
        format!(
            "the machine cannot be launched: there is no SSH certificate authority {id} in its project: choose an existing authority, or none"
        )
    };
    let unread = format!(
        "the machine cannot be launched: SSH certificate authority {mine} cannot be read: ask an operator to repair its record, or choose another authority"
    );
    let work = async {
        for (authority, damage, expected) in [
            (mine, lost, absent(mine)),
            (mine, damaged, unread),
            (others, Transaction::new(), absent(others)),
        ] {
            if !damage.writes.is_empty() {
                facade.store.commit(&damage).await.unwrap();
            }
            let mut wanted = server_spec(network);
            wanted.ssh_authority = Some(authority);
            servers
                .ensure(&operator(), &new_server(1, wanted))
                .await
                .unwrap();
            let view = until_condition(&servers, &expected).await;
            assert_ne!(view.phase, Phase::Running);
            assert_eq!(cloud.oracle().instances().len(), 0);
            servers.delete(&operator(), server_id(1)).await.unwrap();
            advance_until("the deletion", async || {
                (servers.read(&operator(), server_id(1)).await.is_err()).then_some(())
            })
            .await;
        }
        // Once fixed, it is launched without another request.
        let mut wanted = server_spec(network);
        wanted.ssh_authority = Some(mine);
        servers
            .ensure(&operator(), &new_server(1, wanted))
            .await
            .unwrap();
        until_condition(&servers, "cannot be read").await;
        let restore = Transaction::new().put(record(mine), kept.value.clone());
        facade.store.commit(&restore).await.unwrap();
        facade.until_server(Phase::Running).await;
        assert!(facade.user_data().contains(TRUST));
    };
    facade.during_region(work).await;
}

fn reason(error: &ServerError) -> UserDataError {
    let ServerError::UserData { id, source } = error else {
        panic!("{error:?}");
    };
    let expected = format!("the user data of server {id} is refused");
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.source().unwrap().to_string(), source.to_string());
    *source
}

#[tokio::test]
async fn user_data_is_checked_at_the_request_and_only_if_it_changes() {
    let facade = TestFacade::new().await;
    let (principal, network) = (operator(), facade.network("blue").await);
    let with = |text: &str| {
        let mut wanted = server_spec(network);
        wanted.user_data = data(text);
        wanted
    };
    let error = facade
        .ensure(&principal, 1, &with("hunter2"))
        .await
        .unwrap_err();
    assert_eq!(reason(&error), UserDataError::Unrecognized);
    // The server has a key, which must be added to a list.
    let bad = with("#cloud-config\nssh_authorized_keys:\n");
    let error = facade.ensure(&principal, 1, &bad).await.unwrap_err();
    let key = "ssh_authorized_keys";
    assert_eq!(reason(&error), UserDataError::NotAppendable { key });
    assert_eq!(
        facade.count("server").await + facade.count("server-key").await,
        0
    );

    let servers = plain(&facade);
    let alone = new_server(1, bad.clone());
    servers.ensure(&principal, &alone).await.unwrap();
    let mut other = bad;
    other.tags.insert("a", "b").unwrap();
    facade.set_spec(&principal, &other).await.unwrap();
    // User data that was accepted alone is refused with an authority.
    other.ssh_authority = Some(facade.authority(tenant(1, 1)).await);
    let error = facade.set_spec(&principal, &other).await.unwrap_err();
    assert_eq!(reason(&error), UserDataError::NotAppendable { key });
    let planned = facade
        .servers
        .plan_spec(&principal, server_id(1), &other)
        .await;
    assert_eq!(
        reason(&planned.unwrap_err()),
        UserDataError::NotAppendable { key }
    );
    other.user_data = data("#!/bin/sh\n");
    facade.set_spec(&principal, &other).await.unwrap();
    other.user_data = data("#!/bin/sh\n\u{e9}");
    facade.set_spec(&principal, &other).await.unwrap();
    other.user_data = data("\n#!/bin/sh\n");
    let error = facade.set_spec(&principal, &other).await.unwrap_err();
    assert!(matches!(reason(&error), UserDataError::NotAtStart(_)));
}
