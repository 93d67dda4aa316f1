//! Building a façade: each part that is missing or wrong gives its own error, which says what to do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::ImageId;
use fleetwright_compute::{
    Facade, controller::ControllerPolicy, facade::FacadeBuilder, prelude::*,
};
use fleetwright_facade_testkit::{CATALOG, MAPPING, error_chain, memory_store};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    controller as servers,
    monitor::{self, Limit, OrphanPolicy},
    snapshot::{ImageDeleter, SnapshotPolicy},
};
use fleetwright_store::Schema;

fn cloud() -> Arc<dyn InstanceProvisioner> {
    Arc::new(MemoryCloud::new().provisioner())
}

fn complete() -> FacadeBuilder {
    without_catalog().catalog(CATALOG)
}

fn without_catalog() -> FacadeBuilder {
    without_store().store(memory_store())
}

fn without_store() -> FacadeBuilder {
    Facade::builder()
        .region(cloud(), MAPPING)
        .without_server_keys()
}

async fn build_error(builder: FacadeBuilder) -> (FacadeError, String) {
    let error = builder.build().await.unwrap_err();
    let text = error_chain(&error);
    (error, text)
}

#[tokio::test]
async fn complete_builder_builds_a_facade() {
    let facade = complete().build().await.unwrap();
    assert_eq!(facade.regions[0].id.as_str(), "north");
}

#[tokio::test]
async fn missing_store_is_reported() {
    let builder = Facade::builder()
        .catalog(CATALOG)
        .region(cloud(), MAPPING)
        .without_server_keys();
    let (error, text) = build_error(builder).await;
    assert!(matches!(error, FacadeError::MissingStore), "{error:?}");
    assert!(text.contains("`store`"), "{text}");
}

#[tokio::test]
async fn missing_region_is_reported() {
    let builder = Facade::builder()
        .store(memory_store())
        .catalog(CATALOG)
        .without_server_keys();
    let (error, text) = build_error(builder).await;
    assert!(matches!(error, FacadeError::MissingRegion), "{error:?}");
    assert!(text.contains("`region`"), "{text}");
}

#[tokio::test]
async fn missing_keyring_is_reported() {
    let builder = Facade::builder()
        .store(memory_store())
        .catalog(CATALOG)
        .region(cloud(), MAPPING);
    let (error, text) = build_error(builder).await;
    assert!(matches!(error, FacadeError::MissingKeyring), "{error:?}");
    assert!(text.contains("`without_server_keys`"), "{text}");
}

/// A catalog that was loaded by another process is enough.
#[tokio::test]
async fn missing_catalog_is_reported_unless_the_store_has_one() {
    let store = memory_store();
    let builder = || {
        Facade::builder()
            .store(store.clone())
            .region(cloud(), MAPPING)
            .without_server_keys()
    };
    let (error, text) = build_error(builder()).await;
    assert!(matches!(error, FacadeError::MissingCatalog), "{error:?}");
    assert!(text.contains("`catalog`"), "{text}");
    builder().catalog(CATALOG).build().await.unwrap();
    builder().build().await.unwrap();
}

#[tokio::test]
async fn catalog_without_an_image_is_reported() {
    let flavors = CATALOG.split("image = [").next().unwrap();
    let (error, text) = build_error(without_catalog().catalog(flavors)).await;
    assert!(matches!(error, FacadeError::Catalog(_)), "{error:?}");
    assert!(text.contains("image is missing"), "{text}");
}

#[tokio::test]
async fn malformed_catalog_is_refused_with_its_cause() {
    let (error, text) = build_error(without_catalog().catalog("[[flavor]]\nid = 7\n")).await;
    assert!(matches!(error, FacadeError::Catalog(_)), "{error:?}");
    assert!(text.starts_with("the catalog cannot be loaded: "), "{text}");
}

#[tokio::test]
async fn malformed_mapping_is_reported_with_the_number_of_its_region() {
    let (error, text) = build_error(complete().region(cloud(), "region = 7")).await;
    assert!(
        matches!(error, FacadeError::Mapping { number: 2, .. }),
        "{error:?}"
    );
    assert!(text.contains("region number 2"), "{text}");
}

#[tokio::test]
async fn region_that_is_added_twice_is_refused() {
    let (error, _) = build_error(complete().region(cloud(), MAPPING)).await;
    assert!(
        matches!(&error, FacadeError::DuplicateRegion(id) if id.as_str() == "north"),
        "{error:?}"
    );
}

/// A store with the kinds of region and identity, and without instances.
#[tokio::test]
async fn store_without_the_kind_of_instances_is_refused() {
    let kinds = fleetwright_identity::schema(Schema::builder());
    let schema = fleetwright_region::schema::add_kinds(kinds)
        .build()
        .unwrap();
    let store = Arc::new(MemoryStore::new(schema));
    let (error, text) = build_error(without_store().catalog(CATALOG).store(store)).await;
    assert!(matches!(error, FacadeError::Schema(_)), "{error:?}");
    assert!(text.contains("`Facade::schema`"), "{text}");
}

/// Deletes nothing.
#[derive(Debug)]
struct NoDeleter;

#[async_trait]
impl ImageDeleter for NoDeleter {
    async fn delete_image(&self, _: &ImageId) -> fleetwright::Result<()> {
        Ok(())
    }
}

fn keyring() -> Arc<Keyring> {
    let text = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    Arc::new(text.parse().unwrap())
}

fn with_monitor(change: impl FnOnce(&mut monitor::Policy)) -> FacadeBuilder {
    let mut policy = monitor::Policy::default();
    change(&mut policy);
    complete().monitor_policy(policy)
}

