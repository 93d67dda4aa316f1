//! Elastic addresses, volumes of clients, requests for spot instances, and options with actions of their own.

use super::{Fixture, LAUNCH, all};

#[test]
fn elastic_address_stays_with_its_instance() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let allocated = fixture.ok("AllocateAddress&Domain=vpc");
    let (ip, address) = (
        all(&allocated, "publicIp").remove(0),
        all(&allocated, "allocationId").remove(0),
    );
    let associate = format!("AssociateAddress&AllocationId={address}&InstanceId={id}");
    let association = all(&fixture.ok(&associate), "associationId").remove(0);
    assert_eq!(
        all(&fixture.ok(&associate), "associationId"),
        [association.as_str()]
    );
    let public = |fixture: &mut Fixture| all(&fixture.ok("DescribeInstances"), "ipAddress");
    assert_eq!(public(&mut fixture), [ip.as_str()]);
    fixture.ok(&format!("StopInstances&InstanceId.1={id}"));
    fixture.advance(100);
    fixture.engine.check_invariants();
    fixture.ok(&format!("StartInstances&InstanceId.1={id}"));
    fixture.advance(100);
    assert_eq!(public(&mut fixture), [ip.as_str()]);
    let release = format!("ReleaseAddress&AllocationId={address}");
    assert_eq!(fixture.refusal_code(&release), "InvalidIPAddress.InUse");
    let shown = fixture.ok("DescribeAddresses&Filter.1.Name=instance-id&Filter.1.Value.1=i-*");
    assert_eq!(all(&shown, "associationId"), [association.as_str()]);

    let other = fixture.launch_running("");
    let again = format!("AssociateAddress&AllocationId={address}&InstanceId={other}");
    assert_eq!(fixture.refusal_code(&again), "Resource.AlreadyAssociated");
    fixture.ok(&format!("{again}&AllowReassociation=true"));
    let both = public(&mut fixture);
    assert!(both[0] != ip && both[1] == ip, "{both:?}");
    fixture.ok(&format!("TerminateInstances&InstanceId.1={other}"));
    fixture.advance(100);
    fixture.ok(&release);
    assert_eq!(
        fixture.refusal_code(&release),
        "InvalidAllocationID.NotFound"
    );
    fixture.engine.check_invariants();
}

#[test]
fn pending_instance_gets_no_elastic_address() {
    let mut fixture = Fixture::new();
    let id = fixture.launch(1, "").remove(0);
    let address = all(&fixture.ok("AllocateAddress"), "allocationId").remove(0);
    let call = format!("AssociateAddress&AllocationId={address}&InstanceId={id}");
    assert_eq!(fixture.refusal_code(&call), "InvalidInstanceID");
}

#[test]
fn volume_is_created_attached_changed_detached_and_deleted() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("&Placement.AvailabilityZone=us-east-1a");
    let create = "CreateVolume&AvailabilityZone=us-east-1a&Size=4&VolumeType=gp3&Throughput=200";
    let volume = all(&fixture.ok(create), "volumeId").remove(0);
    let attach = format!("AttachVolume&VolumeId={volume}&InstanceId={id}&Device=/dev/sdf");
    assert_eq!(all(&fixture.ok(&attach), "status"), ["attached"]);
    assert_eq!(fixture.refusal_code(&attach), "VolumeInUse");
    let delete = format!("DeleteVolume&VolumeId={volume}");
    assert_eq!(fixture.refusal_code(&delete), "VolumeInUse");
    assert_eq!(
        fixture.refusal_code(&format!("ModifyVolume&VolumeId={volume}&Size=3")),
        "InvalidParameterValue"
    );
    fixture.ok(&format!("ModifyVolume&VolumeId={volume}&Size=8"));
    let changes = fixture.ok(&format!("DescribeVolumesModifications&VolumeId.1={volume}"));
    assert_eq!(
        (all(&changes, "originalSize"), all(&changes, "targetSize")),
        (vec!["4".to_owned()], vec!["8".to_owned()])
    );
    fixture.engine.check_invariants();
    let detach = format!("DetachVolume&VolumeId={volume}");
    assert_eq!(
        fixture.refusal_code(&format!("{detach}&InstanceId=i-00000000000000bad")),
        "InvalidAttachment.NotFound"
    );
    fixture.ok(&detach);
    assert_eq!(fixture.refusal_code(&detach), "IncorrectState");
    fixture.ok(&attach);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    fixture.advance(100);
    assert_eq!(
        all(&fixture.ok("DescribeVolumes"), "status"),
        ["available"],
        "it outlives its instance"
    );
    fixture.ok(&delete);
    assert_eq!(fixture.refusal_code(&delete), "InvalidVolume.NotFound");
    fixture.engine.check_invariants();
}

