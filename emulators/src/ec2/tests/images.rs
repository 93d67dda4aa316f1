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
