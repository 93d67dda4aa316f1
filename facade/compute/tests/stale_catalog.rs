//! A process whose catalog is older than the store's: no call fails inside, and none is refused that a fresh process accepts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError, Facade, Meaning,
    instance::InstanceId,
    service::{ListInstances, UpdateInstance},
};
use fleetwright_facade_testkit::{
    CATALOG, MAPPING, TestFacade, error_chain, flavor, image, is_running, memory_store,
    new_instance, new_snapshot, north, project_user, tenant, without_entry,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::{CatalogService, ImageState},
    ids::NetworkId,
    mapping::RegionPlanner,
};
use fleetwright_store::Store;

const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A change of the catalog: what is loaded before the other process opens it, and after.
struct CatalogChange {
    what: &'static str,
    before: String,
    after: String,
}

const EXTRA: &str = r#"    { id = "extra", cpus = 4, memory = "8 GiB", disk = "40 GB", architecture = "x86_64", gpu = { vendor = "NVIDIA", model = "L4", memory = "24 GiB", physical-count = 1, logical-count = 2 } },"#;
const FRESH: &str = r#"    { id = "fresh", size = "10 GiB", virtualization = "any", visibility = "global", architecture = "x86_64", os = { family = "debian", distro = "debian", version = "14" } },"#;

fn with_new_entries() -> String {
    let text = CATALOG.replacen("flavor = [", &format!("flavor = [\n{EXTRA}"), 1);
    text.replacen("image = [", &format!("image = [\n{FRESH}"), 1)
}

/// A mapping with them.
fn mapping() -> String {
    let text = MAPPING.replacen("small = ", "extra = \"x1\", small = ", 1);
    text.replacen("debian = ", "fresh = \"img-12\", debian = ", 1)
}

fn catalog_changes() -> Vec<CatalogChange> {
    let retired = without_entry(&without_entry(CATALOG, "large"), "rocky");
    // `wide` fits `small` only with the larger disk.
    let larger = CATALOG.replacen("disk = \"20 GB\"", "disk = \"60 GB\"", 1);
    let change = |what, before: &str, after: &str| CatalogChange {
        what,
        before: before.to_owned(),
        after: after.to_owned(),
    };
    vec![
        change("added", CATALOG, &with_new_entries()),
        change("retired", CATALOG, &retired),
        change("returned", &retired, CATALOG),
        change("disk larger", CATALOG, &larger),
        change("disk smaller", &larger, CATALOG),
    ]
}

/// Flavors and images, of which some are new, retired, returned, changed or never there.
const SHAPES: [(&str, &str); 9] = [
    ("small", "debian"),
    ("large", "debian"),
    ("extra", "debian"),
    ("never", "debian"),
    ("small", "rocky"),
    ("small", "wide"),
    ("small", "fresh"),
    ("extra", "fresh"),
    ("large", "rocky"),
];

/// What a tenant calls.
#[derive(Clone, Copy, Debug)]
enum Call {
    Create(&'static str, &'static str),
    /// Of the instance with this number.
    PlanUpdate(usize, &'static str, &'static str),
    Update(usize, &'static str, &'static str),
    Describe(usize),
    Read(usize),
    List,
    Replace(usize),
    Reboot(usize),
    Snapshot(usize),
    Flavors,
    Images,
}

fn calls() -> Vec<Call> {
    let mut calls = vec![Call::List, Call::Flavors, Call::Images];
    for number in 0..2 {
        calls.extend([
            Call::Describe(number),
            Call::Read(number),
            Call::Replace(number),
            Call::Reboot(number),
            Call::Snapshot(number),
        ]);
    }
    for (flavor, image) in SHAPES {
        calls.push(Call::Create(flavor, image));
        for number in 0..2 {
            calls.push(Call::PlanUpdate(number, flavor, image));
            calls.push(Call::Update(number, flavor, image));
        }
    }
    calls
}

