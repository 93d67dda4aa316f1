//! Deleting images: what exists afterwards, what is refused, and what faults change.

use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceProvisioner as _, OptionalVerb, RetryAdvice,
    SnapshotRequest,
};
use fleetwright_memory::{Fault, MemoryCloud, MemoryProvisioner, Phase, Rule, WireCall};

use crate::support::{brisk, open, pass, plain, running, seconds, truth};

/// Creates an image of a new instance.
async fn image(provisioner: &MemoryProvisioner, name: &str) -> ImageId {
    let id = running(provisioner).await.id;
    let request = SnapshotRequest::new(name).unwrap();
    provisioner.snapshot_image(&id, &request).await.unwrap()
}

fn image_ids(cloud: &MemoryCloud) -> Vec<ImageId> {
    let images = cloud.oracle().images().into_iter();
    images.map(|image| image.id).collect()
}

#[tokio::test(start_paused = true)]
async fn deleted_image_cannot_be_launched_and_its_instances_keep_running() {
    for offered in [None, Some("image-1")] {
        let builder = match offered {
            Some(name) => brisk().offer_image(ImageId::new(name).unwrap()),
            None => brisk(),
        };
        let (cloud, provisioner) = open(builder);
        let (gone, kept) = (
            image(&provisioner, "gone").await,
            image(&provisioner, "kept").await,
        );
        let mut config = plain();
        config.image = gone.clone();
        let copy = provisioner.launch_instance(&config).await.unwrap();
        pass(seconds(1)).await;
        let before = truth(&cloud, &copy.id);
        for _ in 0..2 {
            provisioner.delete_image(&gone).await.unwrap();
            assert_eq!(image_ids(&cloud), std::slice::from_ref(&kept));
        }
        assert_eq!(truth(&cloud, &copy.id).info, before.info);
        let error = provisioner.launch_instance(&config).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Invalid, Effect::None)
        );
        let expected = offered.unwrap_or("the images that were not deleted");
        assert!(error.message().contains(expected), "{error}");
        // The name is free, and the new image has another id.
        let request = SnapshotRequest::new("gone").unwrap();
        let again = provisioner.snapshot_image(&copy.id, &request).await;
        assert_ne!(again.unwrap(), gone);
    }
}

#[tokio::test(start_paused = true)]
async fn launch_from_a_snapshot_has_the_disk_of_its_source() {
    let (cloud, provisioner) = open(brisk());
    let mut config = plain();
    config.disk_size_gb = std::num::NonZeroU32::new(44);
    let source = provisioner.launch_instance(&config).await.unwrap().id;
    pass(seconds(1)).await;
    let request = SnapshotRequest::new("large").unwrap();
    config.image = provisioner.snapshot_image(&source, &request).await.unwrap();
    for (requested, expected) in [(None, 44), (Some(55), 55)] {
        config.disk_size_gb = requested.and_then(std::num::NonZeroU32::new);
        let copy = provisioner.launch_instance(&config).await.unwrap().id;
        let disk = truth(&cloud, &copy).disk.unwrap();
        assert_eq!(disk.size_gb.get(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn image_that_no_snapshot_created_is_not_deleted() {
    let base = ImageId::new("image-1").unwrap();
    for builder in [brisk(), brisk().offer_image(base.clone())] {
        let (_, provisioner) = open(builder);
        let error = provisioner.delete_image(&base).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::Conflict, Effect::None, RetryAdvice::Never)
        );
        assert!(
            error
                .message()
                .contains("no snapshot of an instance created the image image-1"),
            "{error}"
        );
        provisioner.launch_instance(&plain()).await.unwrap();
    }
    let (_, provisioner) = open(brisk().offer_image(base));
    let unknown = ImageId::new("img-unknown").unwrap();
    provisioner.delete_image(&unknown).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn deletion_can_be_repeated_after_every_fault() {
    let faults = [
        (Fault::Lost(Phase::Before), true),
        (Fault::Lost(Phase::After), false),
        (Fault::ServerError(Phase::Before), true),
        (Fault::ServerError(Phase::After), false),
        (Fault::Malformed, false),
    ];
    for (fault, remains) in faults {
        let (cloud, provisioner) = open(brisk());
        let image = image(&provisioner, "swept").await;
        let rule = Rule::nth(WireCall::DeleteImage, 1, fault.clone());
        cloud.faults().add(rule);
        let error = provisioner.delete_image(&image).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{fault:?}: {error}");
        assert_eq!(image_ids(&cloud).len(), usize::from(remains), "{fault:?}");
        provisioner.delete_image(&image).await.unwrap();
        assert_eq!(image_ids(&cloud), []);
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_deletion_is_refused_without_a_call() {
    let (cloud, provisioner) = open(brisk().without_verb(OptionalVerb::DeleteImage));
    let image = image(&provisioner, "kept").await;
    let calls = cloud.oracle().total_calls();
    let error = provisioner.delete_image(&image).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(cloud.oracle().total_calls(), calls);
    assert_eq!(image_ids(&cloud), [image]);
}