#[test]
fn volume_of_another_zone_and_the_root_volume_cannot_be_moved() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("&Placement.AvailabilityZone=us-east-1a");
    let root = all(&fixture.ok("DescribeVolumes"), "volumeId").remove(0);
    assert_eq!(
        fixture.refusal_code(&format!("DetachVolume&VolumeId={root}")),
        "OperationNotPermitted"
    );
    let create = "CreateVolume&AvailabilityZone=us-east-1b&Size=4";
    let volume = all(&fixture.ok(create), "volumeId").remove(0);
    let attach = format!("AttachVolume&VolumeId={volume}&InstanceId={id}&Device=/dev/sdf");
    assert_eq!(fixture.refusal_code(&attach), "InvalidVolume.ZoneMismatch");
    assert_eq!(
        fixture.refusal_code("CreateVolume&AvailabilityZone=mars&Size=4"),
        "InvalidZone.NotFound"
    );
    assert_eq!(
        fixture.refusal_code("CreateVolume&AvailabilityZone=us-east-1a"),
        "MissingParameter"
    );
}

#[test]
fn spot_request_follows_its_instance() {
    let mut fixture = Fixture::new();
    let spot = "&InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.MaxPrice=0.1\
        &TagSpecification.1.ResourceType=spot-instances-request&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b";
    let id = fixture.launch_running(spot);
    let shown = fixture.ok("DescribeSpotInstanceRequests&Filter.1.Name=tag:a&Filter.1.Value.1=b");
    let request = all(&shown, "spotInstanceRequestId").remove(0);
    assert_eq!(
        (all(&shown, "state"), all(&shown, "instanceId")),
        (vec!["active".to_owned()], vec![id.clone()])
    );
    fixture.ok(&format!(
        "CancelSpotInstanceRequests&SpotInstanceRequestId.1={request}"
    ));
    let call = format!("DescribeSpotInstanceRequests&SpotInstanceRequestId.1={request}");
    assert_eq!(all(&fixture.ok(&call), "state"), ["cancelled"]);
    assert_eq!(fixture.state(&id), "running");
    let other = fixture.launch_running(spot);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={other}"));
    assert_eq!(
        all(&fixture.ok("DescribeSpotInstanceRequests"), "state"),
        ["cancelled", "closed"]
    );
    let missing = "DescribeSpotInstanceRequests&SpotInstanceRequestId.1=sir-00000000000000bad";
    assert_eq!(
        fixture.refusal_code(missing),
        "InvalidSpotInstanceRequestID.NotFound"
    );
}