/// Makes a call as `tenant(1, 1)`, and returns what the caller sees of the result. Names differ between the processes.
async fn perform(
    facade: &Facade,
    call: Call,
    network: NetworkId,
    instances: &[InstanceId],
    name: &str,
) -> Result<String, ComputeError> {
    let (alice, service) = (project_user(tenant(1, 1)), &facade.instances);
    let wanted = async |number: usize, to: (&str, &str)| {
        let read = service.read(&alice, instances[number]).await.unwrap();
        let mut wanted = UpdateInstance::of(&read.instance);
        (wanted.spec.flavor, wanted.spec.image) = (flavor(to.0), image(to.1));
        wanted
    };
    Ok(match call {
        Call::Create(by, from) => {
            let mut new = new_instance(network, name);
            (new.spec.flavor, new.spec.image) = (flavor(by), image(from));
            service.create(&alice, &new).await.map(|_| String::new())?
        }
        Call::PlanUpdate(number, by, from) => {
            let wanted = wanted(number, (by, from)).await;
            let plan = service.plan_update(&alice, instances[number], &wanted);
            format!("{:?}", plan.await?)
        }
        Call::Update(number, by, from) => {
            let wanted = wanted(number, (by, from)).await;
            let updated = service.update(&alice, instances[number], &wanted);
            format!("{:?}", updated.await?.1)
        }
        Call::Describe(number) => {
            let read = service.read(&alice, instances[number]).await?;
            let mut wanted = UpdateInstance::of(&read.instance);
            wanted.description = Some(format!("by {name}"));
            let updated = service.update(&alice, instances[number], &wanted);
            format!("{:?}", updated.await?.1)
        }
        Call::Read(number) => {
            let read = service.read(&alice, instances[number]).await?;
            format!("{:?}", read.instance.spec)
        }
        Call::List => {
            let page = service.list(&alice, &ListInstances::default()).await?;
            page.instances.len().to_string()
        }
        Call::Replace(number) => {
            let replaced = service.replace(&alice, instances[number]).await;
            replaced.map(|_| String::new())?
        }
        Call::Reboot(number) => {
            let rebooted = service.reboot(&alice, instances[number], Reboot::Soft);
            rebooted.await.map(|_| String::new())?
        }
        Call::Snapshot(number) => {
            let mut new = new_snapshot();
            new.name = fleetwright_facade_testkit::name(name);
            let created = service.snapshot(&alice, instances[number], &new).await?;
            format!("{:?} {:?}", created.size, created.architecture)
        }
        Call::Flavors => format!("{:?}", facade.catalog.read_flavors(&alice).await.unwrap()),
        Call::Images => format!("{:?}", facade.catalog.read_images(&alice).await.unwrap()),
    })
}

/// Which catalog the processes have that make the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    BeforeTheChange,
    AfterTheChange,
}

/// Opens a process with its own catalog and a mapping without the new entries.
async fn open(store: &Arc<dyn Store>, loader: &TestFacade) -> Facade {
    let (catalog, _) = CatalogService::open(store.clone()).await.unwrap();
    let catalog = Arc::new(catalog);
    let planner = RegionPlanner::new(catalog.clone(), MAPPING).unwrap();
    Facade::builder()
        .store(store.clone())
        .clock(loader.clock.clone())
        .shared_catalog(catalog)
        .region_with_planner(
            north(),
            Arc::new(loader.cloud.provisioner()),
            Arc::new(planner),
        )
        .keyring(Arc::new(KEYS.parse().unwrap()))
        .build()
        .await
        .unwrap()
}

/// What the tenant sees of each call, each made by a process of its own, and of the instances in the end.
async fn results(change: &CatalogChange, opened: Opened) -> Vec<(String, String)> {
    let (store, cloud) = (memory_store(), MemoryCloud::new());
    let loader = TestFacade::builder().cloud(&cloud).store(store.clone());
    let loader = loader.build().await;
    loader.catalog.load(&change.before).await.unwrap();
    let network = loader.network("net").await;
    let mut instances = vec![loader.create(network, "old").await.instance.id];
    let calls = calls();
    let mut processes = Vec::new();
    for _ in 0..=calls.len() {
        processes.push(open(&store, &loader).await);
    }
    loader.catalog.load(&change.after).await.unwrap();
    let alice = project_user(tenant(1, 1));
    let mut new = new_instance(network, "new");
    if change.what == "added" {
        loader.set_mapping(&mapping());
        (new.spec.flavor, new.spec.image) = (flavor("extra"), image("fresh"));
    }
    let created = loader.instances.create(&alice, &new).await.unwrap();
    instances.push(created.instance.id);
    for id in &instances {
        loader.during(loader.until(*id, is_running)).await;
    }
    if opened == Opened::AfterTheChange {
        for process in &mut processes {
            *process = open(&store, &loader).await;
        }
    }
    let mut results = Vec::new();
    for (number, (call, process)) in (0..).zip(calls.into_iter().zip(&processes)) {
        let name = format!("n{number}");
        let result = perform(process, call, network, &instances, &name).await;
        let place = format!("{call:?} after entries were {}", change.what);
        if let Err(error) = &result {
            assert_ne!(error.meaning(), Meaning::Internal, "{place}: {error}");
        }
        let text = result.unwrap_or_else(|error| error_chain(&error));
        results.push((place, without_ids(&text)));
    }
    // The loops of a process of the same age carry out what was requested.
    let last = processes.last().unwrap();
    tokio::select! {
        () = last.run() => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => {}
    }
    let page = loader
        .instances
        .list(&alice, &ListInstances::default())
        .await;
    let mut ends: Vec<_> = page
        .unwrap()
        .instances
        .into_iter()
        .map(|one| {
            let conditions = one.instance.status.conditions.into_iter();
            let conditions: Vec<_> = conditions
                .map(|found| without_ids(&found.message))
                .collect();
            (
                one.instance.name.to_string(),
                format!("{:?} {conditions:?}", one.instance.status.phase),
            )
        })
        .collect();
    ends.sort();
    results.extend(ends);
    results
}

