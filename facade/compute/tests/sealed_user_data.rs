//! User data is sealed at rest, in every copy, with a keyring that can be rotated and that nobody can do without.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{path::Path, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use fleetwright::{Reboot, UserData};
use fleetwright_compute::{
    ComputeError, Facade, Meaning,
    instance::{Instance, InstanceId},
    service::{ListInstances, UpdateInstance},
};
use fleetwright_facade_testkit::{
    CATALOG, MAPPING, TestFacade, error_chain, is_applied, is_running, memory_store, new_instance,
    new_snapshot, operator, project_user, record_id, sqlite_store, tenant,
};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::{
    catalog::ImageState,
    server::{Consent, Phase},
};
use fleetwright_store::{Interest, Kind, Query, Revision, Store, StoreExt as _, Transaction};

/// Recognizable, and long enough that its middle is in each base64 text of it.
const NEEDLE: &str = "hunter2-correct-horse-battery-staple";
const SECOND: &str = "swordfish-correct-horse-battery-staple";

const MAY: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const JUNE: &str = "june:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
/// Another key with the id of the first.
const FALSE_MAY: &str = "may:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

fn script(needle: &str) -> Option<UserData> {
    Some(UserData::new(format!("#!/bin/sh\nexport TOKEN={needle}\n")).unwrap())
}

/// The texts by which the user data would be recognized: itself, and the middle of its base64 text at each of the three offsets.
fn traces() -> Vec<Vec<u8>> {
    let mut traces = Vec::new();
    for needle in [NEEDLE, SECOND] {
        traces.push(needle.as_bytes().to_vec());
        for offset in 0..3 {
            let shifted = format!("{}{needle}", "x".repeat(offset));
            let encoded = STANDARD_NO_PAD.encode(shifted);
            traces.push(encoded.as_bytes()[4..encoded.len() - 4].to_vec());
        }
    }
    traces
}

fn assert_clear_of(traces: &[Vec<u8>], bytes: &[u8], place: &str) {
    for trace in traces {
        let found = bytes.windows(trace.len()).any(|part| part == trace);
        assert!(!found, "{} is in {place}", String::from_utf8_lossy(trace));
    }
}

/// Checks every record and every remembered commit, as they are stored.
async fn assert_sealed(raw: &Arc<dyn Store>, stage: &str) {
    let traces = traces();
    for (kind, _) in raw.schema().kinds() {
        let records = raw.list_all(&Query::all(kind.clone())).await.unwrap();
        for record in records.records {
            let text = record.value.to_string();
            assert_clear_of(&traces, text.as_bytes(), &format!("{} {stage}", record.id));
        }
    }
    let head = raw.head().await.unwrap();
    let mut watch = raw.watch(Revision::ZERO, Interest::all()).await.unwrap();
    while watch.position() < head {
        let commit = watch.next().await.unwrap();
        let text = format!("{:?}", commit.changes);
        assert_clear_of(&traces, text.as_bytes(), &format!("the change log {stage}"));
    }
}

fn stopped(instance: &Instance) -> bool {
    instance.status.phase == Phase::Stopped && is_applied(instance)
}

/// A whole life: create, update, replace, reimage, snapshot, delete. Calls `check` after each stage.
async fn live(facade: &TestFacade, check: impl AsyncFn(&str)) {
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let network = facade.network("net").await;
    let mut new = new_instance(network, "web");
    new.spec.user_data = script(NEEDLE);
    let id = instances.create(&alice, &new).await.unwrap().instance.id;
    check("when it was requested").await;
    facade.until(id, is_running).await;
    check("when it ran").await;
    let read = instances.read(&alice, id).await.unwrap();
    assert_eq!(read.instance.spec, new.spec);

    let mut wanted = UpdateInstance::of(&read.instance);
    wanted.spec.user_data = script(SECOND);
    instances.update(&alice, id, &wanted).await.unwrap();
    facade.until(id, is_applied).await;
    check("after an update").await;
    instances.replace(&alice, id).await.unwrap();
    check("when a replacement was requested").await;
    facade.until(id, is_running).await;
    check("after a replacement").await;
    wanted.spec.image = "rocky".parse().unwrap();
    wanted.consent = Consent::Destroy;
    instances.update(&alice, id, &wanted).await.unwrap();
    facade.until(id, is_running).await;
    instances.reboot(&alice, id, Reboot::Hard).await.unwrap();
    facade.until(id, is_running).await;
    instances.stop(&alice, id).await.unwrap();
    facade.until(id, stopped).await;
    instances
        .snapshot(&alice, id, &new_snapshot())
        .await
        .unwrap();
    tokio::select! {
        _ = facade.until_snapshot(ImageState::Ready) => {}
        () = facade.region().snapshots.run() => {}
    }
    check("after a snapshot").await;
    let read = instances.read(&alice, id).await.unwrap();
    assert_eq!(read.instance.spec.user_data, script(SECOND));
    let shown = format!("{read:?} {:?}", facade.server(id).await);
    assert_clear_of(&traces(), shown.as_bytes(), "Debug");
    facade.delete(id).await;
    check("when its deletion was requested").await;
    facade.until_gone(id).await;
    check("when it was deleted").await;
}

