//! Deletion: records in use stay until they are unused.

use super::*;

#[tokio::test]
async fn network_in_use_is_kept_or_deleted_once_unused() {
    let world = world();
    let blue = world.network("blue").await;
    world.server("s-1", json!({ "network": blue })).await;
    let refused = world.delete(blue, IfUsed::Refuse).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "network {blue} is in use by instance i-1 and cannot be deleted: delete that first"
        )
    );
    assert_eq!(
        world.networks.get(&user(), blue).await.unwrap().value.state,
        NetworkState::Ready
    );
    let early = world.networks.finish(&user(), blue).await.unwrap_err();
    assert_eq!(
        early.to_string(),
        format!("network {blue} is not being deleted: request its deletion first")
    );

    let group = world.group(blue, "ssh").await;
    let tenant = user();
    let delete = || world.networks.delete(&tenant, blue, IfUsed::DeleteFirst);
    assert_eq!(delete().await.unwrap(), Deletion::Waiting);
    assert_eq!(
        delete().await.unwrap(),
        Deletion::Waiting,
        "requested twice"
    );
    let refuse = world.delete(blue, IfUsed::Refuse).await.unwrap();
    assert_eq!(
        refuse,
        Deletion::Waiting,
        "its deletion was requested before"
    );
    let being_deleted = world.networks.deleting(&user()).await.unwrap();
    assert_eq!(being_deleted.items[0].value.id, blue);
    let found = world.networks.get(&user(), blue).await.unwrap();
    assert_eq!(
        world.networks.check_open(&found).unwrap_err().to_string(),
        format!("network {blue} is being deleted: choose another network")
    );
    let new = new_group(blue, "late");
    let late = world.groups.create(&user(), &new).await.unwrap_err();
    assert!(matches!(late, RecordError::Deleting { .. }), "{late}");

    world.no_server("s-1").await;
    assert_eq!(
        world.networks.finish(&user(), blue).await.unwrap(),
        Deletion::Deleted
    );
    assert_eq!(
        world.networks.finish(&user(), blue).await.unwrap(),
        Deletion::Deleted
    );
    assert!(matches!(
        world.networks.get(&user(), blue).await,
        Err(RecordError::NotFound { .. })
    ));
    assert!(matches!(
        world.groups.get(&user(), group).await,
        Err(RecordError::NotFound { .. })
    ));
    assert_eq!(world.networks.deleting(&user()).await.unwrap().items, []);
    world.network("blue").await;
}

#[tokio::test]
async fn groups_prevent_deletion_of_a_network_unless_deleted_with_it() {
    let world = world();
    let blue = world.network("blue").await;
    for number in 0..60 {
        world.group(blue, &format!("g{number}")).await;
    }
    let new = new_group(blue, "late");
    assert_eq!(
        world
            .groups
            .create(&user(), &new)
            .await
            .unwrap_err()
            .to_string(),
        format!(
            "network {blue} has 60 security groups already, which is the maximum: delete one first"
        )
    );
    let refused = world.delete(blue, IfUsed::Refuse).await.unwrap_err();
    assert!(
        refused.to_string().contains("is in use by security-group "),
        "{refused}"
    );
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Deleted
    );
    assert_eq!(world.groups().await.items, []);
}

#[tokio::test]
async fn groups_and_authorities_in_use_are_not_deleted() {
    let world = world();
    let blue = world.network("blue").await;
    let (one, two) = (
        world.group(blue, "one").await,
        world.group(blue, "two").await,
    );
    let authority = world.authority("ours").await;
    let spec = json!({"network": blue, "security_groups": [one, two], "ssh_authority": authority});
    world.server("s-1", spec).await;
    for group in [one, two] {
        let error = world.groups.delete(&user(), group).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "security group {group} is in use by instance i-1 and cannot be deleted: delete that first"
            )
        );
    }
    let error = world
        .authorities
        .delete(&user(), authority)
        .await
        .unwrap_err();
    assert!(matches!(error, RecordError::InUse { .. }), "{error}");
    world
        .server("s-1", json!({"network": blue, "security_groups": [two]}))
        .await;
    world.groups.delete(&user(), one).await.unwrap();
    world.authorities.delete(&user(), authority).await.unwrap();
    assert!(world.groups.delete(&user(), two).await.is_err());
    world.no_server("s-1").await;
    world.groups.delete(&user(), two).await.unwrap();
    assert_eq!(
        world.delete(blue, IfUsed::Refuse).await.unwrap(),
        Deletion::Deleted
    );
}

#[tokio::test]
async fn group_used_by_a_server_of_another_network_keeps_its_network() {
    let world = world();
    let (blue, red) = (world.network("blue").await, world.network("red").await);
    let group = world.group(blue, "ssh").await;
    // No call creates such a server, but a store can contain one.
    let spec = json!({"network": red, "security_groups": [group]});
    world.server("s-1", spec).await;
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Waiting
    );
    world.no_server("s-1").await;
    assert_eq!(
        world.networks.finish(&user(), blue).await.unwrap(),
        Deletion::Deleted
    );
}

#[tokio::test]
async fn more_groups_than_one_transaction_holds_are_deleted() {
    let world = world();
    let blue = world.network("blue").await;
    let group = world.group(blue, "g0").await;
    let first = RecordId::new("security-group", group.to_string()).unwrap();
    let first = world.store.get(&first).await.unwrap().unwrap().value;
    // Concurrent creations can exceed the limit.
    for number in 1..130_u128 {
        let id = SecurityGroupId::from_uuid(uuid::Uuid::from_u128(number));
        let mut value = first.clone();
        value["id"] = json!(id);
        value["name"] = json!(format!("g{number}"));
        let record = RecordId::new("security-group", id.to_string()).unwrap();
        let transaction = Transaction::new().put(record, value);
        world.store.commit(&transaction).await.unwrap();
    }
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Deleted
    );
    let left = world.groups().await;
    assert_eq!(left.items, []);
}
