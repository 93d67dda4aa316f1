//! Networks and SSH certificate authorities use quota: charged and released in the transactions that create and delete them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright_compute::ComputeError;
use fleetwright_facade_testkit::{
    TestFacade, name, north, operator,
    principals::with_roles,
    project_user,
    stores::{Applied, RacingStore},
    tenant,
};
use fleetwright_identity::Scope;
use fleetwright_region::{
    ids::NetworkId,
    network::{AuthorityKey, Deletion, IfUsed, NewNetwork, NewSshAuthority, RecordError},
};
use fleetwright_store::Store;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";
const USED_UP: &str = "is used up: release some, or ask an administrator of the organization";

fn new_network(called: &str) -> NewNetwork {
    let (organization, project) = tenant(1, 1);
    NewNetwork {
        organization,
        project,
        region: north(),
        name: name(called),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: Vec::new(),
    }
}

fn new_authority(called: &str) -> NewSshAuthority {
    let (organization, project) = tenant(1, 1);
    NewSshAuthority {
        organization,
        project,
        name: name(called),
        public_key: AuthorityKey::new(KEY).unwrap(),
    }
}

async fn try_network(facade: &TestFacade, called: &str) -> Result<NetworkId, RecordError> {
    let alice = project_user(tenant(1, 1));
    let created = facade.networks.create(&alice, &new_network(called)).await;
    created.map(|network| network.value.id)
}

/// Every record is charged, and nothing else is.
async fn assert_charged(facade: &TestFacade) {
    for kind in ["network", "ssh-authority"] {
        assert_eq!(
            facade.count_allocations(kind).await,
            facade.count(kind).await,
            "{kind}"
        );
    }
    facade.assert_balanced(facade.count("instance").await).await;
}

#[tokio::test(start_paused = true)]
async fn networks_use_quota_until_they_are_deleted() {
    let facade = TestFacade::builder().record_quota(2).build().await;
    let alice = project_user(tenant(1, 1));
    let (one, two) = (
        try_network(&facade, "one").await.unwrap(),
        try_network(&facade, "two").await.unwrap(),
    );
    let error = try_network(&facade, "three").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the organization's quota of networks {USED_UP}")
    );
    assert_eq!(ComputeError::from(error).meaning().status(), 403);
    let taken = try_network(&facade, "two").await.unwrap_err();
    assert!(matches!(taken, RecordError::NameTaken { .. }), "{taken}");
    let organization = Scope::Organization(tenant(1, 1).0);
    let administrator = with_roles("ada", &[("organization-administrator", organization)]);
    let error = facade
        .networks
        .create(&administrator, &new_network("three"))
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "total networks allocation of 3 would exceed the limit of 2"
    );
    assert_charged(&facade).await;
    // At once, and with what is in it.
    let deleted = facade.networks.delete(&alice, one, IfUsed::Refuse).await;
    assert_eq!(deleted.unwrap(), Deletion::Deleted);
    try_network(&facade, "three").await.unwrap();
    let id = facade.create(two, "web").await.instance.id;
    facade.group(two, "ssh").await;
    let deletion = facade
        .networks
        .delete(&alice, two, IfUsed::DeleteFirst)
        .await;
    assert_eq!(deletion.unwrap(), Deletion::Waiting);
    assert!(
        try_network(&facade, "four").await.is_err(),
        "it still exists"
    );
    let work = async {
        facade.until_gone(id).await;
        while facade.networks.get(&operator(), two).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    facade.during(work).await;
    try_network(&facade, "four").await.unwrap();
    assert_charged(&facade).await;
}

#[tokio::test(start_paused = true)]
async fn authorities_use_quota_until_they_are_deleted() {
    let facade = TestFacade::builder().record_quota(1).build().await;
    let alice = project_user(tenant(1, 1));
    let authorities = &facade.ssh_authorities;
    let first = authorities
        .create(&alice, &new_authority("one"))
        .await
        .unwrap();
    let error = authorities
        .create(&alice, &new_authority("two"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the organization's quota of ssh-authorities {USED_UP}")
    );
    authorities.delete(&alice, first.value.id).await.unwrap();
    authorities
        .create(&alice, &new_authority("two"))
        .await
        .unwrap();
    assert_charged(&facade).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_never_exceed_the_quota() {
    let facade = TestFacade::builder().record_quota(5).build().await;
    let names: Vec<_> = (0..30).map(|number| format!("net-{number}")).collect();
    let requests = names.iter().map(|called| try_network(&facade, called));
    let created = futures_util::future::join_all(requests).await;
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 5);
    assert_charged(&facade).await;
}

/// The process dies at every call of the store while a network is created and deleted.
#[tokio::test(start_paused = true)]
async fn crash_leaves_no_network_without_its_charge_and_no_charge_without_its_network() {
    let alice = project_user(tenant(1, 1));
    let mut call = 1;
    loop {
        let mut reached = false;
        for done in [Applied::No, Applied::Yes] {
            let facade = TestFacade::new().await;
            let store = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
            let dying = facade.reopen(Arc::clone(&store) as Arc<dyn Store>).await;
            let work = async {
                let created = dying.networks.create(&alice, &new_network("net")).await;
                if let Ok(created) = created {
                    let id = created.value.id;
                    let _ = dying.networks.delete(&alice, id, IfUsed::Refuse).await;
                }
            };
            let _ = tokio::time::timeout(std::time::Duration::from_secs(60), work).await;
            reached |= store.is_dead();
            assert_charged(&facade).await;
        }
        if !reached {
            assert!(call > 3, "{call}: fewer than three calls");
            return;
        }
        call += 1;
    }
}