#[tokio::test(start_paused = true)]
async fn no_record_and_no_change_has_user_data_in_clear() {
    let raw = memory_store();
    let facade = TestFacade::builder().store(raw.clone()).build().await;
    let check = async |stage: &str| assert_sealed(&raw, stage).await;
    facade.during(live(&facade, check)).await;
    // The machine got it.
    let machine = facade.cloud.oracle().instances();
    assert!(machine.iter().any(|one| {
        let data = one.user_data.as_ref().map(|data| data.as_bytes().to_vec());
        data.is_some_and(|data| {
            data.windows(SECOND.len())
                .any(|part| part == SECOND.as_bytes())
        })
    }));
}

fn assert_files_sealed(folder: &Path, stage: &str) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert_clear_of(&traces(), &bytes, &format!("{} {stage}", path.display()));
        files += 1;
    }
    assert!(files >= 2, "the database and its log");
}

#[tokio::test(start_paused = true)]
async fn no_file_of_sqlite_has_user_data_in_clear() {
    let folder = tempfile::tempdir().unwrap();
    let raw = sqlite_store(folder.path().join("facade.db")).await;
    let facade = TestFacade::builder()
        .store(raw.clone())
        .scan_every(Duration::from_millis(50))
        .build()
        .await;
    let check = async |stage: &str| {
        assert_sealed(&raw, stage).await;
        assert_files_sealed(folder.path(), stage);
    };
    facade.during(live(&facade, check)).await;
}

/// A façade on a store, as another process with another keyring opens it.
async fn with_keys(store: &Arc<dyn Store>, cloud: &MemoryCloud, keys: &str) -> TestFacade {
    let builder = TestFacade::builder().cloud(cloud).store(store.clone());
    builder.keys(keys).build().await
}

async fn running_with_user_data(facade: &TestFacade) -> InstanceId {
    let network = facade.network("net").await;
    let mut new = new_instance(network, "web");
    new.spec.user_data = script(NEEDLE);
    let alice = project_user(tenant(1, 1));
    let id = facade.instances.create(&alice, &new).await.unwrap();
    let id = id.instance.id;
    facade.during(facade.until(id, is_running)).await;
    id
}