#[test]
fn terraforms_launch_is_accepted_and_every_attribute_described() {
    let mut fixture = Fixture::new();
    let launch = format!(
        "{}&MinCount=1&MaxCount=1&HibernationOptions.Configured=false&EnclaveOptions.Enabled=false\
         &CapacityReservationSpecification.CapacityReservationPreference=open&MaintenanceOptions.AutoRecovery=default\
         &CreditSpecification.CpuCredits=unlimited&MetadataOptions.HttpProtocolIpv6=disabled&DisableApiStop=false\
         &PrivateDnsNameOptions.HostnameType=ip-name&CpuOptions.CoreCount=1&CpuOptions.ThreadsPerCore=2\
         &BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.Throughput=150",
        LAUNCH.replace("m5.large", "t3.micro")
    );
    let id = all(&fixture.ok(&launch), "instanceId").remove(0);
    fixture.advance(100);
    for attribute in [
        "instanceType",
        "kernel",
        "ramdisk",
        "userData",
        "disableApiTermination",
        "instanceInitiatedShutdownBehavior",
        "rootDeviceName",
        "blockDeviceMapping",
        "productCodes",
        "sourceDestCheck",
        "groupSet",
        "ebsOptimized",
        "sriovNetSupport",
        "enaSupport",
        "enclaveOptions",
        "disableApiStop",
    ] {
        let call = format!("DescribeInstanceAttribute&InstanceId={id}&Attribute={attribute}");
        assert!(
            fixture.ok(&call).contains(&format!("<{attribute}")),
            "{attribute}"
        );
    }
    let credits = format!("DescribeInstanceCreditSpecifications&InstanceId.1={id}");
    assert_eq!(all(&fixture.ok(&credits), "cpuCredits"), ["unlimited"]);
    let change = format!(
        "ModifyInstanceCreditSpecification&InstanceCreditSpecification.1.InstanceId={id}\
         &InstanceCreditSpecification.1.CpuCredits=standard"
    );
    fixture.ok(&change);
    assert_eq!(all(&fixture.ok(&credits), "cpuCredits"), ["standard"]);
    assert_eq!(all(&fixture.ok("DescribeVolumes"), "throughput"), ["150"]);

    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={id}&DisableApiStop.Value=true"
    ));
    let stop = format!("StopInstances&InstanceId.1={id}");
    assert_eq!(fixture.refusal_code(&stop), "OperationNotPermitted");
    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={id}&DisableApiStop.Value=false"
    ));
    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={id}&SourceDestCheck.Value=false"
    ));
    fixture.ok(&format!("MonitorInstances&InstanceId.1={id}"));
    fixture.ok(&format!(
        "ModifyInstanceMetadataOptions&InstanceId={id}&HttpTokens=required"
    ));
    let shown = fixture.ok("DescribeInstances");
    assert_eq!(all(&shown, "sourceDestCheck"), ["false", "false"]);
    assert_eq!(all(&shown, "httpTokens"), ["required"]);
    assert!(shown.contains("<monitoring><state>enabled</state></monitoring>"));
    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={id}&BlockDeviceMapping.1.DeviceName=/dev/xvda\
         &BlockDeviceMapping.1.Ebs.DeleteOnTermination=false"
    ));
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    fixture.advance(100);
    assert_eq!(all(&fixture.ok("DescribeVolumes"), "volumeId").len(), 1);
}

#[test]
fn security_groups_of_an_instance_can_be_replaced() {
    let mut fixture = Fixture::new();
    let id = fixture.launch_running("");
    let created = fixture.ok("CreateSecurityGroup&GroupName=web&GroupDescription=web");
    let group = all(&created, "groupId").remove(0);
    let nic = all(
        &fixture.ok("DescribeNetworkInterfaces"),
        "networkInterfaceId",
    )
    .remove(0);
    fixture.ok(&format!(
        "ModifyNetworkInterfaceAttribute&NetworkInterfaceId={nic}&SecurityGroupId.1={group}"
    ));
    let filter =
        format!("DescribeInstances&Filter.1.Name=instance.group-id&Filter.1.Value.1={group}");
    assert_eq!(all(&fixture.ok(&filter), "groupName"), ["web", "web"]);
    fixture.ok(&format!(
        "ModifyInstanceAttribute&InstanceId={id}&GroupId.1=sg-00000000000000001"
    ));
    assert!(all(&fixture.ok(&filter), "instanceId").is_empty());
    fixture.ok(&format!("DeleteSecurityGroup&GroupId={group}"));
}

#[test]
fn account_regions_and_offerings_are_described() {
    let mut fixture = Fixture::with(|knobs| knobs.types[0].zones = vec!["us-east-1b".to_owned()]);
    let attributes = fixture.ok("DescribeAccountAttributes&AttributeName.1=default-vpc");
    assert_eq!(
        all(&attributes, "attributeValue"),
        ["vpc-00000000000000001"]
    );
    assert_eq!(
        all(&fixture.ok("DescribeRegions"), "regionName"),
        ["us-east-1"]
    );
    let offerings = "DescribeInstanceTypeOfferings&LocationType=availability-zone\
        &Filter.1.Name=instance-type&Filter.1.Value.1=c5.large";
    assert_eq!(all(&fixture.ok(offerings), "location"), ["us-east-1b"]);
    assert_eq!(all(&fixture.ok("DescribeRouteTables"), "main"), ["true"]);
    assert_eq!(all(&fixture.ok("DescribeNetworkAcls"), "default"), ["true"]);
    let image = "DescribeImageAttribute&ImageId=ami-00000000000000001&Attribute=launchPermission";
    assert_eq!(all(&fixture.ok(image), "group"), ["all"]);
    assert_eq!(
        fixture.refusal_code("DescribeRegions&RegionName.1=mars"),
        "InvalidParameterValue"
    );
    assert_eq!(
        fixture.refusal_code("DescribeAccountAttributes&AttributeName.1=mars"),
        "InvalidParameterValue"
    );
}
