//! CreateImage, and launching from the new image.

use super::{Fixture, LAUNCH, all};
use crate::cloud::CloudEngine as _;

#[test]
fn image_is_pending_then_can_be_launched() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running(
        "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=12",
    );
    let make = format!(
        "CreateImage&InstanceId={id}&Name=golden&NoReboot=true&TagSpecification.1.ResourceType=image\
         &TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b"
    );
    assert_eq!(
        fixture.refusal_code(&format!("{make}&DryRun=true")),
        "DryRunOperation"
    );
    let image = all(&fixture.ok(&make), "imageId").remove(0);
    let one = format!("DescribeImages&ImageId.1={image}");
    assert_eq!(all(&fixture.ok(&one), "imageState"), ["pending"]);
    let launch =
        format!("RunInstances&ImageId={image}&InstanceType=t3.micro&MinCount=1&MaxCount=1");
    assert_eq!(fixture.refusal_code(&launch), "InvalidAMIID.Unavailable");
    fixture.advance(100);
    let response = fixture.ok(&one);
    assert_eq!(all(&response, "imageState"), ["available"]);
    assert_eq!(all(&response, "volumeSize"), ["12"]);
    assert_eq!(all(&response, "key"), ["a"]);
    assert_eq!(
        all(&fixture.ok("DescribeImages&Owner.1=self"), "imageId"),
        [image.as_str()]
    );
    assert_eq!(all(&fixture.ok(&launch), "imageId"), [image]);
}

#[test]
fn invalid_image_is_refused() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    fixture.ok(&format!("CreateImage&InstanceId={id}&Name=golden"));
    let ended = fixture.launch_running("");
    fixture.ok(&format!("TerminateInstances&InstanceId.1={ended}"));
    for (call, code) in [
        (
            format!("CreateImage&InstanceId={id}&Name=golden"),
            "InvalidAMIName.Duplicate",
        ),
        (
            format!("CreateImage&InstanceId={id}&Name=x"),
            "InvalidAMIName.Malformed",
        ),
        (
            format!("CreateImage&InstanceId={id}&Name=what%3F"),
            "InvalidAMIName.Malformed",
        ),
        (format!("CreateImage&InstanceId={id}"), "MissingParameter"),
        (
            format!("CreateImage&InstanceId={ended}&Name=late"),
            "IncorrectInstanceState",
        ),
        (
            "CreateImage&InstanceId=i-00000000000000bad&Name=none".to_owned(),
            "InvalidInstanceID.NotFound",
        ),
    ] {
        assert_eq!(fixture.refusal_code(&call), code, "{call}");
    }
}

#[test]
fn catalog_images_follow_the_knobs() {
    let mut fixture = Fixture::new();
    let mut knobs = fixture.engine.core.knobs.clone();
    knobs.images[0].id = "ami-0000000a".to_owned();
    fixture.engine.set_knobs(knobs);
    assert_eq!(
        fixture.refusal_code(&format!("{LAUNCH}&MinCount=1&MaxCount=1")),
        "InvalidAMIID.NotFound"
    );
    fixture.ok("RunInstances&ImageId=ami-0000000a&MinCount=1&MaxCount=1");
}

/// Creates an image that is available. Returns its id and its snapshot's.
fn image_of(fixture: &mut Fixture, instance: &str, name: &str) -> (String, String) {
    let make = format!(
        "CreateImage&InstanceId={instance}&Name={name}&TagSpecification.1.ResourceType=snapshot\
         &TagSpecification.1.Tag.1.Key=part&TagSpecification.1.Tag.1.Value={name}"
    );
    let image = all(&fixture.ok(&make), "imageId").remove(0);
    fixture.advance(100);
    let response = fixture.ok(&format!("DescribeImages&ImageId.1={image}"));
    (image, all(&response, "snapshotId").remove(0))
}

