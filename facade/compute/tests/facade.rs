//! Building a façade: each part that is missing or wrong gives its own error, which says what to do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright_compute::{Facade, facade::FacadeBuilder, prelude::*};
use fleetwright_facade_testkit::{CATALOG, MAPPING, error_chain, memory_store};
use fleetwright_memory::MemoryCloud;
use fleetwright_store::Schema;

fn cloud() -> Arc<dyn InstanceProvisioner> {
    Arc::new(MemoryCloud::new().provisioner())
}

fn complete() -> FacadeBuilder {
    Facade::builder()
        .store(memory_store())
        .catalog(CATALOG)
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
    let (error, text) = build_error(complete().catalog(flavors)).await;
    assert!(matches!(error, FacadeError::Catalog(_)), "{error:?}");
    assert!(text.contains("image is missing"), "{text}");
}

#[tokio::test]
async fn malformed_catalog_is_refused_with_its_cause() {
    let (error, text) = build_error(complete().catalog("[[flavor]]\nid = 7\n")).await;
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
    let (error, text) = build_error(complete().store(Arc::new(MemoryStore::new(schema)))).await;
    assert!(matches!(error, FacadeError::Schema(_)), "{error:?}");
    assert!(text.contains("`Facade::schema`"), "{text}");
}
