//! Deleting snapshots: at the cloud once nothing uses them, then the record with its quota. At least what exists is charged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright::{Call, Operation, OptionalVerb, ProvisionError};
use fleetwright_facade_testkit::{
    TestFacade, new_snapshot, operator,
    principals::project_reader,
    project_user, server_id, server_user,
    stores::{Applied, RacingStore},
    tenant,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, WireCall};
use fleetwright_region::{
    catalog::{Image, ImageError, ImageState},
    machine::MachineError,
    server::Phase as ServerPhase,
    snapshot::{ImageDeleter, Snapshots},
};
use fleetwright_store::Store;

/// Records what it deleted, after its number of failures.
#[derive(Debug, Default)]
struct Deleter {
    failures: Mutex<u32>,
    deleted: Mutex<BTreeSet<String>>,
}

#[async_trait::async_trait]
impl ImageDeleter for Deleter {
    async fn delete_image(&self, image: &fleetwright::ImageId) -> Result<(), ProvisionError> {
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            let call = Call::new("test", Operation::DeleteImage);
            return Err(call.throttled(Duration::from_secs(3)));
        }
        self.deleted.lock().unwrap().insert(image.to_string());
        Ok(())
    }
}

impl Deleter {
    fn failing(times: u32) -> Arc<Self> {
        let failures = Mutex::new(times);
        Arc::new(Self {
            failures,
            deleted: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.deleted.lock().unwrap().len()
    }
}

/// A façade with a ready image of server 1.
async fn with_image(cloud: &MemoryCloud) -> (TestFacade, Image) {
    let facade = TestFacade::builder()
        .cloud(cloud)
        .record_quota(1)
        .build()
        .await;
    facade.running_server().await;
    let requested = facade
        .machines
        .snapshot(&operator(), server_id(1), &new_snapshot())
        .await;
    requested.unwrap();
    facade.region().snapshots.pass().await.unwrap();
    let image = facade.snapshot_image().await;
    assert_eq!(image.state, ImageState::Ready);
    (facade, image)
}

/// The snapshots of a façade, whose native images this deleter deletes.
fn with_deleter(facade: &TestFacade, deleter: &Arc<Deleter>) -> Snapshots {
    let snapshots = facade.region().snapshots.clone();
    snapshots.with_deleter(deleter.clone())
}

/// How many native images are deleted, and how many images are charged.
async fn deleted_and_charged(facade: &TestFacade, deleter: &Deleter) -> (usize, usize) {
    (deleter.count(), facade.count_allocations("image").await)
}

/// Requests the deletion of an image as a user of its project.
async fn request_deletion(facade: &TestFacade, image: &Image) -> Image {
    let alice = project_user(tenant(1, 1));
    let deleting = facade.catalog.delete_image(&alice, &image.id).await;
    deleting.unwrap()
}

/// Lets the controller work until nothing is left to do at once, for some time.
async fn work(snapshots: &Snapshots) {
    let _ = tokio::time::timeout(Duration::from_secs(3600), snapshots.run()).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_image_disappears_at_the_cloud_and_its_quota_and_name_are_free() {
    let cloud = MemoryCloud::new();
    let (facade, image) = with_image(&cloud).await;
    let mut second = new_snapshot();
    second.name = "second".parse().unwrap();
    let full = facade
        .machines
        .snapshot(&operator(), server_id(1), &second)
        .await;
    assert!(matches!(full, Err(MachineError::Ledger(_))), "{full:?}");
    for _ in 0..2 {
        let deleting = request_deletion(&facade, &image).await;
        assert_eq!(deleting.state, ImageState::Deleting);
        assert!(deleting.check_offered().is_err());
    }
    assert_eq!(
        facade.count_allocations("image").await,
        1,
        "it still exists"
    );
    let deleter = Deleter::failing(3);
    let snapshots = with_deleter(&facade, &deleter);
    work(&snapshots).await;
    assert_eq!(deleter.count(), 1);
    assert_eq!(facade.count_allocations("image").await, 0);
    assert_eq!(facade.catalog.image(&operator(), &image.id), None);
    // The name is free, and another image has another id.
    let again = facade
        .machines
        .snapshot(&operator(), server_id(1), &new_snapshot())
        .await;
    assert_ne!(again.unwrap().id, image.id);
}

#[tokio::test(start_paused = true)]
async fn provisioner_deletes_the_image_if_it_declares_that_call() {
    let cloud = MemoryCloud::new();
    let (facade, image) = with_image(&cloud).await;
    assert_eq!(cloud.oracle().images().len(), 1);
    let deleting = request_deletion(&facade, &image).await;
    assert_eq!(deleting.state, ImageState::Deleting);
    // The response to the first deletion is lost, and the second one fails.
    for (nth, phase) in [(1, Phase::After), (2, Phase::Before)] {
        let lost = Fault::Lost(phase);
        cloud
            .faults()
            .add(Rule::nth(WireCall::DeleteImage, nth, lost));
    }
    work(&facade.region().snapshots).await;
    assert_eq!(cloud.oracle().call_count(WireCall::DeleteImage), 3);
    assert_eq!(cloud.oracle().images().len(), 0);
    assert_eq!(facade.count_allocations("image").await, 0);
    assert_eq!(facade.catalog.image(&operator(), &image.id), None);
}

#[tokio::test(start_paused = true)]
async fn image_in_use_is_deleted_when_its_last_server_is_gone() {
    let cloud = MemoryCloud::new();
    let (facade, image) = with_image(&cloud).await;
    let alice = server_user(tenant(1, 1));
    let mut spec = facade.read_server().await.server.spec;
    spec.image = image.id.clone();
    facade.ensure(&alice, 2, &spec).await.unwrap();
    request_deletion(&facade, &image).await;
    let deleter = Deleter::failing(0);
    let snapshots = with_deleter(&facade, &deleter);
    work(&snapshots).await;
    assert_eq!(deleted_and_charged(&facade, &deleter).await, (0, 1));
    // Its server can even be launched.
    facade
        .during_region(async {
            while facade
                .servers
                .read(&alice, server_id(2))
                .await
                .unwrap()
                .phase
                != ServerPhase::Running
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            facade.servers.delete(&alice, server_id(2)).await.unwrap();
            while facade.servers.read(&alice, server_id(2)).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
    work(&snapshots).await;
    assert_eq!(deleted_and_charged(&facade, &deleter).await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn only_members_of_the_project_delete_its_images() {
    let cloud = MemoryCloud::new();
    let (facade, image) = with_image(&cloud).await;
    let reader = project_reader(tenant(1, 1));
    let refused = facade.catalog.delete_image(&reader, &image.id).await;
    assert!(
        matches!(refused, Err(ImageError::Refused(_))),
        "{refused:?}"
    );
    for stranger in [project_user(tenant(1, 2)), project_user(tenant(2, 1))] {
        let error = facade
            .catalog
            .delete_image(&stranger, &image.id)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), format!("there is no image {}", image.id));
    }
    assert_eq!(facade.snapshot_image().await, image);
}

#[tokio::test(start_paused = true)]
async fn image_that_is_being_created_is_not_deleted_and_without_deleter_it_stays_charged() {
    let cloud = MemoryCloud::builder()
        .without_verb(OptionalVerb::DeleteImage)
        .build();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let requested = facade
        .machines
        .snapshot(&operator(), server_id(1), &new_snapshot())
        .await;
    let id = requested.unwrap().id;
    let alice = project_user(tenant(1, 1));
    let early = facade.catalog.delete_image(&alice, &id).await.unwrap_err();
    assert_eq!(
        early.to_string(),
        format!("image {id} is pending: it cannot become deleting")
    );
    facade.region().snapshots.pass().await.unwrap();
    facade.catalog.delete_image(&alice, &id).await.unwrap();
    work(&facade.region().snapshots).await;
    let kept = facade.catalog.image(&operator(), &id).unwrap();
    assert_eq!(kept.state, ImageState::Deleting);
    assert_eq!(facade.count_allocations("image").await, 1);
}

/// The controller dies at every call of the store: an image that exists is charged, and at the end nothing is left.
#[tokio::test(start_paused = true)]
async fn crash_while_deleting_never_releases_what_exists() {
    let mut call = 1;
    loop {
        let mut reached = false;
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let (facade, image) = with_image(&cloud).await;
            request_deletion(&facade, &image).await;
            let deleter = Deleter::failing(1);
            let store = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
            let dying = facade.reopen(Arc::clone(&store) as Arc<dyn Store>).await;
            work(&with_deleter(&dying, &deleter)).await;
            reached |= store.is_dead();
            let charged = facade.count_allocations("image").await;
            assert!(
                charged == 1 || deleter.count() == 1,
                "released before it was deleted"
            );
            work(&with_deleter(&facade, &deleter)).await;
            assert_eq!(deleted_and_charged(&facade, &deleter).await, (1, 0));
            assert!(facade.find_snapshot_image().await.is_none());
            assert_eq!(facade.count("image").await, 5, "those of the file");
        }
        if !reached {
            assert!(call > 4, "{call}: fewer than four calls");
            return;
        }
        call += 1;
    }
}
