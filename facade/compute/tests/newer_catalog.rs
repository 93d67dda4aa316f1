//! Flavors and images of a newer version: shown as far as they are understood, launched from by nobody here, and no obstacle to power.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright::Reboot;
use fleetwright_compute::{
    Meaning,
    instance::{ConditionKind, Instance},
    service::UpdateInstance,
};
use fleetwright_facade_testkit::{
    RecordedMetrics, TestFacade, flavor, has_condition, image, is_running, name, new_instance,
    new_snapshot, operator, project_user, tenant,
};
use fleetwright_identity::Principal;
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::ImageError,
    network::{Direction, IfUsed, NewSecurityGroup, Protocol, RecordError, Rule, Rules},
    server::Phase,
};
use fleetwright_store::{Partial, StoreError};
use serde_json::{Value, json};
use tokio::time::sleep;

const NEWER: &str = "of-a-newer-version";

async fn images(facade: &TestFacade, principal: &Principal) -> (Vec<String>, Vec<String>) {
    let listed = facade.catalog.read_images(principal).await.unwrap();
    let items = listed.items.iter().map(|image| image.id.to_string());
    let newer = listed.newer.iter().map(|shown| shown.key.to_string());
    (items.collect(), newer.collect())
}

fn unknown<T>(shown: Option<Partial<T>>) -> Vec<String> {
    shown.unwrap().unknown
}

#[tokio::test(start_paused = true)]
async fn image_and_flavor_of_a_newer_version_are_shown_and_nothing_is_launched_from_them() {
    let facade = TestFacade::new().await;
    let (alice, catalog) = (project_user(tenant(1, 1)), &facade.catalog);
    let network = facade.network("net").await;
    let set = async |kind: &str, id: &str, member: &str, value: &str| {
        facade
            .patch(kind, id, |record| record[member] = json!(value))
            .await;
    };
    set("image", "rocky", "virtualization", NEWER).await;
    set("flavor", "large", "architecture", NEWER).await;

    let (items, newer) = images(&facade, &alice).await;
    assert!(!items.contains(&"rocky".to_owned()), "{items:?}");
    assert_eq!(newer, ["rocky"]);
    let shown = catalog.show_image(&alice, &image("rocky")).await.unwrap();
    assert_eq!(unknown(shown), ["/virtualization"]);
    let shown = catalog.show_image(&alice, &image("debian")).await.unwrap();
    assert_eq!(unknown(shown), [""; 0]);
    let listed = catalog.read_flavors(&alice).await.unwrap();
    assert_eq!(listed.newer.len(), 1);
    let shown = catalog.show_flavor(&alice, &flavor("large")).await.unwrap();
    let shown = shown.unwrap();
    assert_eq!(
        (shown.value.cpus.get(), &shown.unknown[..]),
        (8, &["/architecture".to_owned()][..])
    );

    // A newer replica can launch it: the caller tries again.
    for (flavor_id, image_id) in [("small", "rocky"), ("large", "debian")] {
        let mut new = new_instance(network, "web");
        new.spec.flavor = flavor(flavor_id);
        new.spec.image = image(image_id);
        let error = facade.instances.create(&alice, &new).await.unwrap_err();
        assert_eq!(error.meaning(), Meaning::Unavailable, "{error}");
    }
    assert_eq!(facade.count("instance").await, 0);
}

/// Who may see an image of which this version does not understand who may see it: those who see every image.
#[tokio::test(start_paused = true)]
async fn image_with_a_visibility_of_a_newer_version_is_visible_to_readers_of_everything() {
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let (alice, catalog) = (project_user(tenant(1, 1)), &facade.catalog);
    let new = new_snapshot();
    let taken = facade.instances.snapshot(&alice, id, &new);
    let taken = facade.during(taken).await.unwrap().id;
    for hidden in [image("debian"), taken.clone()] {
        facade
            .patch("image", hidden.as_str(), |record| {
                record["visibility"] = json!(NEWER);
            })
            .await;
        assert_eq!(catalog.show_image(&alice, &hidden).await.unwrap(), None);
        let (items, newer) = images(&facade, &alice).await;
        assert!(!items.contains(&hidden.to_string()) && newer.is_empty());
        let shown = catalog.show_image(&operator(), &hidden).await.unwrap();
        assert_eq!(unknown(shown), ["/visibility"]);
        assert!(
            images(&facade, &operator())
                .await
                .1
                .contains(&hidden.to_string())
        );
        let mut new = new_instance(facade.network(hidden.as_str()).await, "web");
        new.spec.image = hidden.clone();
        let error = facade.instances.create(&alice, &new).await.unwrap_err();
        assert_eq!(error.meaning(), Meaning::InvalidRequest, "{error}");
    }
    let error = catalog.delete_image(&alice, &taken).await.unwrap_err();
    assert!(matches!(error, ImageError::NotFound(_)), "{error}");
    let error = catalog.delete_image(&operator(), &taken).await.unwrap_err();
    assert!(
        matches!(error, ImageError::Store(StoreError::Incompatible { .. })),
        "{error}"
    );
}

