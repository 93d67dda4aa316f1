//! CreateImage, and launching from what it made.

use super::{LAUNCH, Lab, all};
use crate::cloud::CloudEngine as _;

#[test]
fn an_image_is_pending_then_can_be_launched() {
    let mut lab = Lab::new();
    let id = lab.running(
        "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=12",
    );
    let make = format!(
        "CreateImage&InstanceId={id}&Name=golden&NoReboot=true&TagSpecification.1.ResourceType=image\
         &TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b"
    );
    assert_eq!(lab.code(&format!("{make}&DryRun=true")), "DryRunOperation");
    let image = all(&lab.ok(&make), "imageId").remove(0);
    let one = format!("DescribeImages&ImageId.1={image}");
    assert_eq!(all(&lab.ok(&one), "imageState"), ["pending"]);
    let launch =
        format!("RunInstances&ImageId={image}&InstanceType=t3.micro&MinCount=1&MaxCount=1");
    assert_eq!(lab.code(&launch), "InvalidAMIID.Unavailable");
    lab.pass(100);
    let reply = lab.ok(&one);
    assert_eq!(all(&reply, "imageState"), ["available"]);
    assert_eq!(all(&reply, "volumeSize"), ["12"]);
    assert_eq!(all(&reply, "key"), ["a"]);
    assert_eq!(
        all(&lab.ok("DescribeImages&Owner.1=self"), "imageId"),
        [image.as_str()]
    );
    assert_eq!(all(&lab.ok(&launch), "imageId"), [image]);
}

#[test]
fn a_bad_image_is_refused() {
    let mut lab = Lab::new();
    let id = lab.running("");
    lab.ok(&format!("CreateImage&InstanceId={id}&Name=golden"));
    let ended = lab.running("");
    lab.ok(&format!("TerminateInstances&InstanceId.1={ended}"));
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
        assert_eq!(lab.code(&call), code, "{call}");
    }
}

#[test]
fn catalog_images_follow_the_knobs() {
    let mut lab = Lab::new();
    let mut knobs = lab.engine.core.knobs.clone();
    knobs.images[0].id = "ami-0000000a".to_owned();
    lab.engine.set_knobs(knobs);
    assert_eq!(
        lab.code(&format!("{LAUNCH}&MinCount=1&MaxCount=1")),
        "InvalidAMIID.NotFound"
    );
    lab.ok("RunInstances&ImageId=ami-0000000a&MinCount=1&MaxCount=1");
}
