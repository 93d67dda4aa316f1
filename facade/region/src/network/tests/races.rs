//! Races between a read and a write.

use super::*;

fn put(kind: &str, key: &str, value: impl Into<fleetwright_store::Json>) -> Transaction {
    Transaction::new().put(RecordId::new(kind, key).unwrap(), value)
}

#[tokio::test]
async fn server_created_during_deletion_of_its_network_is_refused_or_keeps_it() {
    let contended_store = Arc::new(ContendedStore::new(store()));
    let world = over(contended_store.clone());
    let blue = world.network("blue").await;

    // The server commits first: the network is in use, although it was not when it was read.
    contended_store.before_next_commit(put("server", "s-1", json!({"spec": {"network": blue}})));
    let refused = world.delete(blue, IfUsed::Refuse).await.unwrap_err();
    // Its record has no owner: the message names no server nevertheless.
    assert_eq!(
        refused.to_string(),
        format!("network {blue} is in use by an instance and cannot be deleted: delete that first")
    );

    // The deletion commits first: the server's check finds that the network is being deleted.
    let read = world.networks.get(&user(), blue).await.unwrap();
    let check = world.networks.check_open(&read).unwrap();
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Waiting
    );
    let late = put("server", "s-2", json!({"spec": {"network": blue}})).check(check);
    assert!(
        world
            .store
            .commit(&late)
            .await
            .unwrap_err()
            .conflict()
            .is_some()
    );
}

#[tokio::test]
async fn server_created_before_the_last_step_keeps_its_network() {
    let contended_store = Arc::new(ContendedStore::new(store()));
    let world = over(contended_store.clone());
    let blue = world.network("blue").await;
    world.server("s-1", json!({ "network": blue })).await;
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Waiting
    );
    world.no_server("s-1").await;
    contended_store.before_next_commit(put("server", "s-2", json!({"spec": {"network": blue}})));
    assert_eq!(
        world.networks.finish(&user(), blue).await.unwrap(),
        Deletion::Waiting
    );
    world.no_server("s-2").await;
    assert_eq!(
        world.networks.finish(&user(), blue).await.unwrap(),
        Deletion::Deleted
    );
}

#[tokio::test]
async fn concurrent_change_is_read_again() {
    let contended_store = Arc::new(ContendedStore::new(store()));
    let world = over(contended_store.clone());
    let blue = world.network("blue").await;
    let group = world.group(blue, "ssh").await;
    let id = RecordId::new("security-group", group.to_string()).unwrap();
    let same = world.store.get(&id).await.unwrap().unwrap().value;
    let touch = || put("security-group", &group.to_string(), same.clone());

    contended_store.before_next_commit(touch());
    let set = world
        .groups
        .set_rules(&user(), group, &Rules::default())
        .await
        .unwrap();
    assert_eq!(set.value.rules, Rules::default());
    for _ in 0..9 {
        contended_store.before_next_commit(touch());
    }
    let busy = world.groups.delete(&user(), group).await.unwrap_err();
    assert_eq!(
        busy.to_string(),
        format!("security group {group} is being changed by others: retry")
    );
}

#[tokio::test]
async fn group_is_not_created_on_a_network_deleted_meanwhile() {
    let contended_store = Arc::new(ContendedStore::new(store()));
    let world = over(contended_store.clone());
    let blue = world.network("blue").await;
    let id = RecordId::new("network", blue.to_string()).unwrap();
    let mut deleting = world.store.get(&id).await.unwrap().unwrap().value;
    deleting["state"] = json!("deleting");
    contended_store.before_next_commit(put("network", &blue.to_string(), deleting));
    let new = new_group(blue, "late");
    let late = world.groups.create(&user(), &new).await.unwrap_err();
    assert!(matches!(late, RecordError::Deleting { .. }), "{late}");
}
