//! Catalogs over time: loaded, loaded again, restarted, damaged, and read by those who may and may not.

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

/// The example without the entry that has this id.
fn without(id: &str) -> String {
    let entries = EXAMPLE.split("\n[[").enumerate();
    let kept = entries.filter(|(_, entry)| !entry.contains(&format!("id = \"{id}\"\n")));
    let text: Vec<_> = kept.map(|(_, entry)| entry).collect();
    let text = text.join("\n[[");
    assert!(text.len() < EXAMPLE.len(), "{id} stands in the example");
    text
}

async fn open(store: &Arc<dyn Store>) -> CatalogService {
    let (keeper, damaged) = CatalogService::open(Arc::clone(store)).await.unwrap();
    assert_eq!(damaged, []);
    keeper
}

fn told(changes: &[Change]) -> Vec<String> {
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
async fn an_entry_that_disappears_is_retired_and_comes_back() {
    let store = store();
    let keeper = open(&store).await;
    assert_eq!(keeper.load(EXAMPLE).await.unwrap().len(), 7);
    assert_eq!(
        keeper.load(EXAMPLE).await.unwrap(),
        [],
        "the same again is no change"
    );

    let changes = keeper.load(&without("arm-2")).await.unwrap();
    assert_eq!(
        told(&changes),
        ["flavor arm-2 is retired: it is no longer in the file"]
    );
    let offered = keeper.flavors(&reader()).unwrap();
    assert!(offered.iter().all(|flavor| flavor.id != flavor_id("arm-2")));
    let kept = keeper.flavor(&reader(), &flavor_id("arm-2")).unwrap();
    assert!(
        kept.retired,
        "what stands on it can still be told what it is"
    );
    assert_eq!(
        keeper.load(&without("arm-2")).await.unwrap(),
        [],
        "it is retired once"
    );

    // After a restart it is still retired, without the file.
    let again = open(&store).await;
    assert_eq!(again.current(), keeper.current());
    assert!(
        again
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );

    let changes = again.load(EXAMPLE).await.unwrap();
    assert_eq!(told(&changes), ["flavor arm-2 is offered again"]);
    assert_eq!(again.flavors(&reader()).unwrap().len(), 4);

    // The other process learns of it when it looks.
    assert!(
        keeper
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );
    assert_eq!(keeper.refresh().await.unwrap(), []);
    assert!(
        !keeper
            .flavor(&reader(), &flavor_id("arm-2"))
            .unwrap()
            .retired
    );
}

#[tokio::test]
async fn what_servers_rely_on_does_not_change() {
    let keeper = open(&store()).await;
    keeper.load(EXAMPLE).await.unwrap();
    let before = keeper.current();
    let changed = EXAMPLE
        .replacen("\"x86_64\"", "\"aarch64\"", 1)
        .replace("baremetal = true", "baremetal = false")
        .replace("physical-count = 1", "physical-count = 2")
        .replace(
            "virtualization = \"any\"",
            "virtualization = \"virtualized\"",
        )
        .replace("cpus = 4", "cpus = 5");
    let error = keeper.load(&changed).await.unwrap_err();
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
            "the catalog stays as it was: 4 problems: line 6, column 1: \
             architecture of flavor standard-4: servers rely on \"x86_64\", and \"aarch64\" stands here: \
             put it back, or give what is new an id of its own; "
        ),
        "{error}"
    );
    assert_eq!(keeper.current(), before);

    // Not even by way of retirement.
    keeper.load(&without("standard-4")).await.unwrap();
    assert!(
        keeper
            .load(&EXAMPLE.replacen("\"x86_64\"", "\"aarch64\"", 1))
            .await
            .is_err()
    );

    let changes = keeper
        .load(&EXAMPLE.replace("cpus = 4", "cpus = 5"))
        .await
        .unwrap();
    assert_eq!(
        told(&changes),
        ["flavor standard-4 is offered again, with another cpus"]
    );
}

