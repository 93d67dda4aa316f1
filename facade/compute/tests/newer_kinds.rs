//! Every kind of record with every value that this version does not know, one after the other: it is shown as far as it is understood, and
//! nothing writes it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeMap, time::Duration};

use fleetwright_compute::service::ListInstances;
use fleetwright_facade_testkit::{TestFacade, new_snapshot, operator, project_user, tenant};
use fleetwright_identity::{
    Account, Actor, ActorName, Allocation, AuditQuery, LedgerError, NewRoleBinding, PageRequest,
    RoleName, Scope,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    account::RegionAccount, monitor::RegionScan, network::Filter, secret::ServerKey,
    server::ListServers,
};
use fleetwright_store::{
    Damaged, Document, Kind, Partial, Query, Record, Store as _, StoreError, StoreExt as _, Table,
    Transaction,
};
use serde_json::{Value, json};

/// What a newer version writes where this one knows other values.
const NEWER: &str = "of-a-newer-version";

/// The least number of places of each kind where another value is one of a newer version. Kinds with none have no values of enums on which a
/// decision depends. A kind that is added belongs here, and into [`seen`].
const PLACES: [(&str, usize); 17] = [
    ("instance", 5),
    ("server", 5),
    ("network", 1),
    ("security-group", 0),
    ("ssh-authority", 0),
    ("server-key", 0),
    ("flavor", 1),
    ("image", 8),
    ("region-account", 0),
    ("region-scan", 0),
    ("allocation", 0),
    ("quota-account", 0),
    ("organization", 2),
    ("project", 2),
    ("role-binding", 2),
    ("audit-entry", 4),
    // It has one date, and no record in this test: the first day after a start removes no entry of the audit log.
    ("audit-prune-date", 0),
];

/// How people see a record.
#[derive(Debug, PartialEq)]
enum Seen {
    /// All of it.
    Whole,
    /// Without these places.
    Partly(Vec<String>),
    /// It does not match its type, whatever version wrote it.
    Damaged,
    /// Not at all, although a newer version wrote it.
    Lost,
}

impl Seen {
    fn listed<T>(key: &str, newer: &[Partial<T>], damaged: &[Damaged]) -> Self {
        let shown = newer.iter().find(|shown| shown.key.as_str() == key);
        match (
            shown,
            damaged
                .iter()
                .find(|damaged| damaged.id.key.as_str() == key),
        ) {
            (Some(shown), None) => Self::Partly(shown.unknown.clone()),
            (Some(_), Some(damaged)) => panic!("{} is listed twice", damaged.id),
            (None, Some(damaged)) if damaged.is_newer => Self::Lost,
            (None, Some(_)) => Self::Damaged,
            (None, None) => Self::Whole,
        }
    }

    fn read<T>(read: Result<T, StoreError>) -> Self {
        match read {
            Ok(_) => Self::Whole,
            Err(StoreError::Incompatible { .. }) => Self::Lost,
            Err(StoreError::Corrupt { .. }) => Self::Damaged,
            Err(error) => panic!("{error}"),
        }
    }

    fn typed<T: Document>(record: &Record) -> Self {
        Self::read(Table::<T>::read(record.clone()).map_err(StoreError::from))
    }
}

