//! Deleting a network with as many groups as it can have, and with instances: no transaction exceeds the store's limit, and a crash
//! between two of them is continued.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright_facade_testkit::{
    TestFacade, commits_after, name, operator, project_user,
    stores::{Applied, RacingStore},
    tenant,
};
use fleetwright_region::{
    ids::NetworkId,
    network::{Deletion, IfUsed, NewSecurityGroup, Rules},
};
use fleetwright_store::{Kind, Query, Revision, Store, StoreExt as _};

/// The most groups of a network.
const GROUPS: usize = 60;

async fn full_network(facade: &TestFacade) -> NetworkId {
    let network = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    for number in 0..GROUPS {
        let new = NewSecurityGroup {
            network,
            name: name(&format!("group-{number}")),
            rules: Rules::default(),
        };
        facade.security_groups.create(&alice, &new).await.unwrap();
    }
    network
}

async fn count(store: &Arc<dyn Store>, kind: &str) -> usize {
    let all = Query::all(Kind::new(kind).unwrap());
    store.list_all(&all).await.unwrap().records.len()
}

/// Checks that nothing of the network is left, and that each deletion is in the log once.
async fn check_gone(facade: &TestFacade, before: Revision) {
    for kind in [
        "network",
        "security-group",
        "instance",
        "server",
        "allocation",
    ] {
        assert_eq!(count(&facade.store, kind).await, 0, "{kind}");
    }
    let commits = commits_after(&*facade.store, before).await;
    let deleted = commits.iter().flat_map(|commit| &commit.changes);
    let deleted = deleted.filter(|change| {
        let entry = &change.record().value;
        change.id().kind.as_str() == "audit-entry"
            && entry["resource"] == "security-groups"
            && entry["verb"] == "delete"
    });
    assert_eq!(deleted.count(), GROUPS);
}

#[tokio::test(start_paused = true)]
async fn network_with_as_many_groups_as_possible_is_deleted_with_its_instances() {
    let facade = TestFacade::new().await;
    let network = full_network(&facade).await;
    for number in 0..5 {
        facade.create(network, &format!("web-{number}")).await;
    }
    let alice = project_user(tenant(1, 1));
    let before = facade.store.head().await.unwrap();
    facade
        .during(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let deleted = facade.networks.delete(&alice, network, IfUsed::DeleteFirst);
            let _ = deleted.await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
        })
        .await;
    check_gone(&facade, before).await;
}

#[tokio::test(start_paused = true)]
async fn crash_between_the_transactions_of_a_deletion_is_continued() {
    let alice = project_user(tenant(1, 1));
    let mut call = 1;
    loop {
        let mut reached = false;
        for applied in [Applied::No, Applied::Yes] {
            let facade = TestFacade::new().await;
            let network = full_network(&facade).await;
            let before = facade.store.head().await.unwrap();
            let store = Arc::new(RacingStore::new(facade.store.clone()).dying_at(call, applied));
            let dying = facade.reopen(store.clone() as Arc<dyn Store>).await;
            let deleted = dying.networks.delete(&alice, network, IfUsed::DeleteFirst);
            let _ = tokio::time::timeout(Duration::from_secs(60), deleted).await;
            reached |= store.is_dead();
            // A repeated request continues the deletion, and so does the controller.
            let again = facade.networks.delete(&alice, network, IfUsed::DeleteFirst);
            let again = again.await;
            if count(&facade.store, "network").await > 0 {
                let finished = facade.networks.finish(&operator(), network).await;
                assert_eq!(finished.unwrap(), Deletion::Deleted, "{again:?}");
            }
            check_gone(&facade, before).await;
        }
        if !reached {
            assert!(call > 5, "{call}: fewer calls than transactions");
            return;
        }
        call += 1;
    }
}
