//! State that survives a restart on SQLite: retired entries, sealed keys and a damaged record.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeSet, path::Path, sync::Arc};

use fleetwright_identity::{
    Actor, ActorName, Binding, OrganizationId, Principal, ProjectId, RoleName, Roles, Scope,
};
use fleetwright_region::{
    catalog::CatalogService,
    ids::{FlavorId, RegionId},
    name::Name,
    network::{Deletion, IfUsed, NetworkState, Networks, NewNetwork},
    schema,
    schema::SERVER_KIND,
    secret::{Keyring, ServerKeys},
};
use fleetwright_runtime::entropy::OsEntropy;
use fleetwright_store::{RecordId, Schema, Store, Transaction};
use fleetwright_store_sqlite::SqliteStore;
use serde_json::json;
use uuid::Uuid;

const EXAMPLE: &str = include_str!("../catalog.example.toml");

async fn open(path: &Path) -> Arc<dyn Store> {
    let schema = schema::add_kinds(Schema::builder()).build().unwrap();
    Arc::new(SqliteStore::open(path, schema).await.unwrap())
}

fn user() -> Principal {
    let scope = Scope::Project(organization(), project());
    let binding = Binding::new(RoleName::new("project-user").unwrap(), scope);
    let actor = Actor::User(ActorName::new("alice").unwrap());
    Roles::built_in().principal(actor, &[binding]).unwrap()
}

fn organization() -> OrganizationId {
    OrganizationId::new(Uuid::from_u128(1))
}

fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(2))
}

#[tokio::test]
async fn retired_entries_stay_retired_and_a_damaged_record_affects_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region.db");
    {
        let (service, _) = CatalogService::open(open(&path).await).await.unwrap();
        service.load(EXAMPLE).await.unwrap();
        let renamed = EXAMPLE.replace("id = \"arm-2\"", "id = \"arm-3\"");
        assert_eq!(service.load(&renamed).await.unwrap().len(), 2);
    }
    {
        let (service, damaged) = CatalogService::open(open(&path).await).await.unwrap();
        assert_eq!(damaged, []);
        let arm = FlavorId::new("arm-2").unwrap();
        assert!(service.flavor(&user(), &arm).unwrap().retired);
        assert_eq!(service.flavors(&user()).unwrap().len(), 4);
    }
    let file = rusqlite::Connection::open(&path).unwrap();
    let damage = "UPDATE records SET value = 'no JSON' WHERE kind = 'flavor' AND key = 'arm-3'";
    assert_eq!(file.execute(damage, []).unwrap(), 1);
    drop(file);
    let (service, damaged) = CatalogService::open(open(&path).await).await.unwrap();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].id.to_string(), "flavor/arm-3");
    assert_eq!(service.flavors(&user()).unwrap().len(), 3);
    let fixed = service
        .load(&EXAMPLE.replace("id = \"arm-2\"", "id = \"arm-3\""))
        .await
        .unwrap();
    let fixed: Vec<_> = fixed.iter().map(ToString::to_string).collect();
    assert_eq!(
        fixed,
        ["flavor arm-3 was unreadable and is repaired from the file"]
    );
    assert_eq!(service.refresh().await.unwrap(), []);
}

#[tokio::test]
async fn network_deletion_and_keys_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region.db");
    let regions = BTreeSet::from([RegionId::new("north").unwrap()]);
    let keyring = || -> Arc<Keyring> {
        let text = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        Arc::new(text.parse().unwrap())
    };
    let server = RecordId::new(SERVER_KIND, "s-1").unwrap();
    let (network, public) = {
        let store = open(&path).await;
        let entropy = Arc::new(OsEntropy);
        let networks = Networks::new(
            Arc::clone(&store),
            regions.clone(),
            entropy.clone(),
            &fleetwright_region::references::References::default(),
        )
        .unwrap();
        let new = NewNetwork {
            organization: organization(),
            project: project(),
            region: RegionId::new("north").unwrap(),
            name: Name::new("blue").unwrap(),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let created = networks.create(&user(), &new).await.unwrap();
        let keys = ServerKeys::new(Arc::clone(&store), keyring(), entropy).unwrap();
        let spec = json!({"spec": {"network": created.value.id}});
        let launch = Transaction::new()
            .check(networks.check_open(&created).unwrap())
            .put(server.clone(), spec);
        let (launch, public) = keys
            .create(launch, Uuid::from_u128(7), organization(), project())
            .unwrap();
        store.commit(&launch).await.unwrap();
        let waiting = networks
            .delete(&user(), created.value.id, IfUsed::DeleteFirst)
            .await
            .unwrap();
        assert_eq!(waiting, Deletion::Waiting);
        (created.value.id, public)
    };
    let store = open(&path).await;
    let networks = Networks::new(
        Arc::clone(&store),
        regions,
        Arc::new(OsEntropy),
        &fleetwright_region::references::References::default(),
    )
    .unwrap();
    let being_deleted = networks.deleting(&user()).await.unwrap();
    assert_eq!(being_deleted.items[0].value.state, NetworkState::Deleting);
    let keys = ServerKeys::new(Arc::clone(&store), keyring(), Arc::new(OsEntropy)).unwrap();
    assert_eq!(
        keys.public_key(&user(), Uuid::from_u128(7)).await.unwrap(),
        public
    );
    let private = keys.private_key(&user(), Uuid::from_u128(7)).await.unwrap();
    assert!(
        private
            .expose_text()
            .unwrap()
            .starts_with("-----BEGIN OPENSSH PRIVATE KEY-----")
    );

    assert_eq!(
        networks.finish(&user(), network).await.unwrap(),
        Deletion::Waiting
    );
    store
        .commit(&Transaction::new().delete(server))
        .await
        .unwrap();
    assert_eq!(
        networks.finish(&user(), network).await.unwrap(),
        Deletion::Deleted
    );
    // The private key is neither in the file nor beside it.
    let line = private
        .expose_text()
        .unwrap()
        .lines()
        .nth(1)
        .unwrap()
        .as_bytes()
        .to_vec();
    drop((store, networks, keys));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(line.len()).any(|window| window == line));
    }
}
