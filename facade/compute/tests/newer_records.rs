//! Networks and security groups of a newer version are shown as far as this version understands them, and not changed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use fleetwright_facade_testkit::{TestFacade, name, project_user, tenant};
use fleetwright_identity::Scope;
use fleetwright_region::network::{
    Direction, Filter, IfUsed, NewSecurityGroup, Protocol, RecordError, Rule, Rules,
};
use fleetwright_store::StoreError;
use serde_json::json;

fn is_newer<T>(result: Result<T, RecordError>) -> bool {
    matches!(
        result.err().unwrap(),
        RecordError::Store(StoreError::Incompatible { .. })
    )
}

#[tokio::test(start_paused = true)]
async fn networks_and_groups_of_a_newer_version_are_shown_and_not_changed() {
    let facade = TestFacade::new().await;
    let (alice, stranger) = (project_user(tenant(1, 1)), project_user(tenant(2, 1)));
    let (networks, groups) = (&facade.networks, &facade.security_groups);
    let network = facade.network("blue").await;
    let ssh = Rule::new(Direction::Ingress, Protocol::Tcp, (Some(22), None), None).unwrap();
    let new = NewSecurityGroup {
        network,
        name: name("web"),
        rules: Rules::new(vec![ssh]).unwrap(),
    };
    let group = groups.create(&alice, &new).await.unwrap().value.id;
    assert!(
        networks
            .show(&alice, network)
            .await
            .unwrap()
            .unknown
            .is_empty()
    );

    facade
        .patch("network", &network.to_string(), |network| {
            network["state"] = json!("of-a-newer-version");
        })
        .await;
    let shown = networks.show(&alice, network).await.unwrap();
    assert_eq!(
        (shown.value.id, shown.unknown),
        (network, vec!["/state".to_owned()])
    );
    let listed = networks.list(&alice, &Filter::default()).await.unwrap();
    assert_eq!((listed.items.len(), listed.damaged.len()), (0, 0));
    assert_eq!(listed.newer[0].unknown, ["/state"]);
    let elsewhere = Filter::within(Scope::Global).region("south".parse().unwrap());
    let listed = networks.list(&alice, &elsewhere).await.unwrap();
    assert!(listed.newer.is_empty());
    assert!(is_newer(networks.get(&alice, network).await));
    assert!(is_newer(
        networks.delete(&alice, network, IfUsed::Refuse).await
    ));
    let hidden = networks.show(&stranger, network).await.unwrap_err();
    assert!(matches!(hidden, RecordError::NotFound { .. }), "{hidden}");

    facade
        .patch("security-group", &group.to_string(), |group| {
            group["rules"][0]["protocol"] = json!("of-a-newer-version");
        })
        .await;
    let shown = groups.show(&alice, group).await.unwrap();
    assert_eq!(shown.value.id, group);
    assert!(
        shown.unknown[0].starts_with("/rules"),
        "{:?}",
        shown.unknown
    );
    let listed = groups
        .list(&alice, &Filter::default().network(network))
        .await;
    let listed = listed.unwrap();
    assert_eq!((listed.newer.len(), listed.damaged.len()), (1, 0));
    assert!(is_newer(
        groups.set_rules(&alice, group, &Rules::default()).await
    ));
    let hidden = groups.show(&stranger, group).await.unwrap_err();
    assert!(matches!(hidden, RecordError::NotFound { .. }), "{hidden}");
}
