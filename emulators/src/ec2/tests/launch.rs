//! RunInstances: what it creates, and what it refuses without creating anything.

use super::{Fixture, LAUNCH, all};

#[test]
fn launch_is_pending_then_running_with_a_public_address() {
    let mut fixture = Fixture::new();
    let response = fixture.ok(&format!("{LAUNCH}&MinCount=1&MaxCount=1&KeyName=default"));
    let id = all(&response, "instanceId").remove(0);
    assert_eq!(all(&response, "name"), ["pending"]);
    assert_eq!(all(&response, "code"), ["0", "pending"]);
    assert_eq!(all(&response, "keyName"), ["default"]);
    assert_eq!(all(&response, "ipAddress"), [""; 0]);
    assert_eq!(all(&response, "privateIpAddress")[0], "172.31.0.4");
    fixture.advance(99);
    assert_eq!(fixture.state(&id), "pending");
    fixture.advance(1);
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&response, "name"), ["running"]);
    assert_eq!(all(&response, "ipAddress"), ["198.18.0.4"]);
    assert_eq!(all(&response, "launchTime"), ["2026-01-01T00:00:00.000Z"]);
}

#[test]
fn invalid_launch_is_refused_with_its_code_and_creates_nothing() {
    let mut fixture = Fixture::new();
    let image = "RunInstances&ImageId=ami-00000000000000001&MinCount=1&MaxCount=1";
    for (call, code) in [
        ("RunInstances&MinCount=1&MaxCount=1", "MissingParameter"),
        (
            "RunInstances&ImageId=ami-00000000000000001&MinCount=1",
            "MissingParameter",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000001&MaxCount=1",
            "MissingParameter",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000001&MinCount=2&MaxCount=1",
            "InvalidParameterValue",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000001&MinCount=0&MaxCount=1",
            "InvalidParameterValue",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000001&MinCount=1&MaxCount=1001",
            "InvalidParameterValue",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000001&MinCount=x&MaxCount=1",
            "InvalidParameterValue",
        ),
        (
            "RunInstances&ImageId=linux&MinCount=1&MaxCount=1",
            "InvalidAMIID.Malformed",
        ),
        (
            "RunInstances&ImageId=ami-00000000000000099&MinCount=1&MaxCount=1",
            "InvalidAMIID.NotFound",
        ),
    ] {
        assert_eq!(fixture.refusal_code(call), code, "{call}");
    }
    for (more, code) in [
        ("InstanceType=m5.huge", "InvalidParameterValue"),
        ("InstanceType=m6g.large", "InvalidParameterValue"),
        ("KeyName=nobody", "InvalidKeyPair.NotFound"),
        (
            "SubnetId=subnet-00000000000000009",
            "InvalidSubnetID.NotFound",
        ),
        (
            "SecurityGroupId.1=sg-00000000000000009",
            "InvalidGroup.NotFound",
        ),
        ("SecurityGroupId.1=default", "InvalidGroupId.Malformed"),
        ("SecurityGroup.1=nobody", "InvalidGroup.NotFound"),
        (
            "Placement.AvailabilityZone=mars-1a",
            "InvalidParameterValue",
        ),
        (
            "Placement.AvailabilityZone=us-east-1b&SubnetId=subnet-00000000000000001",
            "InvalidParameterValue",
        ),
        ("Placement.Tenancy=dedicated", "InvalidParameterValue"),
        ("UserData=%25", "InvalidUserData.Malformed"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize=9", "MissingParameter"),
        (
            "BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=7",
            "InvalidBlockDeviceMapping",
        ),
        (
            "BlockDeviceMapping.1.DeviceName=/dev/sdf",
            "InvalidBlockDeviceMapping",
        ),
        (
            "BlockDeviceMapping.1.DeviceName=/dev/sdf&BlockDeviceMapping.1.Ebs.VolumeSize=0",
            "InvalidParameterValue",
        ),
        (
            "BlockDeviceMapping.1.DeviceName=/dev/sdf&BlockDeviceMapping.1.Ebs.VolumeSize=1\
             &BlockDeviceMapping.2.DeviceName=/dev/sdf&BlockDeviceMapping.2.Ebs.VolumeSize=1",
            "InvalidBlockDeviceMapping",
        ),
        (
            "NetworkInterface.1.DeviceIndex=0&SubnetId=subnet-00000000000000001",
            "InvalidParameterCombination",
        ),
        ("NetworkInterface.1.DeviceIndex=1", "UnsupportedOperation"),
        (
            "InstanceMarketOptions.MarketType=capacity-block",
            "InvalidParameterValue",
        ),
        (
            "InstanceMarketOptions.SpotOptions.MaxPrice=1",
            "MissingParameter",
        ),
        (
            "MetadataOptions.HttpPutResponseHopLimit=65",
            "InvalidParameterValue",
        ),
        (
            "ClientToken=12345678901234567890123456789012345678901234567890123456789012345",
            "InvalidParameterValue",
        ),
        (
            "LaunchTemplate.LaunchTemplateName=web",
            "UnsupportedOperation",
        ),
        ("HibernationOptions.Configured=true", "UnsupportedOperation"),
        ("Colour=red", "UnknownParameter"),
        ("CpuOptions.CoreCount=1", "MissingParameter"),
        (
            "CpuOptions.CoreCount=64&CpuOptions.ThreadsPerCore=2",
            "InvalidParameterValue",
        ),
        (
            "CreditSpecification.CpuCredits=all",
            "InvalidParameterValue",
        ),
        ("PrivateIpAddress=10.0.0.9", "InvalidParameterValue"),
        ("DryRun=true", "DryRunOperation"),
        ("DryRun=perhaps", "InvalidParameterValue"),
    ] {
        assert_eq!(
            fixture.refusal_code(&format!("{image}&{more}")),
            code,
            "{more}"
        );
    }
    assert!(
        fixture.engine.instances.is_empty()
            && fixture.engine.volumes.is_empty()
            && fixture.engine.nics.is_empty()
    );
}

#[test]
fn dry_run_reports_the_outcome_and_changes_nothing() {
    let mut fixture = Fixture::new();
    let call = format!("{LAUNCH}&MinCount=1&MaxCount=1&DryRun=true");
    let refusal = fixture.call(&call).unwrap_err();
    assert_eq!((refusal.status, &*refusal.code), (412, "DryRunOperation"));
    assert!(fixture.engine.instances.is_empty());
}

#[test]
fn tags_are_part_of_the_launch_and_checked_first() {
    let mut fixture = Fixture::new();
    let spec = "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=";
    let id = fixture.launch_running(&format!(
        "{spec}Owner&TagSpecification.1.Tag.1.Value=%20a%26b%20"
    ));
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(
        (all(&response, "key"), all(&response, "value")),
        (vec!["Owner".into()], vec![" a&amp;b ".into()])
    );
    let many: String = (1..=51)
        .map(|n| format!("&TagSpecification.1.Tag.{n}.Key=k{n}"))
        .collect();
    let typed = "&TagSpecification.1.ResourceType=instance";
    let long = "x".repeat(129);
    for (more, code) in [
        (format!("{typed}{many}"), "TagLimitExceeded"),
        (format!("{spec}aws:x"), "InvalidParameterValue"),
        (spec.to_owned(), "InvalidParameterValue"),
        (format!("{spec}{long}"), "InvalidParameterValue"),
        (
            format!("{spec}a&TagSpecification.1.Tag.1.Value={long}{long}"),
            "InvalidParameterValue",
        ),
        (
            format!("{spec}a&TagSpecification.1.Tag.2.Key=a"),
            "InvalidParameterValue",
        ),
        (
            format!("{spec}a&TagSpecification.2.ResourceType=instance"),
            "InvalidParameterValue",
        ),
        (typed.to_owned(), "InvalidParameterValue"),
        (
            "&TagSpecification.1.ResourceType=vpc".to_owned(),
            "InvalidParameterValue",
        ),
    ] {
        assert_eq!(
            fixture.refusal_code(&format!("{LAUNCH}&MinCount=1&MaxCount=1{more}")),
            code,
            "{more}"
        );
    }
    assert_eq!(fixture.engine.instances.len(), 1);
}

#[test]
fn user_data_is_kept_to_the_byte_up_to_its_limit() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut fixture = Fixture::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(16 * 1024).collect();
    let encoded = |bytes: &[u8]| {
        STANDARD
            .encode(bytes)
            .replace('+', "%2B")
            .replace('=', "%3D")
    };
    let id = fixture.launch_running(&format!("&UserData={}", encoded(&bytes)));
    let response = fixture.ok(&format!(
        "DescribeInstanceAttribute&Attribute=userData&InstanceId={id}"
    ));
    assert_eq!(STANDARD.decode(&all(&response, "value")[0]).unwrap(), bytes);
    let longer = [bytes, vec![0]].concat();
    let call = format!(
        "{LAUNCH}&MinCount=1&MaxCount=1&UserData={}",
        encoded(&longer)
    );
    assert_eq!(fixture.refusal_code(&call), "InvalidParameterValue");
}

