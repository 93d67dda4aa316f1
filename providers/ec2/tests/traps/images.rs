//! Deleting images.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, ImageId, InstanceProvisioner as _, RetryAdvice,
    SnapshotRequest, Tags,
};
use fleetwright_emulators::{
    Fault, FaultRule, Phase,
    ec2::{Action, Knobs},
};

use crate::{emulated::Ec2Harness, wait_for_state};

/// Creates an image with as many tags as a caller may set. It is available if `available`.
async fn image(harness: &Ec2Harness, available: bool) -> ImageId {
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    let mut request = SnapshotRequest::new("golden").unwrap();
    request.tags = (0..49).fold(Tags::new(), |tags, number| {
        tags.with(format!("tag-{number}"), "x").unwrap()
    });
    let image = ec2.snapshot_image(&id, &request).await.unwrap();
    if available {
        let hour = std::time::Duration::from_secs(3600);
        harness.emulator().advance(hour);
    }
    image
}

/// Returns how many images of instances and snapshots there are.
fn left(harness: &Ec2Harness) -> (usize, usize) {
    let oracle = harness.emulator().oracle();
    let images = oracle.images.iter().filter(|image| image.source.is_some());
    (images.count(), oracle.snapshots.len())
}

#[tokio::test]
async fn trap_60_snapshots_of_a_deregistered_image_are_found_again() {
    for (action, effect) in [
        (Action::CreateTags, (1, 1)),
        (Action::DeregisterImage, (0, 1)),
        (Action::DeleteSnapshot, (0, 0)),
    ] {
        let harness = Ec2Harness::with_knobs(|_| {});
        let image = image(&harness, true).await;
        let lost = Fault::Lost {
            phase: Phase::After,
        };
        harness
            .emulator()
            .add_fault(FaultRule::nth(action, 1, lost));
        let error = harness.open().await.delete_image(&image).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{error}");
        assert_eq!(left(&harness), effect, "{action:?}");
        harness.open().await.delete_image(&image).await.unwrap();
        assert_eq!(left(&harness), (0, 0), "{action:?}");
    }
}

#[tokio::test]
async fn trap_60_snapshot_that_another_image_uses_is_kept() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let image = image(&harness, true).await;
    let in_use = Fault::Refused {
        status: 400,
        code: "InvalidSnapshot.InUse".to_owned(),
        message: "The snapshot is currently in use".to_owned(),
    };
    let rule = FaultRule::nth(Action::DeleteSnapshot, 1, in_use);
    harness.emulator().add_fault(rule);
    // No image uses it, so EC2 has not noticed yet that the image is gone.
    let ec2 = harness.open().await;
    let error = ec2.delete_image(&image).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Conflict, Effect::Unknown)
    );
    assert!(error.retry().delay().is_some(), "{error}");
    ec2.delete_image(&image).await.unwrap();
    assert_eq!(left(&harness), (0, 0));
}

#[tokio::test]
async fn trap_60_image_is_not_deleted_while_it_is_created() {
    let slow = |knobs: &mut Knobs| knobs.timing.image = std::time::Duration::from_secs(60);
    let harness = Ec2Harness::with_knobs(slow);
    let image = image(&harness, false).await;
    let ec2 = harness.open().await;
    let error = ec2.delete_image(&image).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Conflict, Effect::None)
    );
    assert!(error.retry().delay().is_some(), "{error}");
    assert_eq!(left(&harness), (1, 1));
    // Nor is an image without the tag.
    let base = harness.config().image;
    let error = ec2.delete_image(&base).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::Conflict, RetryAdvice::Never)
    );
    assert_eq!(harness.call_count("DeregisterImage"), 0);
}
