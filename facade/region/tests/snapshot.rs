//! Snapshots of servers: requests, creation and launches.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_facade_testkit::{
    SNAPSHOT_NAME, TestFacade, flavor, image, memory_store, new_snapshot, operator, server_id,
    server_user,
    stores::{InterceptedStore, RandomDelays},
    tenant,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, Rule, WireCall};
use fleetwright_region::{
    catalog::{Image, ImageState, Origin, Visibility},
    machine::MachineError,
    name::Name,
    server::{Consent, Phase, Power},
    snapshot::{MAX_DESCRIPTION_CHARS, native_name},
    tags::is_reserved,
};
use fleetwright_store::Store;

fn native(image: &Image) -> Option<fleetwright::ImageId> {
    match &image.origin {
        Origin::File => None,
        Origin::Snapshot { native, .. } => native.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn snapshot_can_be_launched_by_another_server() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let machine = facade.running_server().await.server.machine.unwrap().id;
    let principal = operator();
    let requested = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    let requested = requested.unwrap();
    assert_eq!(requested.state, ImageState::Pending);
    assert_eq!(
        cloud.oracle().images().len(),
        0,
        "nothing waits for a cloud"
    );
    let (organization, project) = tenant(1, 1);
    assert_eq!(
        requested.visibility,
        Visibility::Project(organization, project)
    );
    assert_eq!(requested.description.as_deref(), Some("before the upgrade"));
    let source = facade.catalog.image(&principal, &image("debian")).unwrap();
    assert_eq!(
        (requested.architecture, requested.os.clone()),
        (source.architecture, source.os)
    );
    assert_eq!(requested.virtualization, source.virtualization);
    let disk = facade
        .catalog
        .flavor(&principal, &flavor("small"))
        .unwrap()
        .disk;
    assert_eq!(
        requested.size, disk,
        "its disk does not fit on a smaller one"
    );

    let work = async {
        let ready = facade.until_snapshot(ImageState::Ready).await;
        let created = cloud.oracle().images();
        assert_eq!(created.len(), 1);
        assert_eq!(
            (&created[0].name, &created[0].source),
            (&native_name(&ready.id), &machine)
        );
        assert_eq!(native(&ready), Some(created[0].id.clone()));
        assert_eq!(created[0].tags, ready.tags);
        let tags: Vec<_> = ready.tags.iter().collect();
        let server = server_id(1).to_string();
        let expected = [
            ("fleetwright-image", ready.id.as_str()),
            ("fleetwright-region", "north"),
            ("fleetwright-server", server.as_str()),
            ("fleetwright-source-image", "debian"),
            ("team", "blue"),
        ];
        assert_eq!(tags, expected);

        let alice = server_user(tenant(1, 1));
        let mut spec = facade.read_server().await.server.spec;
        spec.image = ready.id.clone();
        facade.ensure(&alice, 2, &spec).await.unwrap();
        let twin = loop {
            let view = facade.servers.read(&alice, server_id(2)).await.unwrap();
            if view.phase == Phase::Running {
                break view.server.machine.unwrap().id;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let twin = cloud.oracle().instance(&twin).unwrap();
        assert_eq!(twin.info.image, Some(created[0].id.clone()));
    };
    tokio::select! {
        biased;
        () = facade.during_region(work) => {}
        () = facade.region().snapshots.run() => panic!("it runs until it is dropped"),
    }
    assert_eq!(cloud.oracle().call_count(WireCall::Snapshot), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_snapshot_returns_the_image_and_a_different_one_is_refused() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    let first = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    let again = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    assert_eq!(first.unwrap(), again.unwrap());
    facade.region().snapshots.pass().await.unwrap();
    let servers = &facade.servers;
    facade
        .during_region(async {
            let stop = servers.set_power(&principal, server_id(1), Power::Stopped);
            stop.await.unwrap();
            facade.until_server(Phase::Stopped).await;
            servers
                .request_replace(&principal, server_id(1))
                .await
                .unwrap();
            facade.until_server(Phase::Replacing).await;
        })
        .await;
    let late = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    assert_eq!(
        late.unwrap().state,
        ImageState::Ready,
        "whatever became of its machine"
    );
    let mut others = vec![new_snapshot(), new_snapshot()];
    others[0].description = None;
    others[1].tags.insert("team".to_owned(), "red".to_owned());
    for other in others {
        let taken = facade
            .machines
            .snapshot(&principal, server_id(1), &other)
            .await;
        let taken = taken.unwrap_err();
        assert!(
            matches!(taken, MachineError::ImageNameTaken(name) if name.as_str() == SNAPSHOT_NAME)
        );
    }
    let mut same = new_snapshot();
    same.tags
        .insert("FLEETWRIGHT:else".to_owned(), "forged".to_owned());
    let same = facade
        .machines
        .snapshot(&principal, server_id(1), &same)
        .await;
    assert_eq!(
        same.unwrap().state,
        ImageState::Ready,
        "a field that is left out is not compared"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_snapshot_is_refused_before_anything_is_written() {
    let facade = TestFacade::on(&MemoryCloud::new()).await;
    facade.running_server().await;
    let limits = facade.region().provisioner.capabilities().tags.clone();
    let mut requests = vec![
        new_snapshot(),
        new_snapshot(),
        new_snapshot(),
        new_snapshot(),
    ];
    requests[0].tags.insert(String::new(), "x".to_owned());
    requests[1]
        .tags
        .insert("k".repeat(limits.max_key_chars + 1), "x".to_owned());
    let many = (0..limits.max_tags).map(|number| (format!("k{number}"), String::new()));
    requests[2].tags.extend(many);
    requests[3].description = Some("é".repeat(MAX_DESCRIPTION_CHARS + 1));
    for new in requests {
        let refused = facade
            .machines
            .snapshot(&operator(), server_id(1), &new)
            .await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(
                refused,
                MachineError::Tags(_) | MachineError::DescriptionTooLong { .. }
            ),
            "{refused:?}"
        );
    }
    let mut fits = new_snapshot();
    fits.description = Some("é".repeat(MAX_DESCRIPTION_CHARS));
    let created = facade
        .machines
        .snapshot(&operator(), server_id(1), &fits)
        .await;
    assert!(
        created
            .unwrap()
            .tags
            .iter()
            .any(|(key, _)| is_reserved(key))
    );
    assert_eq!(
        facade.count("image").await,
        6,
        "those of the file, and the new one"
    );
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_and_two_controllers_create_one_image() {
    for seed in 0..20 {
        let cloud = MemoryCloud::builder()
            .latency(Duration::from_millis(20))
            .build();
        let facade = TestFacade::on(&cloud).await;
        facade.running_server().await;
        let slow: Arc<dyn Store> =
            InterceptedStore::new(facade.store.clone(), RandomDelays::new(seed));
        let (machines, one) = facade
            .machines_over(slow.clone(), facade.region().provisioner.clone())
            .await;
        let (_, other) = facade
            .machines_over(slow, Arc::new(cloud.provisioner()))
            .await;
        let (principal, new) = (operator(), new_snapshot());
        let work = async {
            let requests = (0..50).map(|_| machines.snapshot(&principal, server_id(1), &new));
            let results = futures_util::future::join_all(requests).await;
            let ids: BTreeSet<_> = results.into_iter().map(|image| image.unwrap().id).collect();
            assert_eq!(ids.len(), 1);
            facade.until_snapshot(ImageState::Ready).await;
        };
        tokio::select! {
            biased;
            () = work => {}
            () = one.run() => panic!("it runs until it is dropped"),
            () = other.run() => panic!("it runs until it is dropped"),
        }
        assert_eq!(cloud.oracle().images().len(), 1);
        assert_eq!(facade.count("image").await, 6);
    }
}

/// Records of the version before snapshots existed.
#[tokio::test]
async fn record_of_an_older_version_can_be_read() {
    let store = memory_store();
    let old = serde_json::json!({
        "id": "old", "name": "old", "architecture": "x86_64", "size": 1_073_741_824_u64,
        "virtualization": "any", "state": "pending", "visibility": "global", "retired": false,
        "os": { "kernel": "linux", "family": "debian", "distro": "debian", "version": "13" },
        "origin": { "snapshot": { "region": "north", "native": null } },
    });
    let id = fleetwright_store::RecordId::new("image", "old").unwrap();
    let put = fleetwright_store::Transaction::new().create(id, old);
    store.commit(&put).await.unwrap();
    let cloud = MemoryCloud::new();
    let facade = TestFacade::builder()
        .store(store)
        .provisioner(Arc::new(cloud.provisioner()))
        .build()
        .await;
    let found = facade.catalog.image(&operator(), &image("old")).unwrap();
    assert_eq!((found.description, found.snapshot), (None, None));
    facade.region().snapshots.pass().await.unwrap();
    assert_eq!(
        cloud.oracle().total_calls(),
        0,
        "the record does not say of which machine it is"
    );
}

#[tokio::test(start_paused = true)]
async fn disk_with_an_unconfirmed_change_is_not_copied() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let principal = operator();
    cloud
        .faults()
        .add(Rule::nth(WireCall::Reimage, 1, Fault::Lost(When::Before)));
    let mut spec = facade.read_server().await.server.spec;
    spec.image = image("rocky");
    let servers = &facade.servers;
    let requested = servers.set_spec(&principal, server_id(1), &spec, Consent::Destroy);
    requested.await.unwrap();
    let mut early = new_snapshot();
    early.name = Name::new("early").unwrap();
    let created = facade
        .machines
        .snapshot(&principal, server_id(1), &early)
        .await;
    let source = created.unwrap().snapshot.unwrap().source;
    assert_eq!(source, image("debian"), "nothing was changed yet");
    facade
        .region()
        .controller
        .reconcile(server_id(1))
        .await
        .unwrap();
    let result = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    let doubt = result.unwrap_err();
    assert!(
        matches!(
            doubt,
            MachineError::NotReady {
                found: "being given another image",
                ..
            }
        ),
        "{doubt:?}"
    );
    facade
        .during_region(facade.until_server(Phase::Running))
        .await;
    let created = facade
        .machines
        .snapshot(&principal, server_id(1), &new_snapshot())
        .await;
    let source = created.unwrap().snapshot.unwrap().source;
    assert_eq!(
        source,
        image("rocky"),
        "what the machine was booted from last"
    );
}
