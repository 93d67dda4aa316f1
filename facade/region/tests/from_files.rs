//! A whole region on the memory cloud: from catalog and mapping files to a running server and back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_facade_testkit::{
    CATALOG, TestFacade, flavor, server_id, server_spec, server_user, tenant, without_entry,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::SecurityGroupId,
    network::{Deletion, IfUsed, RecordError},
    server::{ChangeMethod, Consent, Field, Health, Phase, Power, ServerError, ServerView},
};

fn mapping(group: impl std::fmt::Display) -> String {
    format!(
        r#"
        region = "north"
        provider = "memory"
        flavors = {{ small = "m1", large = "m4", arm = "a1" }}
        images = {{ debian = "img-7", rocky = "img-8" }}
        [networks.default]
        subnet = "net-1"
        [security-groups]
        {group} = "sg-1"
        "#
    )
}

/// A façade on the same store whose mapping contains the security group.
async fn with_mapping(
    facade: &TestFacade,
    cloud: &MemoryCloud,
    group: SecurityGroupId,
) -> TestFacade {
    let builder = TestFacade::builder().cloud(cloud).mapping(mapping(group));
    builder.store(facade.store.clone()).build().await
}

#[tokio::test(start_paused = true)]
async fn catalog_and_mapping_files_to_a_running_server_and_back() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(2))
        .without_verb(fleetwright::OptionalVerb::ResizeInstance)
        .build();
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let mut wanted = server_spec(facade.network("blue").await);
    let (network, group) = (wanted.network, facade.group(wanted.network, "ssh").await);
    wanted.security_groups.insert(group);
    let facade = with_mapping(&facade, &cloud, group).await;

    let work = async {
        facade.ensure(&alice, 1, &wanted).await.unwrap();
        let running = facade.until_server(Phase::Running).await;
        assert_eq!(running.health, Health::Healthy, "{running:#?}");
        let truth = cloud.oracle().instances().remove(0);
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m1");
        let in_use = facade
            .networks
            .delete(&alice, network, IfUsed::Refuse)
            .await;
        assert!(
            matches!(in_use, Err(RecordError::InUse { .. })),
            "{in_use:?}"
        );

        // Another flavor needs another machine here, which needs consent.
        wanted.flavor = flavor("large");
        let keep = Consent::KeepEverything;
        let requested = facade.servers.set_spec(&alice, server_id(1), &wanted, keep);
        let needs = requested.await.unwrap_err();
        assert!(matches!(needs, ServerError::NeedsConsent { .. }), "{needs}");
        let plan = facade.set_spec(&alice, &wanted).await.unwrap();
        assert_eq!(plan.methods[&Field::Flavor], ChangeMethod::Replace);
        let large = facade.until_server(Phase::Running).await;
        let id = &large.server.machine.as_ref().unwrap().id;
        let truth = cloud.oracle().instance(id).unwrap();
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m4");

        let stop = facade
            .servers
            .set_power(&alice, server_id(1), Power::Stopped);
        stop.await.unwrap();
        facade.until_server(Phase::Stopped).await;

        // The network is deleted with its users: it waits for the server, which its owner deletes.
        let deletion = facade.networks.delete(&alice, network, IfUsed::DeleteFirst);
        assert_eq!(deletion.await.unwrap(), Deletion::Waiting);
        facade.servers.delete(&alice, server_id(1)).await.unwrap();
        facade.until_server_gone().await;
        let finished = facade.networks.finish(&alice, network).await.unwrap();
        assert_eq!(finished, Deletion::Deleted);
    };
    facade.during_region(work).await;
    assert!(cloud.oracle().leftovers().is_empty());
    for kind in ["server", "server-key", "network", "security-group"] {
        assert_eq!(facade.count(kind).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn removed_flavor_is_still_launched_for_its_servers() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .build();
    let facade = TestFacade::new().await;
    let alice = server_user(tenant(1, 1));
    let wanted = server_spec(facade.network("blue").await);
    let group = facade.group(wanted.network, "ssh").await;
    let facade = with_mapping(&facade, &cloud, group).await;
    let work = async {
        facade.ensure(&alice, 1, &wanted).await.unwrap();
        let first = facade.until_server(Phase::Running).await;
        let changes = facade
            .catalog
            .load(&without_entry(CATALOG, "small"))
            .await
            .unwrap();
        let messages: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            ["flavor small is retired: it is no longer in the file"]
        );

        let replaced = facade.servers.request_replace(&alice, server_id(1)).await;
        replaced.unwrap();
        let second = facade.until_server(Phase::Running).await;
        let machine = |view: &ServerView| view.server.machine.as_ref().unwrap().id.clone();
        assert_ne!(machine(&first), machine(&second));
        let truth = cloud.oracle().instance(&machine(&second)).unwrap();
        assert_eq!(truth.info.instance_type.unwrap().as_str(), "m1");

        let refused = facade.ensure(&alice, 2, &wanted).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "flavor small is retired: choose one that is offered"
        );
        facade.servers.delete(&alice, server_id(1)).await.unwrap();
        facade.until_server_gone().await;
    };
    facade.during_region(work).await;
    assert!(cloud.oracle().leftovers().is_empty());
}