#[test]
fn deregistered_image_leaves_its_snapshot() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let (image, snapshot) = image_of(&mut fixture, &id, "golden");
    let delete = format!("DeleteSnapshot&SnapshotId={snapshot}");
    assert_eq!(fixture.refusal_code(&delete), "InvalidSnapshot.InUse");
    let deregister = format!("DeregisterImage&ImageId={image}");
    assert_eq!(
        fixture.refusal_code(&format!("{deregister}&DryRun=true")),
        "DryRunOperation"
    );
    fixture.ok(&deregister);
    assert_eq!(
        fixture.refusal_code(&deregister),
        "InvalidAMIID.Unavailable"
    );
    let launch =
        format!("RunInstances&ImageId={image}&InstanceType=t3.micro&MinCount=1&MaxCount=1");
    assert_eq!(fixture.refusal_code(&launch), "InvalidAMIID.NotFound");
    let one = format!("DescribeImages&ImageId.1={image}");
    assert_eq!(fixture.refusal_code(&one), "InvalidAMIID.NotFound");
    // The name is free, and the snapshot is found by its tags.
    fixture.ok(&format!("CreateImage&InstanceId={id}&Name=golden"));
    let tag = format!("CreateTags&ResourceId.1={snapshot}&Tag.1.Key=image&Tag.1.Value={image}");
    fixture.ok(&tag);
    let tagged =
        format!("DescribeSnapshots&Owner.1=self&Filter.1.Name=tag:image&Filter.1.Value.1={image}");
    let response = fixture.ok(&tagged);
    assert_eq!(all(&response, "snapshotId"), [snapshot.as_str()]);
    assert_eq!(all(&response, "status"), ["completed"]);
    assert_eq!(
        all(&response, "description"),
        [format!("Created by CreateImage({id}) for {image}")]
    );
    assert_eq!(all(&response, "key"), ["image", "part"]);
    fixture.ok(&delete);
    assert_eq!(fixture.refusal_code(&delete), "InvalidSnapshot.NotFound");
    assert!(all(&fixture.ok(&tagged), "snapshotId").is_empty());
}

#[test]
fn deregistration_can_delete_the_snapshot_too() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let (image, snapshot) = image_of(&mut fixture, &id, "golden");
    let deregister = format!("DeregisterImage&ImageId={image}&DeleteAssociatedSnapshots=true");
    let response = fixture.ok(&deregister);
    assert_eq!(all(&response, "snapshotId"), [snapshot.as_str()]);
    assert_eq!(all(&response, "returnCode"), ["success"]);
    let one = format!("DescribeSnapshots&SnapshotId.1={snapshot}");
    assert_eq!(fixture.refusal_code(&one), "InvalidSnapshot.NotFound");
}

#[test]
fn images_and_snapshots_of_others_are_refused() {
    let mut fixture = Fixture::new();
    for (call, code) in [
        (
            "DeregisterImage&ImageId=ami-00000000000000001",
            "AuthFailure",
        ),
        (
            "DeregisterImage&ImageId=ami-00000000000000bad",
            "InvalidAMIID.NotFound",
        ),
        ("DeregisterImage&ImageId=linux", "InvalidAMIID.Malformed"),
        ("DeregisterImage", "MissingParameter"),
        ("DeleteSnapshot", "MissingParameter"),
        (
            "DeleteSnapshot&SnapshotId=snap-00000000000000bad",
            "InvalidSnapshot.NotFound",
        ),
        (
            "DeleteSnapshot&SnapshotId=disk",
            "InvalidSnapshotID.Malformed",
        ),
        (
            "DescribeSnapshots&SnapshotId.1=snap-00000000000000bad",
            "InvalidSnapshot.NotFound",
        ),
        (
            "CreateTags&ResourceId.1=snap-00000000000000bad&Tag.1.Key=a",
            "InvalidSnapshot.NotFound",
        ),
    ] {
        assert_eq!(fixture.refusal_code(call), code, "{call}");
    }
}

#[test]
fn stale_read_shows_images_as_they_were() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    fixture.advance(60_000);
    let mut knobs = fixture.engine.core.knobs.clone();
    knobs.lag.reads = std::time::Duration::from_secs(1);
    fixture.engine.set_knobs(knobs);
    let image = all(
        &fixture.ok(&format!("CreateImage&InstanceId={id}&Name=golden")),
        "imageId",
    )
    .remove(0);
    let one = format!("DescribeImages&ImageId.1={image}");
    let shown = |fixture: &mut Fixture| {
        let reads = (0..200).map(|_| fixture.call(&one).is_ok());
        let shown = reads.filter(|shown| *shown).count();
        (shown > 0, shown < 200)
    };
    fixture.advance(500);
    assert_eq!(shown(&mut fixture), (true, true));
    fixture.advance(1_000);
    assert_eq!(shown(&mut fixture), (true, false));
    fixture.ok(&format!("DeregisterImage&ImageId={image}"));
    fixture.advance(500);
    assert_eq!(shown(&mut fixture), (true, true));
    fixture.advance(1_000);
    assert_eq!(shown(&mut fixture), (false, true));
    // The catalog is always shown.
    fixture.ok("DescribeImages&ImageId.1=ami-00000000000000001");
}