fn with_servers(change: impl FnOnce(&mut servers::ControllerPolicy)) -> FacadeBuilder {
    let mut policy = servers::ControllerPolicy::default();
    change(&mut policy);
    complete().server_policy(policy)
}

fn with_instances(change: impl FnOnce(&mut ControllerPolicy)) -> FacadeBuilder {
    let mut policy = ControllerPolicy::default();
    change(&mut policy);
    complete().instance_policy(policy)
}

fn with_snapshots(change: impl FnOnce(&mut SnapshotPolicy)) -> FacadeBuilder {
    let mut policy = SnapshotPolicy::default();
    change(&mut policy);
    complete().snapshot_policy(policy)
}

/// Each mistake that would be ignored in silence, with what the error says.
#[tokio::test]
async fn no_mistake_of_an_operator_is_ignored() {
    let deleter = || Arc::new(NoDeleter);
    let (nowhere, north) = ("nowhere".parse().unwrap(), || "north".parse().unwrap());
    let zero = Duration::ZERO;
    let second = Duration::from_secs(1);
    let mistakes: Vec<(FacadeBuilder, &str)> = vec![
        (
            complete().image_deleter(nowhere, deleter()),
            "region nowhere, which the façade does not have",
        ),
        (
            complete()
                .image_deleter(north(), deleter())
                .image_deleter(north(), deleter()),
            "region north got two image deleters",
        ),
        (complete().store(memory_store()), "`store` was called twice"),
        (complete().catalog(CATALOG), "`catalog` was called twice"),
        (
            complete().keyring(keyring()).keyring(keyring()),
            "`keyring` was called twice",
        ),
        (
            complete().region(cloud(), MAPPING),
            "region north was added twice",
        ),
        (
            complete().region(
                cloud(),
                MAPPING
                    .replace("north", "south")
                    .replace("\"memory\"", "\"ec2\""),
            ),
            "the mapping of region south is for ec2, and its provisioner is memory",
        ),
        (
            complete().region(
                cloud(),
                MAPPING
                    .replace("north", "south")
                    .replace("small =", "smal ="),
            ),
            "smal",
        ),
        (
            with_monitor(|policy| policy.tick = zero),
            "`monitor_policy` cannot be used: tick is zero",
        ),
        (
            with_monitor(|policy| policy.stuck_after = zero),
            "stuck_after is zero",
        ),
        (
            with_monitor(|policy| policy.confirm_after = zero),
            "confirm_after is zero",
        ),
        (
            with_monitor(|policy| {
                policy.orphans = OrphanPolicy::Terminate;
                policy.orphan_age = zero;
            }),
            "orphan_age is zero",
        ),
        (
            with_monitor(|policy| policy.limit = Limit::new(5, 101)),
            "limit.percent is more than 100",
        ),
        (
            with_servers(|policy| policy.max_attempts = 0),
            "`server_policy` cannot be used: max_attempts is zero",
        ),
        (
            with_servers(|policy| policy.boot_timeout = zero),
            "boot_timeout is zero",
        ),
        (
            with_servers(|policy| policy.termination_timeout = zero),
            "termination_timeout is zero",
        ),
        (
            with_servers(|policy| policy.first_backoff = zero),
            "first_backoff is zero",
        ),
        (
            with_servers(|policy| policy.max_backoff = second),
            "max_backoff is shorter than first_backoff",
        ),
        (
            with_servers(|policy| policy.refused_backoff = zero),
            "refused_backoff is zero",
        ),
        (
            with_servers(|policy| policy.reimage_timeout = zero),
            "reimage_timeout is zero",
        ),
        (
            with_servers(|policy| policy.launch_timeout = zero),
            "launch_timeout is zero",
        ),
        (
            with_instances(|policy| policy.first_backoff = zero),
            "`instance_policy` cannot be used: first_backoff is zero",
        ),
        (
            with_instances(|policy| policy.max_backoff = second),
            "max_backoff is shorter",
        ),
        (
            with_instances(|policy| policy.refused_backoff = zero),
            "refused_backoff is zero",
        ),
        (
            with_instances(|policy| policy.network_recheck = zero),
            "network_recheck is zero",
        ),
        (
            with_snapshots(|policy| policy.first_backoff = zero),
            "`snapshot_policy` cannot be used: first_backoff is zero",
        ),
        (
            with_snapshots(|policy| policy.max_backoff = second),
            "max_backoff is shorter",
        ),
    ];
    for (builder, expected) in mistakes {
        let (_, text) = build_error(builder).await;
        assert!(text.contains(expected), "{text} has no {expected}");
    }
    complete()
        .keyring(keyring())
        .image_deleter(north(), deleter())
        .build()
        .await
        .unwrap();
}

/// A keyring without a key that seals, or with a line that opens nothing.
#[test]
fn no_mistake_in_a_keyring_is_ignored() {
    let may = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let zeros = "june:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for (text, expected) in [
        (String::new(), "there is no key"),
        ("# may\n\n".to_owned(), "there is no key"),
        (format!("{may}\n{may}"), "line 2 repeats the key id may"),
        (format!("{may}\njune"), "line 2 is not a key"),
        (format!("{may}\njune:c2hvcnQ="), "line 2 is not a key"),
        (format!("{may}\n{zeros}"), "not all zeros"),
    ] {
        let error = text.parse::<Keyring>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error} has no {expected}");
        assert!(!error.contains("MDEy"), "{error}");
    }
}