/// Replaces UUIDs, which differ between two runs.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.parse::<uuid::Uuid>().is_ok();
    let mut words = Vec::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_hexdigit() && c != '-') {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        words.push(if is_id(bare) {
            word.replace(bare, "ID")
        } else {
            word.to_owned()
        });
    }
    words.concat()
}

/// What a fresh process returns is what a stale one has to return.
#[tokio::test(start_paused = true)]
async fn stale_catalog_changes_no_result() {
    for change in catalog_changes() {
        let stale = results(&change, Opened::BeforeTheChange).await;
        let fresh = results(&change, Opened::AfterTheChange).await;
        for (stale, fresh) in stale.iter().zip(&fresh) {
            assert_eq!(stale, fresh);
        }
        assert_eq!(stale.len(), fresh.len());
    }
}

/// The operator loads the catalog in one process, and the mapping in another one, which serves requests and runs the machines.
#[tokio::test(start_paused = true)]
async fn stale_process_accepts_the_mapping_of_new_entries_and_launches_them() {
    let store = memory_store();
    let stale = TestFacade::builder().store(store.clone()).build().await;
    let (loader, _) = CatalogService::open(store.clone()).await.unwrap();
    loader.load(&with_new_entries()).await.unwrap();
    assert!(
        stale.planner.load(&mapping()).is_err(),
        "it does not know the entries"
    );
    stale.planner.reload(&mapping()).await.unwrap();
    let network = stale.network("net").await;
    let mut new = new_instance(network, "web");
    (new.spec.flavor, new.spec.image) = (flavor("extra"), image("fresh"));
    let alice = project_user(tenant(1, 1));
    let id = stale
        .instances
        .create(&alice, &new)
        .await
        .unwrap()
        .instance
        .id;
    // Meanwhile the disk of the flavor grows: the launch has the size of that moment.
    let larger = with_new_entries().replacen("disk = \"40 GB\"", "disk = \"500 GiB\"", 1);
    loader.load(&larger).await.unwrap();
    stale.during(stale.until(id, is_running)).await;
    let launch = stale.server(id).await.unwrap().server.launch.unwrap();
    assert_eq!(launch.config.disk_size_gb.unwrap().get(), 500);
}

/// A tenant's image that another process has made, and one that another process has deleted.
#[tokio::test(start_paused = true)]
async fn stale_process_knows_the_images_of_tenants() {
    let (store, cloud) = (memory_store(), MemoryCloud::new());
    let first = TestFacade::builder().cloud(&cloud).store(store.clone());
    let first = first.build().await;
    let (network, id) = first.launch_instance().await;
    let other = first
        .reopen_with(store.clone(), Arc::new(cloud.provisioner()))
        .await;
    let alice = project_user(tenant(1, 1));
    let made = first
        .instances
        .snapshot(&alice, id, &new_snapshot())
        .await
        .unwrap();
    first
        .during(async {
            tokio::select! {
                _ = first.until_snapshot(ImageState::Ready) => {}
                () = first.region().snapshots.run() => {}
            }
        })
        .await;
    let mut new = new_instance(network, "copy");
    new.spec.image = made.id.clone();
    other.instances.create(&alice, &new).await.unwrap();
    // No instance uses it any more, and its record is deleted by hand.
    first.remove("image", made.id.as_str()).await;
    let mut new = new_instance(network, "late");
    new.spec.image = made.id.clone();
    let error = other.instances.create(&alice, &new).await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::InvalidRequest, "{error}");
}
