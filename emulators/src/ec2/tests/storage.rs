//! Volumes and network interfaces, and what happens to them on termination.

use super::{Fixture, all};

const DEVICES: &str = "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=20\
                       &BlockDeviceMapping.1.Ebs.VolumeType=gp2\
                       &BlockDeviceMapping.2.DeviceName=/dev/sdf&BlockDeviceMapping.2.Ebs.VolumeSize=5\
                       &BlockDeviceMapping.3.DeviceName=/dev/sdg&BlockDeviceMapping.3.Ebs.VolumeSize=6\
                       &BlockDeviceMapping.3.Ebs.DeleteOnTermination=true\
                       &BlockDeviceMapping.4.DeviceName=/dev/sdh&BlockDeviceMapping.4.NoDevice=";

#[test]
fn volume_is_deleted_with_its_instance_or_remains() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running(DEVICES);
    let of_instance =
        format!("DescribeVolumes&Filter.1.Name=attachment.instance-id&Filter.1.Value.1={id}");
    let response = fixture.ok(&of_instance);
    assert_eq!(all(&response, "size"), ["20", "5", "6"]);
    assert_eq!(
        all(&response, "device"),
        ["/dev/xvda", "/dev/sdf", "/dev/sdg"]
    );
    assert_eq!(
        all(&response, "deleteOnTermination"),
        ["true", "false", "true"]
    );
    assert_eq!(all(&response, "volumeType"), ["gp2", "gp3", "gp3"]);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(all(&fixture.ok(&of_instance), "size").len(), 3);
    fixture.advance(100);
    let response = fixture.ok("DescribeVolumes");
    assert_eq!(
        (all(&response, "size"), all(&response, "status")),
        (vec!["5".into()], vec!["available".into()])
    );
    let returned = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&returned, "volumeId"), [""; 0]);
    assert_eq!(all(&returned, "privateIpAddress"), [""; 0]);
}

#[test]
fn stop_keeps_everything() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running(DEVICES);
    let before = all(&fixture.ok("DescribeVolumes"), "volumeId");
    fixture.ok(&format!("StopInstances&InstanceId.1={id}"));
    fixture.advance(100);
    assert_eq!(all(&fixture.ok("DescribeVolumes"), "volumeId"), before);
    assert_eq!(
        all(&fixture.ok("DescribeNetworkInterfaces"), "instanceId"),
        [id]
    );
}

#[test]
fn interface_is_deleted_with_its_instance_unless_kept() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let kept = fixture.launch_running(
        "&NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.DeleteOnTermination=false",
    );
    let response = fixture.ok(&format!(
        "DescribeNetworkInterfaces&Filter.1.Name=attachment.instance-id&Filter.1.Value.1={id}"
    ));
    let nic = all(&response, "networkInterfaceId").remove(0);
    assert_eq!(all(&response, "publicIp"), ["198.18.0.4", "198.18.0.4"]);
    assert_eq!(all(&response, "status"), ["in-use", "attached"]);
    fixture.ok(&format!(
        "TerminateInstances&InstanceId.1={id}&InstanceId.2={kept}"
    ));
    fixture.advance(100);
    let by_id = format!("DescribeNetworkInterfaces&NetworkInterfaceId.1={nic}");
    assert_eq!(
        fixture.refusal_code(&by_id),
        "InvalidNetworkInterfaceID.NotFound"
    );
    assert_eq!(
        all(&fixture.ok("DescribeNetworkInterfaces"), "status"),
        ["available"]
    );
}

#[test]
fn volumes_and_interfaces_are_filtered() {
    let mut fixture = Fixture::new();
    fixture.launch_running(&format!(
        "{DEVICES}&TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=role&TagSpecification.1.Tag.1.Value=disk\
         &TagSpecification.2.ResourceType=network-interface&TagSpecification.2.Tag.1.Key=role&TagSpecification.2.Tag.1.Value=card"
    ));
    for (filter, value, sizes) in [
        ("tag:role", "disk", vec!["20", "5", "6"]),
        ("tag:role", "card", vec![]),
        ("attachment.device", "/dev/sdf", vec!["5"]),
        ("attachment.delete-on-termination", "true", vec!["20", "6"]),
        ("size", "6", vec!["6"]),
        ("status", "available", vec![]),
        ("volume-type", "gp2", vec!["20"]),
        ("availability-zone", "us-east-1a", vec!["20", "5", "6"]),
    ] {
        let call = format!("DescribeVolumes&Filter.1.Name={filter}&Filter.1.Value.1={value}");
        assert_eq!(all(&fixture.ok(&call), "size"), sizes, "{filter}");
    }
    for (filter, value, found) in [
        ("tag:role", "card", 1),
        ("tag:role", "disk", 0),
        ("subnet-id", "subnet-00000000000000001", 1),
        ("group-id", "sg-00000000000000001", 1),
        ("private-ip-address", "172.31.0.4", 1),
        ("status", "available", 0),
    ] {
        let call =
            format!("DescribeNetworkInterfaces&Filter.1.Name={filter}&Filter.1.Value.1={value}");
        assert_eq!(
            all(&fixture.ok(&call), "networkInterfaceId").len(),
            found,
            "{filter}"
        );
    }
}

#[test]
fn volume_has_the_requested_properties() {
    let mut fixture = Fixture::new();
    // A root volume may have exactly the size of the image's.
    fixture.launch_running(
        "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=8\
         &BlockDeviceMapping.1.Ebs.Encrypted=true&BlockDeviceMapping.2.DeviceName=/dev/sdf\
         &BlockDeviceMapping.2.Ebs.VolumeSize=4&BlockDeviceMapping.2.Ebs.VolumeType=io2\
         &BlockDeviceMapping.2.Ebs.Iops=500",
    );
    let response = fixture.ok("DescribeVolumes");
    assert_eq!(all(&response, "size"), ["8", "4"]);
    assert_eq!(all(&response, "encrypted"), ["true", "false"]);
    assert_eq!(all(&response, "volumeType"), ["gp3", "io2"]);
    assert_eq!(all(&response, "iops"), ["3000", "500"]);
}