/// Power is the tenant's emergency brake, also while a change waits for an entry that a newer version wrote: whether the change was applied
/// to the server before or not.
#[tokio::test(start_paused = true)]
async fn flavor_of_a_newer_version_stops_a_change_and_neither_power_nor_deletion() {
    for is_applied in [false, true] {
        let cloud = MemoryCloud::new();
        let (facade, _, id) = TestFacade::running_instance(&cloud).await;
        let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
        let machines = cloud.oracle().instances();
        let set = async |architecture: &str| {
            let change = |record: &mut Value| record["architecture"] = json!(architecture);
            facade.patch("flavor", "large", change).await;
        };
        let view = instances.read(&alice, id).await.unwrap();
        let mut wanted = UpdateInstance::of(&view.instance);
        wanted.spec.flavor = flavor("large");
        instances.update(&alice, id, &wanted).await.unwrap();
        if is_applied {
            let reconciled = facade.instance_controller.reconcile(id).await;
            reconciled.unwrap();
        }
        set(NEWER).await;
        let life = async {
            let says_so = |instance: &Instance| {
                let mut conditions = instance.status.conditions.iter();
                conditions.any(|condition| condition.message.contains("flavor/large"))
            };
            let instance = facade.until(id, says_so).await;
            assert!(has_condition(&instance, ConditionKind::Refused));
            instances.stop(&alice, id).await.unwrap();
            let is_stopped = |instance: &Instance| instance.status.phase == Phase::Stopped;
            let instance = facade.until(id, is_stopped).await;
            assert!(has_condition(&instance, ConditionKind::Refused));
            let left = cloud.oracle().instances();
            assert_eq!(left[0].info.id, machines[0].info.id);
            // The newer version is gone, or this one was upgraded.
            set("x86_64").await;
            instances.start(&alice, id).await.unwrap();
            facade.until(id, is_running).await;
            let server = facade.server(id).await.unwrap().server;
            assert_eq!(server.machine.unwrap().applied.flavor, flavor("large"));
            set(NEWER).await;
            instances.stop(&alice, id).await.unwrap();
            facade.until(id, is_stopped).await;
            instances.delete(&alice, id).await.unwrap();
            facade.until_gone(id).await;
        };
        facade.during(life).await;
        facade.assert_empty().await;
    }
}

/// A group of a newer version may stand for something at the cloud, which only that version deletes.
#[tokio::test(start_paused = true)]
async fn network_is_not_deleted_with_a_group_of_a_newer_version() {
    let facade = TestFacade::new().await;
    let (networks, groups, operator) = (&facade.networks, &facade.security_groups, operator());
    let network = facade.network("blue").await;
    let ssh = Rule::new(Direction::Ingress, Protocol::Tcp, (Some(22), None), None);
    let new = NewSecurityGroup {
        network,
        name: name("web"),
        rules: Rules::new(vec![ssh.unwrap()]).unwrap(),
    };
    let group = groups.create(&operator, &new).await.unwrap().value.id;
    facade
        .patch("security-group", &group.to_string(), |record| {
            record["rules"][0]["protocol"] = json!(NEWER);
        })
        .await;
    let error = networks
        .delete(&operator, network, IfUsed::DeleteFirst)
        .await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, RecordError::Store(StoreError::Incompatible { .. })),
        "{error}"
    );
    assert_eq!(facade.count("security-group").await, 1);
    facade
        .patch("security-group", &group.to_string(), |record| {
            record["rules"][0]["protocol"] = json!("tcp");
        })
        .await;
    let gone = async {
        while networks.get(&operator, network).await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    facade.during(gone).await;
    assert_eq!(facade.count("security-group").await, 0);
}

/// Why nothing happens for an instance whose record, or whose server, a newer version wrote.
#[tokio::test(start_paused = true)]
async fn instance_of_a_newer_version_says_that_it_is_left_alone() {
    let recorded = RecordedMetrics::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let left_alone = || recorded.get("fleetwright_compute_instances_waiting left-alone");
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    assert_eq!(facade.read(id).await.waiting, None);
    for (kind, place) in [("instance", "/status/phase"), ("server", "/observed/state")] {
        let set = async |value: &str| {
            let change = |record: &mut Value| *record.pointer_mut(place).unwrap() = json!(value);
            facade.patch(kind, &id.to_string(), change).await;
        };
        if kind == "server" {
            // Something is expected to happen.
            let rebooted = instances.reboot(&alice, id, Reboot::Soft).await;
            rebooted.unwrap();
        }
        set(NEWER).await;
        facade.during(sleep(Duration::from_secs(60))).await;
        let waiting = instances.read(&alice, id).await.unwrap().waiting.unwrap();
        assert!(waiting.what.contains("a newer version"), "{waiting:?}");
        assert!(!waiting.what.contains("server"), "{waiting:?}");
        assert!((left_alone() - 1.0).abs() < 0.1, "{kind}");
        set("running").await;
        facade.during(facade.until(id, is_running)).await;
        facade.during(sleep(Duration::from_secs(600))).await;
        assert!(left_alone().abs() < 0.1, "{kind}");
        assert_eq!(facade.read(id).await.waiting, None);
    }
}
