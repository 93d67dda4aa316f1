//! Creations that race with the deletion of their dependencies: either the dependency stays, or no server uses it. On both stores.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeSet, time::Duration};

use fleetwright_facade_testkit::{
    TestFacade, memory_store, server_id, server_spec, server_user, sqlite_store,
    stores::{InterceptedStore, RandomDelays},
    tenant,
};
use fleetwright_region::{
    network::{Deletion, IfUsed, NetworkState, RecordError},
    server::{DependencyError, ServerError, ServerSpec},
};
use futures_util::future::join_all;

/// The dependency that is deleted.
#[derive(Clone, Copy, Debug)]
enum DeletedRecord {
    Network,
    NetworkLater,
    Group,
    Authority,
}

const ALL: [DeletedRecord; 4] = [
    DeletedRecord::Network,
    DeletedRecord::NetworkLater,
    DeletedRecord::Group,
    DeletedRecord::Authority,
];

async fn delete(
    facade: &TestFacade,
    spec: &ServerSpec,
    deleted_record: DeletedRecord,
) -> Result<Deletion, RecordError> {
    let alice = server_user(tenant(1, 1));
    let group = *spec.security_groups.first().unwrap();
    match deleted_record {
        // The group is deleted first, as a user who deletes both would.
        DeletedRecord::Network => match facade.security_groups.delete(&alice, group).await {
            Ok(()) => {
                let network = spec.network;
                facade
                    .networks
                    .delete(&alice, network, IfUsed::Refuse)
                    .await
            }
            Err(error) => Err(error),
        },
        DeletedRecord::NetworkLater => {
            let (network, first) = (spec.network, IfUsed::DeleteFirst);
            facade.networks.delete(&alice, network, first).await
        }
        DeletedRecord::Group => {
            let deleted = facade.security_groups.delete(&alice, group).await;
            deleted.map(|()| Deletion::Deleted)
        }
        DeletedRecord::Authority => {
            let authority = spec.ssh_authority.unwrap();
            let deleted = facade.ssh_authorities.delete(&alice, authority).await;
            deleted.map(|()| Deletion::Deleted)
        }
    }
}

/// Fifty callers create a server each, and one deletes the dependency meanwhile, each after a delay. Returns the number of created
/// servers.
async fn race(
    facade: &TestFacade,
    deleted_record: DeletedRecord,
    (create_after, after): (Duration, Duration),
) -> usize {
    let alice = server_user(tenant(1, 1));
    let mut spec = server_spec(facade.network("blue").await);
    let group = facade.group(spec.network, "ssh").await;
    spec.security_groups.insert(group);
    spec.ssh_authority = Some(facade.authority(tenant(1, 1)).await);

    let requests = async {
        tokio::time::sleep(create_after).await;
        join_all((0..50).map(|number| facade.ensure(&alice, number, &spec))).await
    };
    let deletion = async {
        tokio::time::sleep(after).await;
        delete(facade, &spec, deleted_record).await
    };
    let (deleted, requested) = tokio::join!(deletion, requests);

    let created = requested
        .iter()
        .filter(|requested| requested.is_ok())
        .count();
    for refused in requested
        .iter()
        .filter_map(|requested| requested.as_ref().err())
    {
        let expected = matches!(
            refused,
            ServerError::Dependency(DependencyError::Record(
                RecordError::NotFound { .. } | RecordError::Deleting { .. }
            ))
        );
        assert!(expected, "{deleted_record:?}: {refused:?}");
    }
    assert_eq!(facade.count("server").await, created);
    assert_eq!(
        facade.count("server-key").await,
        created,
        "no key without server"
    );
    match deleted {
        Ok(Deletion::Deleted) => assert_eq!(
            created, 0,
            "{deleted_record:?}: servers without their dependency"
        ),
        Ok(Deletion::Waiting) => {
            let found = facade.networks.get(&alice, spec.network).await.unwrap();
            assert_eq!(found.value.state, NetworkState::Deleting);
            assert!(
                created > 0,
                "{deleted_record:?}: it waits although no server uses it"
            );
            let late = facade.ensure(&alice, 99, &spec).await;
            assert!(
                late.is_err(),
                "no server is created in a network that is being deleted"
            );
        }
        Err(RecordError::InUse { .. }) => {
            assert!(
                created > 0,
                "{deleted_record:?}: it is refused although no server uses it"
            );
            check_dependencies_exist(facade, &spec).await;
        }
        Err(other) => unreachable!("{deleted_record:?}: {other:?}"),
    }
    created
}

/// Checks that every dependency still exists, except a group that was deleted before.
async fn check_dependencies_exist(facade: &TestFacade, spec: &ServerSpec) {
    let alice = server_user(tenant(1, 1));
    facade.networks.get(&alice, spec.network).await.unwrap();
    let group = *spec.security_groups.first().unwrap();
    facade.security_groups.get(&alice, group).await.unwrap();
    let authority = spec.ssh_authority.unwrap();
    facade.ssh_authorities.get(&alice, authority).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fifty_creations_racing_a_deletion_leave_no_dangling_reference() {
    for deleted_record in ALL {
        let mut outcomes = BTreeSet::new();
        for seed in 0..4 {
            let slow = InterceptedStore::new(memory_store(), RandomDelays::new(seed));
            let facade = TestFacade::builder().store(slow).build().await;
            // The first deletion has a head start, since it also releases quota.
            let create_after = Duration::from_millis(if seed == 0 { 400 } else { 0 });
            let delays = (create_after, Duration::from_millis(seed * 45));
            outcomes.insert(race(&facade, deleted_record, delays).await > 0);
        }
        assert_eq!(outcomes, [false, true].into(), "{deleted_record:?}");
    }
}

#[tokio::test]
async fn fifty_creations_racing_a_deletion_leave_no_dangling_reference_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    for (number, deleted_record) in ALL.into_iter().cycle().take(8).enumerate() {
        let store = sqlite_store(folder.path().join(format!("{number}.db"))).await;
        let facade = TestFacade::builder().store(store).build().await;
        race(&facade, deleted_record, (Duration::ZERO, Duration::ZERO)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn change_of_network_races_with_its_deletion() {
    let (mut moved, mut stayed) = (0, 0);
    for seed in 0..200 {
        let slow = InterceptedStore::new(memory_store(), RandomDelays::new(seed));
        let facade = TestFacade::builder().store(slow).build().await;
        let alice = server_user(tenant(1, 1));
        let blue = server_spec(facade.network("blue").await);
        let green = server_spec(facade.network("green").await);
        facade.ensure(&alice, 1, &blue).await.unwrap();
        let deletion = facade
            .networks
            .delete(&alice, green.network, IfUsed::Refuse);
        let (deleted, set) = tokio::join!(deletion, facade.set_spec(&alice, &green));
        let server = facade.servers.read(&alice, server_id(1)).await.unwrap();
        match (deleted, set) {
            (Ok(Deletion::Deleted), Err(ServerError::Dependency(_))) => {
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