#[test]
fn requested_properties_are_returned() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running(
        "&SubnetId=subnet-00000000000000002&IamInstanceProfile.Name=web&MetadataOptions.HttpTokens=required\
         &MetadataOptions.HttpPutResponseHopLimit=2&Monitoring.Enabled=true&EbsOptimized=true\
         &InstanceMarketOptions.MarketType=spot",
    );
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    for (name, value) in [
        ("availabilityZone", "us-east-1b"),
        ("arn", "arn:aws:iam::123456789012:instance-profile/web"),
        ("httpTokens", "required"),
        ("httpPutResponseHopLimit", "2"),
        ("ebsOptimized", "true"),
        ("instanceLifecycle", "spot"),
    ] {
        assert_eq!(all(&response, name)[0], value, "{name}");
    }
    assert!(response.contains("<monitoring><state>enabled</state></monitoring>"));
}

#[test]
fn interface_options_are_honoured() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running(
        "&NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.SubnetId=subnet-00000000000000003\
         &NetworkInterface.1.AssociatePublicIpAddress=false&NetworkInterface.1.Description=first\
         &NetworkInterface.1.SecurityGroupId.1=sg-00000000000000001",
    );
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&response, "ipAddress"), [""; 0]);
    assert_eq!(all(&response, "description"), ["first"]);
    assert_eq!(all(&response, "availabilityZone")[0], "us-east-1c");
}

#[test]
fn instance_profile_is_found_by_name_or_arn() {
    let mut fixture = Fixture::with(|knobs| knobs.instance_profiles = ["web".to_owned()].into());
    fixture.launch_running("&IamInstanceProfile.Name=web");
    let arn = "arn:aws:iam::123456789012:instance-profile/web";
    let id = fixture.launch_running(&format!("&IamInstanceProfile.Arn={arn}"));
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&response, "arn"), [arn]);
    let call = format!("{LAUNCH}&MinCount=1&MaxCount=1&IamInstanceProfile.Name=fresh");
    assert_eq!(fixture.refusal_code(&call), "InvalidParameterValue");
}