#[tokio::test(start_paused = true)]
async fn without_its_key_nothing_is_launched_or_lost_and_the_brake_works() {
    let (raw, cloud) = (memory_store(), MemoryCloud::new());
    let first = with_keys(&raw, &cloud, MAY).await;
    let id = running_with_user_data(&first).await;
    let machine = first.server(id).await.unwrap().server.machine.unwrap().id;
    let alice = project_user(tenant(1, 1));
    for keys in [JUNE, FALSE_MAY] {
        let other = with_keys(&raw, &cloud, keys).await;
        // It is shown, with what is not.
        let view = other.instances.read(&alice, id).await.unwrap();
        assert_eq!(view.unknown, ["/spec/user_data"]);
        assert_eq!(view.instance.spec.user_data, None);
        let stranger = project_user(tenant(2, 1));
        let error = other.instances.read(&stranger, id).await.unwrap_err();
        assert_eq!(error.meaning(), Meaning::NotFound);
        let all = ListInstances::default();
        let listed = other.instances.list(&operator(), &all).await.unwrap();
        assert_eq!((listed.instances.len(), listed.damaged.len()), (1, 0));
        // What needs the user data is refused with its key, and what would lose it.
        let seen = UpdateInstance::of(&view.instance);
        let mut without = seen.clone();
        without.spec.sealed_user_data = None;
        let mut known = UpdateInstance::of(&first.read(id).await.instance);
        known.spec.user_data = None;
        let calls = [
            other.instances.replace(&alice, id).await.map(drop),
            other.instances.update(&alice, id, &seen).await.map(drop),
            other.instances.update(&alice, id, &without).await.map(drop),
            first.instances.update(&alice, id, &seen).await.map(drop),
            other.instances.update(&alice, id, &known).await.map(drop),
        ];
        for error in calls.map(Result::unwrap_err) {
            assert_eq!(error.meaning(), Meaning::Unavailable, "{error}");
            assert!(matches!(&error, ComputeError::Sealed { key, .. } if key == "may"));
            let message = error.tenant_message();
            assert!(
                message.contains("key may") && message.contains("ask an operator"),
                "{message}"
            );
        }
        let report = other.reseal(&operator()).await.unwrap();
        // What has the id of the current key is not opened to be sealed again.
        let expected = if keys == JUNE { 3 } else { 0 };
        assert_eq!(
            (report.failed.len(), report.count),
            (expected, 0),
            "{report:?}"
        );
        // The tenant can stop, start and reboot it.
        other
            .during(async {
                other.instances.stop(&alice, id).await.unwrap();
                other.until(id, stopped).await;
                other.instances.start(&alice, id).await.unwrap();
                other.until(id, is_running).await;
                let reboot = other.instances.reboot(&alice, id, Reboot::Hard);
                reboot.await.unwrap();
                other.until(id, is_applied).await;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            })
            .await;
        assert_sealed(&raw, "after a while without its key").await;
        for call in [WireCall::Terminate, WireCall::Launch] {
            let expected = u64::from(call == WireCall::Launch);
            assert_eq!(cloud.oracle().call_count(call), expected, "{call}");
        }
    }
    let again = with_keys(&raw, &cloud, &format!("{JUNE}\n{MAY}")).await;
    again
        .during(async {
            again.until(id, is_running).await;
            let read = again.instances.read(&alice, id).await.unwrap();
            assert!(read.unknown.is_empty(), "{:?}", read.unknown);
            assert_eq!(read.instance.spec.user_data, script(NEEDLE));
            let server = again.server(id).await.unwrap().server;
            assert_eq!(server.machine.unwrap().id, machine);
        })
        .await;
    // Without the key for good, its tenant deletes it.
    let other = with_keys(&raw, &cloud, JUNE).await;
    other
        .during(async {
            other.instances.delete(&alice, id).await.unwrap();
            other.until_gone(id).await;
        })
        .await;
    assert!(cloud.oracle().leftovers().is_empty());
}

/// A machine that the cloud loses is not launched again without its user data, and other user data ends that.
#[tokio::test(start_paused = true)]
async fn launch_without_its_key_waits_and_says_which_until_other_user_data_is_given() {
    let (raw, cloud) = (memory_store(), MemoryCloud::new());
    let first = with_keys(&raw, &cloud, MAY).await;
    let id = running_with_user_data(&first).await;
    let alice = project_user(tenant(1, 1));
    // The replacement was accepted by a process with the key.
    first.instances.replace(&alice, id).await.unwrap();
    let other = with_keys(&raw, &cloud, JUNE).await;
    other
        .during(async {
            let refused = |instance: &Instance| {
                let conditions = instance.status.conditions.iter();
                let mut messages = conditions.map(|one| one.message.as_str());
                messages.any(|text| text.contains("key may"))
            };
            other.until(id, refused).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
            let view = other.instances.read(&alice, id).await.unwrap();
            let mut wanted = UpdateInstance::of(&view.instance);
            wanted.spec.user_data = script(SECOND);
            wanted.consent = Consent::Destroy;
            let updated = other.instances.update(&alice, id, &wanted).await;
            assert_eq!(updated.unwrap().0.unknown, [""; 0]);
            other.instances.replace(&alice, id).await.unwrap();
            other.until(id, is_running).await;
        })
        .await;
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 2);
    let read = other.instances.read(&alice, id).await.unwrap().instance;
    assert_eq!(read.spec.user_data, script(SECOND));
    assert_sealed(&raw, "after other user data was given").await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_rotated_without_loss() {
    let (raw, cloud) = (memory_store(), MemoryCloud::new());
    let id = running_with_user_data(&with_keys(&raw, &cloud, MAY).await).await;
    let both = with_keys(&raw, &cloud, &format!("{JUNE}\n{MAY}")).await;
    let report = both.reseal(&operator()).await.unwrap();
    // The instance, its server, and the server's SSH key.
    assert_eq!((report.count, report.failed.len()), (3, 0), "{report:?}");
    assert_eq!(both.reseal(&operator()).await.unwrap(), Default::default());
    let june = with_keys(&raw, &cloud, JUNE).await;
    assert_eq!(june.read(id).await.instance.spec.user_data, script(NEEDLE));
    assert_sealed(&raw, "after a rotation").await;
    // Nothing looks changed: no launch, and no change that waits for one.
    june.during(tokio::time::sleep(Duration::from_secs(60)))
        .await;
    let instance = june.read(id).await.instance;
    assert!(is_running(&instance) && instance.status.conditions.is_empty());
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
}

