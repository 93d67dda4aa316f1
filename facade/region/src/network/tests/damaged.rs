//! Damaged records.

use super::*;

async fn damage(world: &World, kind: &str, key: &str, value: serde_json::Value) {
    let id = RecordId::new(kind, key).unwrap();
    let transaction = Transaction::new().put(id, value);
    world.store.commit(&transaction).await.unwrap();
}

async fn stored(world: &World, kind: &str, key: &str) -> serde_json::Value {
    let id = RecordId::new(kind, key).unwrap();
    let found = world.store.get(&id).await.unwrap().unwrap();
    found.value.into_value()
}

#[tokio::test]
async fn damaged_record_is_reported_and_the_others_work() {
    let world = world();
    let (blue, red) = (world.network("blue").await, world.network("red").await);
    let mut value = stored(&world, "network", &red.to_string()).await;
    value["prefix"] = json!("not a prefix");
    damage(&world, "network", &red.to_string(), value).await;

    let listed = world
        .networks
        .list(&user(), &Filter::default())
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(listed.items[0].value.id, blue);
    assert_eq!(listed.damaged[0].id.to_string(), format!("network/{red}"));
    assert!(
        listed.damaged[0]
            .reason
            .contains("is not a range of addresses"),
        "{listed:?}"
    );
    let error = world.networks.get(&user(), red).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.starts_with(&format!("store corrupt: network/{red} at revision ")),
        "{cause}"
    );
}

#[tokio::test]
async fn record_whose_id_does_not_match_its_key_is_damaged() {
    let world = world();
    let (blue, red) = (world.network("blue").await, world.network("red").await);
    let mut copy = stored(&world, "network", &blue.to_string()).await;
    copy["name"] = json!("red");
    damage(&world, "network", &red.to_string(), copy).await;
    let listed = world
        .networks
        .list(&user(), &Filter::default())
        .await
        .unwrap();
    assert_eq!((listed.items.len(), listed.damaged.len()), (1, 1));
    assert_eq!(listed.damaged[0].reason, "its id does not match its key");
    assert!(matches!(
        world.networks.get(&user(), red).await,
        Err(RecordError::Store(_))
    ));
}

#[tokio::test]
async fn damaged_group_is_deleted_with_its_network() {
    let world = world();
    let blue = world.network("blue").await;
    let group = world.group(blue, "ssh").await;
    let mut value = stored(&world, "security-group", &group.to_string()).await;
    value["rules"] = json!([{"direction": "ingress", "protocol": "icmp", "port": 7}]);
    damage(&world, "security-group", &group.to_string(), value).await;
    let listed = world.groups().await;
    assert!(
        listed.damaged[0]
            .reason
            .contains("a rule for icmp cannot have ports"),
        "{listed:?}"
    );
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Deleted
    );
    let left = world.groups().await;
    assert_eq!(left.damaged, []);
}

#[tokio::test]
async fn damaged_network_under_deletion_is_reported_only_to_global_principals() {
    let world = world();
    let blue = world.network("blue").await;
    world.server("s-1", json!({ "network": blue })).await;
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Waiting
    );
    damage(
        &world,
        "network",
        &blue.to_string(),
        json!({"state": "deleting"}),
    )
    .await;
    let platform = user_with_role("platform-administrator", Scope::Global);
    assert_eq!(
        world
            .networks
            .deleting(&platform)
            .await
            .unwrap()
            .damaged
            .len(),
        1
    );
    assert_eq!(world.networks.deleting(&user()).await.unwrap().damaged, []);
}
