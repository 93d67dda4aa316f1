//! Describing: ids, filters, status, console and the catalog.

use super::{Fixture, all};

#[test]
fn ids_must_exist_but_the_id_filter_ignores_missing_ones() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let missing = "i-00000000000000bad";
    assert_eq!(
        fixture.refusal_code(&format!(
            "DescribeInstances&InstanceId.1={id}&InstanceId.2={missing}"
        )),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(
        fixture.refusal_code("DescribeInstances&InstanceId.1=web"),
        "InvalidInstanceID.Malformed"
    );
    let filter = format!(
        "DescribeInstances&Filter.1.Name=instance-id&Filter.1.Value.1={missing}&Filter.1.Value.2={id}"
    );
    assert_eq!(all(&fixture.ok(&filter), "instanceId"), [id]);
}

#[test]
fn filters_are_anded_and_their_values_ored() {
    let mut fixture = Fixture::new();
    let tagged = |value: &str| {
        format!(
            "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=role&TagSpecification.1.Tag.1.Value={value}"
        )
    };
    let web = fixture
        .launch(1, &format!("{}&ClientToken=web-token", tagged("web")))
        .remove(0);
    let web2 = fixture.launch(1, &tagged("web-2")).remove(0);
    let db = fixture
        .launch(
            1,
            &format!("{}&Placement.AvailabilityZone=us-east-1b", tagged("db")),
        )
        .remove(0);
    fixture.advance(100);
    let late = fixture.launch(1, "").remove(0);
    fixture.ok(&format!("StopInstances&InstanceId.1={db}"));
    fixture.advance(50);
    let mut found = |filters: &[(&str, &[&str])]| {
        let mut call = "DescribeInstances".to_owned();
        for (number, (name, values)) in filters.iter().enumerate() {
            call += &format!("&Filter.{}.Name={name}", number + 1);
            for (value_number, value) in values.iter().enumerate() {
                call += &format!("&Filter.{}.Value.{}={value}", number + 1, value_number + 1);
            }
        }
        all(&fixture.ok(&call), "instanceId")
    };
    assert_eq!(found(&[("tag:role", &["web"])]), [web.as_str()]);
    assert_eq!(found(&[("tag:role", &["web*"])]), [web.as_str(), &web2]);
    assert_eq!(found(&[("tag:role", &["web", "db"])]), [web.as_str(), &db]);
    assert_eq!(found(&[("tag:role", &["Web"])]), [""; 0]);
    assert_eq!(
        found(&[
            ("tag-key", &["role"]),
            ("availability-zone", &["us-east-1b"])
        ]),
        [db.as_str()]
    );
    assert_eq!(
        found(&[
            ("tag:role", &["web"]),
            ("instance-state-name", &["stopping"])
        ]),
        [""; 0]
    );
    assert_eq!(
        found(&[("instance-state-name", &["pending", "stopping"])]),
        [db.as_str(), &late]
    );
    assert_eq!(found(&[("instance-state-code", &["0"])]), [late.as_str()]);
    assert_eq!(found(&[("client-token", &["web-token"])]), [web.as_str()]);
    assert_eq!(
        found(&[("instance-type", &["m5.*"]), ("instance-id", &[&web, &db])]),
        [web.as_str(), &db]
    );
    assert_eq!(
        found(&[("private-ip-address", &["172.31.0.4"])]),
        [web.as_str()]
    );
    assert_eq!(found(&[("instance-state-name", &["nowhere"])]), [""; 0]);
    assert_eq!(
        found(&[("subnet-id", &["subnet-00000000000000002"])]),
        [db.as_str()]
    );
}

