//! Servers that come while what they stand on goes: either it stays, or no server stands on it. Both ways, on both stores.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod town;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_region::{
    network::{Deletion, IfUsed, NetworkState, RecordError},
    schema,
    server::{GroundError, ServerError, ServerSpec},
};
use fleetwright_runtime::entropy::OsEntropy;
use fleetwright_store::{Schema, Store};
use fleetwright_store_sqlite::SqliteStore;
use futures_util::future::join_all;

use town::{Slow, Town, memory, server_id, spec, tenant, user};

/// What is deleted under the servers.
#[derive(Clone, Copy, Debug)]
enum Goes {
    Network,
    NetworkLater,
    Group,
    Authority,
}

const ALL: [Goes; 4] = [
    Goes::Network,
    Goes::NetworkLater,
    Goes::Group,
    Goes::Authority,
];

async fn delete(town: &Town, spec: &ServerSpec, goes: Goes) -> Result<Deletion, RecordError> {
    let alice = user(tenant(1, 1));
    let group = *spec.security_groups.first().unwrap();
    match goes {
        // Its group goes first, as somebody would who deletes both.
        Goes::Network => match town.groups.delete(&alice, group).await {
            Ok(()) => {
                let network = spec.network;
                town.networks.delete(&alice, network, IfUsed::Refuse).await
            }
            Err(error) => Err(error),
        },
        Goes::NetworkLater => {
            let (network, first) = (spec.network, IfUsed::DeleteFirst);
            town.networks.delete(&alice, network, first).await
        }
        Goes::Group => {
            let deleted = town.groups.delete(&alice, group).await;
            deleted.map(|()| Deletion::Gone)
        }
        Goes::Authority => {
            let authority = spec.ssh_authority.unwrap();
            let deleted = town.authorities.delete(&alice, authority).await;
            deleted.map(|()| Deletion::Gone)
        }
    }
}

/// Fifty who ask for a server each, and after a while one who deletes. Answers how many servers were made.
async fn race(town: &Town, goes: Goes, after: Duration) -> usize {
    let alice = user(tenant(1, 1));
    let mut ground = spec(town.network("blue").await);
    let group = town.group(ground.network, "ssh").await;
    ground.security_groups.insert(group);
    ground.ssh_authority = Some(town.authority(tenant(1, 1)).await);

    let asks = (0..50).map(|number| town.ensure(&alice, number, &ground));
    let deletion = async {
        tokio::time::sleep(after).await;
        delete(town, &ground, goes).await
    };
    let (deleted, asked) = tokio::join!(deletion, join_all(asks));

    let made = asked.iter().filter(|asked| asked.is_ok()).count();
    for refused in asked.iter().filter_map(|asked| asked.as_ref().err()) {
        let expected = matches!(
            refused,
            ServerError::Ground(GroundError::Record(
                RecordError::NotFound { .. } | RecordError::Deleting { .. }
            ))
        );
        assert!(expected, "{goes:?}: {refused:?}");
    }
    assert_eq!(town.count("server").await, made);
    assert_eq!(
        town.count("server-key").await,
        made,
        "no key without server"
    );
    match deleted {
        Ok(Deletion::Gone) => assert_eq!(made, 0, "{goes:?}: servers stand on nothing"),
        Ok(Deletion::Waiting) => {
            let found = town.networks.get(&alice, ground.network).await.unwrap();
            assert_eq!(found.value.state, NetworkState::Deleting);
            assert!(made > 0, "{goes:?}: it waits for nobody");
            let late = town.ensure(&alice, 99, &ground).await;
            assert!(late.is_err(), "nothing new comes");
        }
        Err(RecordError::InUse { .. }) => {
            assert!(made > 0, "{goes:?}: nobody uses it");
            stands(town, &ground).await;
        }
        Err(other) => unreachable!("{goes:?}: {other:?}"),
    }
    made
}

/// Everything but a group that somebody deleted before is still there.
async fn stands(town: &Town, ground: &ServerSpec) {
    let alice = user(tenant(1, 1));
    town.networks.get(&alice, ground.network).await.unwrap();
    let group = *ground.security_groups.first().unwrap();
    town.groups.get(&alice, group).await.unwrap();
    let authority = ground.ssh_authority.unwrap();
    town.authorities.get(&alice, authority).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fifty_servers_against_a_deletion_leave_the_ground_or_no_server() {
    for goes in ALL {
        let mut outcomes = BTreeSet::new();
        for seed in 0..4 {
            let slow = Arc::new(Slow::new(memory(), seed));
            let town = Town::over(slow, Arc::new(OsEntropy)).await;
            let after = Duration::from_millis(seed * 45);
            outcomes.insert(race(&town, goes, after).await > 0);
        }
        assert_eq!(outcomes, [false, true].into(), "{goes:?}");
    }
}

#[tokio::test]
async fn fifty_servers_against_a_deletion_leave_the_ground_or_no_server_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    for (number, goes) in ALL.into_iter().cycle().take(8).enumerate() {
        let schema = schema::add_kinds(Schema::builder()).build().unwrap();
        let path = folder.path().join(format!("{number}.db"));
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, schema).await.unwrap());
        let town = Town::over(store, Arc::new(OsEntropy)).await;
        race(&town, goes, Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_moves_meets_a_network_that_goes() {
    let (mut moved, mut stayed) = (0, 0);
    for seed in 0..200 {
        let slow = Arc::new(Slow::new(memory(), seed));
        let town = Town::over(slow, Arc::new(OsEntropy)).await;
        let alice = user(tenant(1, 1));
        let blue = spec(town.network("blue").await);
        let green = spec(town.network("green").await);
        town.ensure(&alice, 1, &blue).await.unwrap();
        let going = town.networks.delete(&alice, green.network, IfUsed::Refuse);
        let (gone, set) = tokio::join!(going, town.set(&alice, &green));
        let server = town.servers.read(&alice, server_id(1)).await.unwrap();
        match (gone, set) {
            (Ok(Deletion::Gone), Err(ServerError::Ground(_))) => {
                assert_eq!(server.server.spec, blue);
                stayed += 1;
            }
            (Err(RecordError::InUse { .. }), Ok(_)) => {
                assert_eq!(server.server.spec, green);
                moved += 1;
            }
            other => unreachable!("seed {seed}: {other:?}"),
        }
    }
    assert!(moved > 0 && stayed > 0, "{moved} moved, {stayed} stayed");
}