#[tokio::test(start_paused = true)]
async fn records_in_clear_are_readable_and_sealed_at_their_next_write() {
    let (raw, cloud) = (memory_store(), MemoryCloud::new());
    let facade = with_keys(&raw, &cloud, MAY).await;
    let id = running_with_user_data(&facade).await;
    // As the version before has written them.
    let server = facade.server(id).await.unwrap().server.id;
    for record in [record_id("instance", &id), record_id("server", &server)] {
        let opened = facade.store.get(&record).await.unwrap().unwrap();
        let put = Transaction::new().replace(record, opened.revision, opened.value);
        raw.commit(&put).await.unwrap();
    }
    let in_clear = async || {
        let mut clear = Vec::new();
        for kind in ["instance", "server"] {
            let records = raw
                .list_all(&Query::all(Kind::new(kind).unwrap()))
                .await
                .unwrap();
            let text = format!(
                "{:?}",
                records
                    .records
                    .iter()
                    .map(|record| &record.value)
                    .collect::<Vec<_>>()
            );
            let found = |trace: &Vec<u8>| {
                text.as_bytes()
                    .windows(trace.len())
                    .any(|part| part == trace)
            };
            clear.push(traces().iter().any(found));
        }
        clear
    };
    assert_eq!(in_clear().await, [true, true], "the test would find it");
    assert_eq!(
        facade.read(id).await.instance.spec.user_data,
        script(NEEDLE)
    );
    let alice = project_user(tenant(1, 1));
    facade
        .during(async {
            facade.instances.stop(&alice, id).await.unwrap();
            facade.until(id, stopped).await;
        })
        .await;
    assert_eq!(in_clear().await, [false, false]);
    assert_eq!(
        facade.read(id).await.instance.spec.user_data,
        script(NEEDLE)
    );
}

#[tokio::test(start_paused = true)]
async fn sealed_specs_are_compared_by_their_content() {
    let facade = TestFacade::new().await;
    let id = running_with_user_data(&facade).await;
    let alice = project_user(tenant(1, 1));
    let view = facade.instances.read(&alice, id).await.unwrap();
    let same = UpdateInstance::of(&view.instance);
    let (after, plan) = facade.instances.update(&alice, id, &same).await.unwrap();
    assert_eq!((after.revision, plan.methods.len()), (view.revision, 0));
    let mut other = same.clone();
    other.spec.user_data = script(SECOND);
    let plan = facade.instances.plan_update(&alice, id, &other).await;
    assert_eq!(plan.unwrap().methods.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn user_data_is_refused_without_a_keyring() {
    let cloud = Arc::new(MemoryCloud::new().provisioner());
    let raw = memory_store();
    let facade = Facade::builder()
        .store(raw.clone())
        .catalog(CATALOG)
        .region(cloud, MAPPING)
        .without_server_keys()
        .build()
        .await
        .unwrap();
    let helper = TestFacade::builder().store(raw.clone()).build().await;
    let network = helper.network("net").await;
    let alice = project_user(tenant(1, 1));
    let mut new = new_instance(network, "web");
    new.spec.user_data = script(NEEDLE);
    let error = facade.instances.create(&alice, &new).await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::Unprocessable);
    let message = error_chain(&error);
    assert!(
        message.starts_with("spec.userData: ") && message.contains("keyring"),
        "{message}"
    );
    new.spec.user_data = None;
    let id = facade
        .instances
        .create(&alice, &new)
        .await
        .unwrap()
        .instance
        .id;
    let mut wanted = UpdateInstance::of(&new_instance_record(&facade, id).await);
    wanted.spec.user_data = script(NEEDLE);
    let error = facade.instances.update(&alice, id, &wanted).await;
    assert_eq!(error.unwrap_err().meaning(), Meaning::Unprocessable);
    assert_sealed(&raw, "without a keyring").await;
}

async fn new_instance_record(facade: &Facade, id: InstanceId) -> Instance {
    facade
        .instances
        .read(&operator(), id)
        .await
        .unwrap()
        .instance
}
