//! Catalogs over time: loading, reloading, restarts, damaged records and permissions.

use std::sync::Arc;

use fleetwright_identity::{ActorName, Permission, Principal, Resource, Scope, Verb};
use fleetwright_store::{RecordId, Store, Transaction};
use serde_json::json;

use super::*;
use crate::{
    ids::{FlavorId, ImageId},
    testing::{organization, project, store, user_with_role},
};

mod others;
mod property;
mod tenant_images;

const EXAMPLE: &str = include_str!("../../../catalog.example.toml");

/// Returns the example without the entry with this id.
fn without(id: &str) -> String {
    let entries = EXAMPLE.split("\n[[").enumerate();
    let kept = entries.filter(|(_, entry)| !entry.contains(&format!("id = \"{id}\"\n")));
    let text: Vec<_> = kept.map(|(_, entry)| entry).collect();
    let text = text.join("\n[[");
    assert!(text.len() < EXAMPLE.len(), "{id} stands in the example");
    text
}

async fn open(store: &Arc<dyn Store>) -> CatalogService {
    let (service, damaged) = CatalogService::open(Arc::clone(store)).await.unwrap();
    assert_eq!(damaged, []);
    service
}

fn messages(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

fn flavor_id(id: &str) -> FlavorId {
    FlavorId::new(id).unwrap()
}

fn reader() -> Principal {
    user_with_role(
        "project-reader",
        Scope::Project(organization(1), project(1)),
    )
}

#[tokio::test]
async fn entry_missing_from_the_file_is_retired_and_can_return() {
    let store = store();
    let service = open(&store).await;
    assert_eq!(service.load(EXAMPLE).await.unwrap().len(), 7);
    assert_eq!(
        service.load(EXAMPLE).await.unwrap(),
        [],
        "loading the same file again changes nothing"
    );

    let changes = service.load(&without("arm-2")).await.unwrap();
    assert_eq!(
        messages(&changes),
        ["flavor arm-2 is retired: it is no longer in the file"]
    );
    let offered = service.flavors(&reader()).unwrap();
    assert!(offered.iter().all(|flavor| flavor.id != flavor_id("arm-2")));
    let kept = service.flavor(&reader(), &flavor_id("arm-2")).unwrap();
    assert!(kept.retired, "a server that uses it can still read it");
    assert_eq!(
        service.load(&without("arm-2")).await.unwrap(),
        [],
        "it is retired once"
    );

    // It is still retired after a restart without the file.
    let again = open(&store).await;
    assert_eq!(again.current(), service.current());
    assert!(
        again
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );

    let changes = again.load(EXAMPLE).await.unwrap();
    assert_eq!(messages(&changes), ["flavor arm-2 is offered again"]);
    assert_eq!(again.flavors(&reader()).unwrap().len(), 4);

    // The other process sees it after a refresh.
    assert!(
        service
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );
    assert_eq!(service.refresh().await.unwrap(), []);
    assert!(
        !service
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );
}

#[tokio::test]
async fn fields_that_servers_rely_on_cannot_change() {
    let service = open(&store()).await;
    service.load(EXAMPLE).await.unwrap();
    let before = service.current();
    let changed = EXAMPLE
        .replacen("\"x86_64\"", "\"aarch64\"", 1)
        .replace("baremetal = true", "baremetal = false")
        .replace("physical-count = 1", "physical-count = 2")
        .replace(
            "virtualization = \"any\"",
            "virtualization = \"virtualized\"",
        )
        .replace("cpus = 4", "cpus = 5");
    let error = service.load(&changed).await.unwrap_err();
    let LoadError::Refused(problems) = &error else {
        panic!("{error}");
    };
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| problem.place.clone())
        .collect();
    assert_eq!(
        lines,
        [
            "architecture of flavor standard-4",
            "gpu of flavor gpu-l4-8",
            "baremetal of flavor metal-64",
            "virtualization of image ubuntu-24.04",
        ]
    );
    assert!(
        error.to_string().starts_with(
            "the catalog is unchanged: 4 problems: line 6, column 1: \
             architecture of flavor standard-4: it cannot change from \"x86_64\" to \"aarch64\" because servers rely on it: \
             restore \"x86_64\", or add an entry with another id; "
        ),
        "{error}"
    );
    assert_eq!(service.current(), before);

    // Not even after it was retired.
    service.load(&without("standard-4")).await.unwrap();
    assert!(
        service
            .load(&EXAMPLE.replacen("\"x86_64\"", "\"aarch64\"", 1))
            .await
            .is_err()
    );

    let changes = service
        .load(&EXAMPLE.replace("cpus = 4", "cpus = 5"))
        .await
        .unwrap();
    assert_eq!(
        messages(&changes),
        ["flavor standard-4 is offered again, changed: cpus"]
    );
}