#[tokio::test]
async fn a_broken_file_leaves_the_catalog_and_says_why() {
    let keeper = open(&store()).await;
    keeper.load(EXAMPLE).await.unwrap();
    let before = keeper.current();
    let error = keeper
        .load(&EXAMPLE.replace("cpus = 4", "cpus = 0"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the catalog stays as it was: 1 problem: line 9, column 8: cpus of flavor standard-4: \
         0 is out of range: want a whole number from 1 to 4096"
    );
    assert!(keeper.load("").await.is_err());
    assert_eq!(keeper.current(), before);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.toml");
    let error = keeper.load_file(&path).await.unwrap_err();
    assert!(
        error.to_string().ends_with("catalog.toml cannot be read"),
        "{error}"
    );
    assert!(std::error::Error::source(&error).is_some());
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert!(matches!(
        keeper.load_file(&path).await,
        Err(LoadError::Unreadable { .. })
    ));
    let large = vec![b'#'; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
    std::fs::write(&path, large).unwrap();
    assert!(matches!(
        keeper.load_file(&path).await,
        Err(LoadError::Unreadable { .. })
    ));
    std::fs::write(&path, without("metal-64")).unwrap();
    assert_eq!(keeper.load_file(&path).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_damaged_entry_is_told_and_the_rest_goes_on() {
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

    let (keeper, damaged) = CatalogService::open(Arc::clone(&store)).await.unwrap();
    let mut said: Vec<_> = damaged
        .iter()
        .map(|d| format!("{}: {}", d.id, d.reason))
        .collect();
    said.sort();
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(said[0], "flavor/Not An Id: it says that it has another id");
    assert!(said[1].starts_with("flavor/arm-2: "), "{said:?}");
    assert!(
        said[2].starts_with("flavor/gone: missing field"),
        "{said:?}"
    );
    assert!(said[3].starts_with("flavor/metal-64: "), "{said:?}");
    let ids: Vec<_> = keeper
        .flavors(&reader())
        .unwrap()
        .iter()
        .map(|f| f.id.to_string())
        .collect();
    assert_eq!(ids, ["gpu-l4-8", "standard-4"]);
    assert_eq!(keeper.images(&reader()).unwrap().len(), 2);

    // What the file still has is mended; what it no longer has is left for somebody to look at.
    assert_eq!(
        told(&keeper.load(EXAMPLE).await.unwrap()),
        [
            "flavor arm-2 was damaged and is as the file has it",
            "flavor metal-64 was damaged and is as the file has it",
        ]
    );
    assert_eq!(keeper.flavors(&reader()).unwrap().len(), 4);
    assert_eq!(keeper.refresh().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_catalog_of_any_size_is_stored_whole() {
    let store = store();
    let keeper = open(&store).await;
    let flavor = |number: usize| {
        format!(
            "[[flavor]]\nid = \"f-{number}\"\ncpus = 1\nmemory = \"1 GiB\"\ndisk = \"9 GB\"\n\
             architecture = \"x86_64\"\n"
        )
    };
    let many: String = (0..350).map(flavor).collect();
    let images = &EXAMPLE[EXAMPLE.find("[[image]]").unwrap()..];
    assert_eq!(keeper.load(&(many + images)).await.unwrap().len(), 353);
    assert_eq!(open(&store).await.flavors(&reader()).unwrap().len(), 350);
    let few = flavor(7) + images;
    assert_eq!(keeper.load(&few).await.unwrap().len(), 349);
    assert_eq!(open(&store).await.flavors(&reader()).unwrap().len(), 1);
}

#[tokio::test]
async fn everybody_sees_what_is_theirs_and_nothing_else() {
    let keeper = open(&store()).await;
    keeper.load(EXAMPLE).await.unwrap();
    let acme = "6f6b2a3e-6f1c-4a4b-9a62-0c7a1e0f5a11".parse().unwrap();
    let golden = ImageId::new("acme-golden-7").unwrap();
    let none = Principal::service(ActorName::new("nobody").unwrap(), []);
    let flavors_only = Permission::new(Verb::Read, Resource::Flavors).unwrap();
    let flavors_only = Principal::service(ActorName::new("few").unwrap(), [flavors_only]);
    // Each: who, how many images they list, whether they see acme's own.
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
        let listed = keeper.images(&principal).ok().map(|images| images.len());
        assert_eq!(listed, images, "{principal:?}");
        let seen = keeper.image(&principal, &golden);
        assert_eq!(seen.is_some(), sees, "{principal:?}");
        if !sees {
            let absent = keeper.image(&principal, &ImageId::new("never-was").unwrap());
            assert_eq!(seen, absent, "hidden and absent look the same");
        }
    }
    let outsider = Principal::service(ActorName::new("nobody").unwrap(), []);
    assert!(keeper.flavors(&outsider).is_err());
    assert_eq!(keeper.flavor(&outsider, &flavor_id("arm-2")), None);
}