#[test]
fn unknown_filters_are_refused() {
    let mut fixture = Fixture::new();
    for action in [
        "DescribeInstances",
        "DescribeInstanceStatus",
        "DescribeTags",
        "DescribeVolumes",
        "DescribeNetworkInterfaces",
        "DescribeImages",
        "DescribeInstanceTypes",
        "DescribeSubnets",
        "DescribeSecurityGroups",
        "DescribeAvailabilityZones",
        "DescribeAddresses",
    ] {
        let call = format!("{action}&Filter.1.Name=colour&Filter.1.Value.1=red");
        assert_eq!(
            fixture.refusal_code(&call),
            "InvalidParameterValue",
            "{action}"
        );
        assert_eq!(
            fixture.refusal_code(&format!("{action}&DryRun=true")),
            "DryRunOperation",
            "{action}"
        );
        assert_eq!(
            fixture.refusal_code(&format!("{action}&Colour=red")),
            "UnknownParameter",
            "{action}"
        );
    }
    assert_eq!(
        fixture.refusal_code("DescribeInstances&Filter.1.Name=tag:"),
        "InvalidParameterValue"
    );
    assert_eq!(
        fixture.refusal_code("DescribeInstances&Filter.1.Name=instance-id"),
        "InvalidParameterValue"
    );
    assert_eq!(
        fixture.refusal_code("DescribeInstances&Filter.1.Value.1=x"),
        "MissingParameter"
    );
    let many: String = (1..=201)
        .map(|n| format!("&Filter.1.Value.{n}=i-{n:017x}"))
        .collect();
    assert_eq!(
        fixture.refusal_code(&format!(
            "DescribeInstances&Filter.1.Name=instance-id{many}"
        )),
        "FilterLimitExceeded"
    );
}

#[test]
fn status_lists_running_instances_by_default() {
    let mut fixture = Fixture::new();
    let (up, down) = (fixture.launch_running(""), fixture.launch_running(""));
    fixture.ok(&format!("StopInstances&InstanceId.1={down}"));
    let response = fixture.ok("DescribeInstanceStatus");
    assert_eq!(all(&response, "instanceId"), [up.as_str()]);
    let response = fixture.ok("DescribeInstanceStatus&IncludeAllInstances=true");
    assert_eq!(all(&response, "instanceId"), [up.as_str(), &down]);
    let statuses = [
        "ok",
        "passed",
        "ok",
        "passed",
        "not-applicable",
        "not-applicable",
    ];
    assert_eq!(all(&response, "status"), statuses);
    let fresh = fixture.launch(1, "").remove(0);
    fixture.advance(100);
    let one = format!("DescribeInstanceStatus&InstanceId.1={fresh}");
    assert_eq!(all(&fixture.ok(&one), "status")[0], "initializing");
    let waiting =
        "DescribeInstanceStatus&Filter.1.Name=instance-status.status&Filter.1.Value.1=initializing";
    assert_eq!(all(&fixture.ok(waiting), "instanceId"), [fresh.as_str()]);
    fixture.advance(100);
    assert_eq!(all(&fixture.ok(&one), "status")[0], "ok");
    assert_eq!(
        fixture.refusal_code(&format!("{one}&MaxResults=5")),
        "InvalidParameterCombination"
    );
    assert_eq!(
        fixture.refusal_code("DescribeInstanceStatus&InstanceId.1=i-00000000000000bad"),
        "InvalidInstanceID.NotFound"
    );
}

#[test]
fn console_shows_boots_and_reboots() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut fixture = Fixture::new();
    let id = fixture.launch(1, "").remove(0);
    let call = format!("GetConsoleOutput&InstanceId={id}");
    assert_eq!(all(&fixture.ok(&call), "output"), [""; 0]);
    fixture.advance(100);
    fixture.ok(&format!("RebootInstances&InstanceId.1={id}"));
    let output = all(&fixture.ok(&call), "output").remove(0);
    assert!(output.lines().count() > 1, "base64 has several lines");
    fixture.engine.core.knobs.console_line_length = 0;
    let one_line = all(&fixture.ok(&call), "output").remove(0);
    assert_eq!(one_line, output.replace('\n', ""));
    let output = output.replace('\n', "");
    let text = String::from_utf8(STANDARD.decode(output).unwrap()).unwrap();
    assert_eq!(
        text,
        "[2026-01-01T00:00:00.000Z] booted\n[2026-01-01T00:00:00.000Z] rebooted\n"
    );
    let boots = fixture
        .engine
        .instances
        .values()
        .map(|instance| instance.boots);
    assert_eq!(boots.collect::<Vec<_>>(), [2]);
    assert_eq!(
        fixture.refusal_code("GetConsoleOutput&InstanceId=i-00000000000000bad"),
        "InvalidInstanceID.NotFound"
    );
    assert_eq!(fixture.refusal_code("GetConsoleOutput"), "MissingParameter");
}