#[tokio::test]
async fn broken_file_changes_nothing_and_is_reported() {
    let service = open(&store()).await;
    service.load(EXAMPLE).await.unwrap();
    let before = service.current();
    let error = service
        .load(&EXAMPLE.replace("cpus = 4", "cpus = 0"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the catalog is unchanged: 1 problem: line 9, column 8: cpus of flavor standard-4: \
         0 is out of range: expected a whole number from 1 to 4096"
    );
    assert!(service.load("").await.is_err());
    assert_eq!(service.current(), before);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.toml");
    let error = service.load_file(&path).await.unwrap_err();
    assert!(
        error.to_string().ends_with("catalog.toml cannot be read"),
        "{error}"
    );
    assert!(std::error::Error::source(&error).is_some());
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert!(matches!(
        service.load_file(&path).await,
        Err(LoadError::Unreadable { .. })
    ));
    let large = vec![b'#'; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
    std::fs::write(&path, large).unwrap();
    assert!(matches!(
        service.load_file(&path).await,
        Err(LoadError::Unreadable { .. })
    ));
    std::fs::write(&path, without("metal-64")).unwrap();
    assert_eq!(service.load_file(&path).await.unwrap().len(), 1);
}

#[tokio::test]
async fn damaged_entry_is_reported_and_the_others_work() {
    let store = store();
    open(&store).await.load(EXAMPLE).await.unwrap();
    let damage = |id: &str, value| {
        let id = RecordId::new("flavor", id).unwrap();
        Transaction::new().put(id, value)
    };
    let wrong = [
        damage("arm-2", json!({"id": "arm-2", "cpus": 0})),
        damage("metal-64", json!("x")),
        damage("gone", json!({"id": "gone"})),
    ];
    for transaction in wrong {
        store.commit(&transaction).await.unwrap();
    }
    let mut other = serde_json::to_value(crate::testing::flavor("other")).unwrap();
    other["name"] = json!("in disguise");
    store.commit(&damage("Not An Id", other)).await.unwrap();

    let (service, damaged) = CatalogService::open(Arc::clone(&store)).await.unwrap();
    let mut reasons: Vec<_> = damaged
        .iter()
        .map(|d| format!("{}: {}", d.id, d.reason))
        .collect();
    reasons.sort();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert_eq!(
        reasons[0],
        "flavor/Not An Id: its id does not match its key"
    );
    assert!(reasons[1].starts_with("flavor/arm-2: "), "{reasons:?}");
    assert!(
        reasons[2].starts_with("flavor/gone: missing field"),
        "{reasons:?}"
    );
    assert!(reasons[3].starts_with("flavor/metal-64: "), "{reasons:?}");
    let ids: Vec<_> = service
        .flavors(&reader())
        .unwrap()
        .iter()
        .map(|f| f.id.to_string())
        .collect();
    assert_eq!(ids, ["gpu-l4-8", "standard-4"]);
    assert_eq!(service.images(&reader()).unwrap().len(), 2);

    // A damaged entry that the file contains is repaired; other damaged entries are kept for inspection.
    assert_eq!(
        messages(&service.load(EXAMPLE).await.unwrap()),
        [
            "flavor arm-2 was unreadable and is repaired from the file",
            "flavor metal-64 was unreadable and is repaired from the file",
        ]
    );
    assert_eq!(service.flavors(&reader()).unwrap().len(), 4);
    assert_eq!(service.refresh().await.unwrap().len(), 2);
}

#[tokio::test]
async fn large_catalog_is_stored_completely() {
    let store = store();
    let service = open(&store).await;
    let flavor = |number: usize| {
        format!(
            "[[flavor]]\nid = \"f-{number}\"\ncpus = 1\nmemory = \"1 GiB\"\ndisk = \"9 GB\"\n\
             architecture = \"x86_64\"\n"
        )
    };
    let many: String = (0..350).map(flavor).collect();
    let images = &EXAMPLE[EXAMPLE.find("[[image]]").unwrap()..];
    assert_eq!(service.load(&(many + images)).await.unwrap().len(), 353);
    assert_eq!(open(&store).await.flavors(&reader()).unwrap().len(), 350);
    let few = flavor(7) + images;
    assert_eq!(service.load(&few).await.unwrap().len(), 349);
    assert_eq!(open(&store).await.flavors(&reader()).unwrap().len(), 1);
}

#[tokio::test]
async fn entries_are_visible_by_permission_and_organization() {
    let service = open(&store()).await;
    service.load(EXAMPLE).await.unwrap();
    let acme = "6f6b2a3e-6f1c-4a4b-9a62-0c7a1e0f5a11".parse().unwrap();
    let golden = ImageId::new("acme-golden-7").unwrap();
    let none = Principal::service(ActorName::new("nobody").unwrap(), []);
    let flavors_only = Permission::new(Verb::Read, Resource::Flavors).unwrap();
    let flavors_only = Principal::service(ActorName::new("few").unwrap(), [flavors_only]);
    // Each row: principal, number of images in its list, whether it sees acme's own.
    let table = [
        (
            user_with_role("project-reader", Scope::Project(acme, project(1))),
            Some(3),
            true,
        ),
        (
            user_with_role("organization-auditor", Scope::Organization(acme)),
            Some(3),
            true,
        ),
        (
            user_with_role("platform-administrator", Scope::Global),
            Some(3),
            true,
        ),
        (reader(), Some(2), false),
        (
            user_with_role(
                "organization-administrator",
                Scope::Organization(organization(2)),
            ),
            Some(2),
            false,
        ),
        (none, None, false),
        (flavors_only, None, false),
    ];
    for (principal, images, sees) in table {
        let listed = service.images(&principal).ok().map(|images| images.len());
        assert_eq!(listed, images, "{principal:?}");
        let seen = service.image(&principal, &golden);
        assert_eq!(seen.is_some(), sees, "{principal:?}");
        if !sees {
            let absent = service.image(&principal, &ImageId::new("never-was").unwrap());
            assert_eq!(seen, absent, "hidden and absent look the same");
        }
    }
    let outsider = Principal::service(ActorName::new("nobody").unwrap(), []);
    assert!(service.flavors(&outsider).is_err());
    assert_eq!(service.flavor(&outsider, &flavor_id("arm-2")), None);
}
