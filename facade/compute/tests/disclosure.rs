//! What callers learn from lists, errors and refusals: nothing that their permissions do not cover.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright::UserData;
use fleetwright_compute::{Meaning, instance::InstanceId, service::ListInstances};
use fleetwright_facade_testkit::{
    TestFacade, error_chain, name, new_instance, operator,
    principals::{project_reader, scope, user_with, with_roles},
    project_user, record_id, tenant,
};
use fleetwright_identity::{Permission, Resource, Scope, Verb};
use fleetwright_region::ids::NetworkId;
use fleetwright_store::{Store as _, Transaction};
use serde_json::json;
use uuid::Uuid;

#[tokio::test(start_paused = true)]
async fn lists_show_no_user_data_and_no_events() {
    let facade = TestFacade::new().await;
    let network = facade.network("net").await;
    let mut new = new_instance(network, "web");
    new.spec.user_data = Some(UserData::new("#!/bin/sh\necho hunter2\n").unwrap());
    let alice = project_user(tenant(1, 1));
    facade.instances.create(&alice, &new).await.unwrap();
    let list = Permission::new(Verb::List, Resource::Instances).unwrap();
    let lister = user_with(scope(tenant(1, 1)), [list]);
    let page = facade
        .instances
        .list(&lister, &ListInstances::default())
        .await;
    assert_eq!(
        page.unwrap().instances[0]
            .waiting
            .as_ref()
            .unwrap()
            .last_attempt,
        None
    );
    for reader in [
        lister,
        alice.clone(),
        project_reader(tenant(1, 1)),
        operator(),
    ] {
        let page = facade
            .instances
            .list(&reader, &ListInstances::default())
            .await;
        let listed = &page.unwrap().instances[0];
        assert_eq!(listed.instance.flavor, new.spec.flavor);
        // The last line of the user data in base64, and what Debug would show of its bytes.
        let text = format!(
            "{listed:?} {}",
            serde_json::to_string(&listed.instance).unwrap()
        );
        for hidden in ["hunter2", "aHVudGVyM", "user_data", "created in network"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
    let read = facade
        .instances
        .read(&alice, InstanceId::derive(network, &name("web")));
    assert_eq!(read.await.unwrap().instance.spec, new.spec);
}

#[tokio::test(start_paused = true)]
async fn damaged_record_does_not_exist_for_strangers() {
    let facade = TestFacade::new().await;
    let network = facade.network("net").await;
    let broken = facade.insert_unreadable(network).await;
    // A record whose tenant cannot be read either.
    let shapeless = InstanceId::derive(network, &name("shapeless"));
    let put = Transaction::new().create(record_id("instance", &shapeless), json!({ "name": 7 }));
    facade.store.commit(&put).await.unwrap();
    // A record under the key of another one.
    let moved = InstanceId::derive(network, &name("moved"));
    let web = facade.create(network, "web").await.instance;
    let mut copy = serde_json::to_value(&web).unwrap();
    copy["name"] = json!("moved");
    let put = Transaction::new().create(record_id("instance", &moved), copy);
    facade.store.commit(&put).await.unwrap();

    let members = [project_user(tenant(1, 1)), project_reader(tenant(1, 1))];
    let strangers = [project_user(tenant(1, 2)), project_user(tenant(2, 1))];
    for (id, has_tenant) in [(broken, true), (moved, true), (shapeless, false)] {
        for stranger in &strangers {
            let error = facade.instances.read(stranger, id).await.unwrap_err();
            assert_eq!(error_chain(&error), format!("there is no instance {id}"));
            let error = facade.instances.delete(stranger, id).await.unwrap_err();
            assert_eq!(error_chain(&error), format!("there is no instance {id}"));
        }
        for member in &members {
            let error = facade.instances.read(member, id).await.unwrap_err();
            let expected = if has_tenant {
                Meaning::Internal
            } else {
                Meaning::NotFound
            };
            assert_eq!(error.meaning(), expected, "{error}");
        }
        let error = facade.instances.read(&operator(), id).await.unwrap_err();
        assert_eq!(error.meaning(), Meaning::Internal, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_network_does_not_exist_for_strangers() {
    let facade = TestFacade::new().await;
    let id = NetworkId::from_uuid(Uuid::from_u128(0xbad));
    let (organization, project) = tenant(1, 1);
    let damaged = json!({ "organization": organization, "project": project, "name": 7 });
    let put = Transaction::new().create(record_id("network", &id), damaged);
    facade.store.commit(&put).await.unwrap();
    for stranger in [project_user(tenant(1, 2)), project_user(tenant(2, 1))] {
        let error = facade.networks.get(&stranger, id).await.unwrap_err();
        assert_eq!(error_chain(&error), format!("there is no network {id}"));
    }
    let error = facade.networks.get(&project_user(tenant(1, 1)), id).await;
    assert!(error_chain(&error.unwrap_err()).contains("the store failed"));
}

/// The use and the limit of an organization are shown only to those who may read its quota.
#[tokio::test(start_paused = true)]
async fn quota_refusal_tells_a_project_only_of_itself() {
    let facade = TestFacade::builder().server_quota(1).build().await;
    let network = facade.network("net").await;
    facade.create(network, "web").await;
    let new = new_instance(network, "more");
    let alice = project_user(tenant(1, 1));
    let error = facade.instances.create(&alice, &new).await.unwrap_err();
    let message = "the organization's quota of servers is used up: release some, or ask an administrator of the organization";
    assert_eq!(
        (error.meaning(), error_chain(&error).as_str()),
        (Meaning::Forbidden, message)
    );
    let everywhere = Scope::Organization(tenant(1, 1).0);
    let administrator = with_roles("ada", &[("organization-administrator", everywhere)]);
    let error = facade
        .instances
        .create(&administrator, &new)
        .await
        .unwrap_err();
    assert_eq!(
        error_chain(&error),
        "total servers allocation of 2 would exceed the limit of 1"
    );
    facade.assert_balanced(1).await;
}