/// Returns what the calls for people return of a record.
async fn seen(facade: &TestFacade, record: &Record) -> Seen {
    let (everyone, all, key) = (operator(), Filter::default(), record.id.key.as_str());
    let page = PageRequest::default().limit(500);
    let first_organization = || key.split('/').next().unwrap().parse().unwrap();
    match record.id.kind.as_str() {
        "instance" => {
            let wanted = ListInstances::default();
            let listed = facade.instances.list(&everyone, &wanted).await.unwrap();
            let shown = listed.instances.iter();
            let found = shown
                .filter(|view| view.instance.id.to_string() == key)
                .find(|view| !view.unknown.is_empty());
            match found {
                Some(view) => Seen::Partly(view.unknown.clone()),
                None => Seen::listed::<()>(key, &[], &listed.damaged),
            }
        }
        "server" => {
            let wanted = ListServers::default();
            let listed = facade.servers.list(&everyone, &wanted).await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "network" => {
            let listed = facade.networks.list(&everyone, &all).await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "security-group" => {
            let listed = facade.security_groups.list(&everyone, &all).await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "ssh-authority" => {
            let listed = facade.ssh_authorities.list(&everyone, &all).await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "flavor" => {
            let listed = facade.catalog.read_flavors(&everyone).await.unwrap();
            let is_shown = listed.newer.iter().any(|shown| shown.key.as_str() == key);
            let mut damaged = facade.catalog.refresh().await.unwrap();
            damaged.retain(|_| !is_shown);
            Seen::listed(key, &listed.newer, &damaged)
        }
        "image" => {
            let listed = facade.catalog.read_images(&everyone).await.unwrap();
            let is_shown = listed.newer.iter().any(|shown| shown.key.as_str() == key);
            let mut damaged = facade.catalog.refresh().await.unwrap();
            damaged.retain(|_| !is_shown);
            Seen::listed(key, &listed.newer, &damaged)
        }
        "organization" => {
            let listed = facade
                .tenancy
                .organizations(&everyone, &page)
                .await
                .unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "project" => {
            let listed = facade
                .tenancy
                .projects(&everyone, first_organization(), &page);
            let listed = listed.await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "role-binding" => {
            let (organization, project) = tenant(1, 1);
            let scope = Scope::Project(organization, project);
            let listed = facade.tenancy.bindings(&everyone, &scope, &page);
            let listed = listed.await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "audit-entry" => {
            let query = AuditQuery::within(Scope::Global).page(page);
            let listed = facade.audit.list(&everyone, &query).await.unwrap();
            Seen::listed(key, &listed.newer, &listed.damaged)
        }
        "quota-account" => {
            let organization = first_organization();
            let account = match key.split_once('/') {
                Some((_, project)) => Account::Project(organization, project.parse().unwrap()),
                None => Account::Organization(organization),
            };
            match facade.ledger.quota(&everyone, &account).await {
                Ok(_) => Seen::Whole,
                Err(LedgerError::Store(error)) => Seen::read::<()>(Err(error)),
                Err(error) => panic!("{error}"),
            }
        }
        // Only programs read these.
        "server-key" => Seen::typed::<ServerKey>(record),
        "region-account" => Seen::typed::<RegionAccount>(record),
        "region-scan" => Seen::typed::<RegionScan>(record),
        "allocation" => Seen::typed::<Allocation>(record),
        other => panic!("how do people see a {other} of a newer version?"),
    }
}

/// Returns the place of every text in a record, and of every object with one member, which can be a variant.
fn places(value: &Value, place: &str) -> Vec<String> {
    let within = |step: &str, inner: &Value| places(inner, &format!("{place}/{step}"));
    match value {
        Value::String(_) => vec![place.to_owned()],
        Value::Object(members) => {
            let variant = (members.len() == 1 && !place.is_empty()).then(|| place.to_owned());
            let inner = members.iter().flat_map(|(name, inner)| within(name, inner));
            variant.into_iter().chain(inner).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(at, inner)| within(&at.to_string(), inner))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A façade with a record of every kind that a store has for long.
async fn with_every_kind(cloud: &MemoryCloud) -> TestFacade {
    let mut builder = TestFacade::builder().cloud(cloud);
    builder = builder.scan_every(Duration::from_secs(10));
    let facade = builder.build().await;
    let (network, id) = facade.launch_instance().await;
    facade.group(network, "web").await;
    facade.authority(tenant(1, 1)).await;
    let alice = project_user(tenant(1, 1));
    let new = new_snapshot();
    let snapshot = facade.instances.snapshot(&alice, id, &new);
    facade.during_with_snapshots(snapshot).await.unwrap();
    let (organization, project) = tenant(1, 1);
    let bob = Actor::User(ActorName::new("bob").unwrap());
    let scope = Scope::Project(organization, project);
    let role = RoleName::new("project-user").unwrap();
    let new = NewRoleBinding::new(bob, role, scope);
    facade.tenancy.bind(&operator(), &new).await.unwrap();
    facade
}

#[tokio::test(start_paused = true)]
async fn record_of_a_newer_version_is_shown_and_not_written_whatever_its_kind() {
    let cloud = MemoryCloud::new();
    let facade = with_every_kind(&cloud).await;
    let machines = cloud.oracle().instances();
    let least: BTreeMap<_, _> = PLACES.into_iter().collect();
    let mut kinds = 0;
    for (kind, _) in fleetwright_facade_testkit::schema().kinds() {
        kinds += 1;
        let least = least.get(kind.as_str());
        let least = *least.unwrap_or_else(|| panic!("kind {kind} is not tested"));
        let records = facade.store.list_all(&Query::all(kind.clone())).await;
        let records = records.unwrap().records;
        assert!(
            !records.is_empty() || kind.as_str() == "audit-prune-date",
            "{kind}"
        );
        let found = sweep(&facade, kind, &records).await;
        assert!(found >= least, "{kind} has {found} places");
        assert!(least > 0 || found == 0, "{kind} has {found} places");
        let left = cloud.oracle().instances();
        assert_eq!(left.len(), machines.len(), "{kind}");
    }
    assert_eq!(kinds, PLACES.len());
}

/// Changes every place of the records of a kind, and returns how many of the changes are values of a newer version.
async fn sweep(facade: &TestFacade, kind: &Kind, records: &[Record]) -> usize {
    let mut found = 0;
    // Every entry of the audit log has the same form.
    for record in records.iter().take(8) {
        for place in places(&record.value, "") {
            let id = &record.id;
            let before = facade.store.get(id).await.unwrap().unwrap().value;
            let mut newer = before.clone();
            let Some(value) = newer.pointer_mut(&place) else {
                continue;
            };
            *value = json!(NEWER);
            let put = Transaction::new().put(id.clone(), newer.clone());
            if facade.store.commit(&put).await.is_err() {
                // An index needs another value there.
                continue;
            }
            let written = facade.store.get(id).await.unwrap().unwrap();
            match seen(facade, &written).await {
                Seen::Lost => panic!("{kind} {place} is of a newer version and not shown"),
                Seen::Whole | Seen::Damaged => {}
                Seen::Partly(unknown) => {
                    found += 1;
                    let is_named = |shown: &String| place.starts_with(shown.as_str());
                    assert!(unknown.iter().all(is_named), "{kind} {place}: {unknown:?}");
                    facade
                        .during_with_snapshots(tokio::time::sleep(Duration::from_secs(60)))
                        .await;
                    let after = facade.store.get(id).await.unwrap().unwrap();
                    assert_eq!(after, written, "{kind} {place}");
                }
            }
            let put = Transaction::new().put(id.clone(), before);
            facade.store.commit(&put).await.unwrap();
        }
    }
    found
}