#[test]
fn catalog_is_described_by_id_name_and_filter() {
    let mut fixture = Fixture::new();
    for (call, name, expected) in [
        (
            "DescribeAvailabilityZones",
            "zoneName",
            vec!["us-east-1a", "us-east-1b", "us-east-1c"],
        ),
        (
            "DescribeAvailabilityZones&ZoneId.1=use1-az2",
            "zoneName",
            vec!["us-east-1b"],
        ),
        (
            "DescribeAvailabilityZones&Filter.1.Name=zone-name&Filter.1.Value.1=*c",
            "zoneName",
            vec!["us-east-1c"],
        ),
        (
            "DescribeSubnets&SubnetId.1=subnet-00000000000000002",
            "cidrBlock",
            vec!["172.31.16.0/20"],
        ),
        (
            "DescribeSubnets&Filter.1.Name=availability-zone&Filter.1.Value.1=us-east-1c",
            "subnetId",
            vec!["subnet-00000000000000003"],
        ),
        (
            "DescribeSecurityGroups&GroupName.1=default",
            "groupId",
            vec!["sg-00000000000000001"],
        ),
        (
            "DescribeSecurityGroups&Filter.1.Name=group-name&Filter.1.Value.1=nobody",
            "groupId",
            vec![],
        ),
        (
            "DescribeInstanceTypes&InstanceType.1=m5.large",
            "defaultVCpus",
            vec!["2"],
        ),
        (
            "DescribeInstanceTypes&Filter.1.Name=processor-info.supported-architecture&Filter.1.Value.1=arm64",
            "instanceType",
            vec!["m6g.large", "t4g.micro"],
        ),
        (
            "DescribeImages&Owner.1=amazon&Filter.1.Name=architecture&Filter.1.Value.1=arm64",
            "imageId",
            vec!["ami-00000000000000003"],
        ),
        ("DescribeImages&Owner.1=self", "imageId", vec![]),
        (
            "DescribeImages&ImageId.1=ami-00000000000000002",
            "rootDeviceName",
            vec!["/dev/sda1"],
        ),
    ] {
        assert_eq!(all(&fixture.ok(call), name), expected, "{call}");
    }
    for (call, code) in [
        (
            "DescribeAddresses&PublicIp.1=198.18.0.4",
            "InvalidAddress.NotFound",
        ),
        (
            "DescribeAddresses&AllocationId.1=eipalloc-00000000000000001",
            "InvalidAllocationID.NotFound",
        ),
        (
            "DescribeAvailabilityZones&ZoneName.1=mars-1a",
            "InvalidParameterValue",
        ),
        (
            "DescribeSubnets&SubnetId.1=subnet-00000000000000009",
            "InvalidSubnetID.NotFound",
        ),
        (
            "DescribeSecurityGroups&GroupId.1=sg-00000000000000009",
            "InvalidGroup.NotFound",
        ),
        (
            "DescribeSecurityGroups&GroupId.1=default",
            "InvalidGroupId.Malformed",
        ),
        (
            "DescribeSecurityGroups&GroupName.1=nobody",
            "InvalidGroup.NotFound",
        ),
        (
            "DescribeInstanceTypes&InstanceType.1=m5.huge",
            "InvalidInstanceType",
        ),
        (
            "DescribeImages&ImageId.1=ami-00000000000000009",
            "InvalidAMIID.NotFound",
        ),
        ("DescribeImages&ImageId.1=linux", "InvalidAMIID.Malformed"),
        (
            "DescribeVolumes&VolumeId.1=vol-00000000000000009",
            "InvalidVolume.NotFound",
        ),
        (
            "DescribeVolumes&VolumeId.1=disk",
            "InvalidVolumeID.Malformed",
        ),
        (
            "DescribeNetworkInterfaces&NetworkInterfaceId.1=eni-00000000000000009",
            "InvalidNetworkInterfaceID.NotFound",
        ),
        (
            "DescribeNetworkInterfaces&NetworkInterfaceId.1=card",
            "InvalidNetworkInterfaceId.Malformed",
        ),
    ] {
        assert_eq!(fixture.refusal_code(call), code, "{call}");
    }
}
