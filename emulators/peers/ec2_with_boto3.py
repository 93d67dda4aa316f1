"""boto3 against the emulator: every action, botocore's waiters and paginators, and its retries."""

import base64

import boto3
import botocore
import botocore.config
import botocore.exceptions

IMAGE = "ami-00000000000000001"
MISSING = {"i": "i-00000000000000bad", "vol": "vol-00000000000000bad", "eni": "eni-00000000000000bad",
        "ami": "ami-00000000000000bad", "subnet": "subnet-00000000000000bad", "sg": "sg-00000000000000bad",
        "snap": "snap-00000000000000bad"}


def client(url, key="test", region="us-east-1", attempts=0):
    config = botocore.config.Config(retries={"total_max_attempts": attempts + 1, "mode": "standard"})
    return boto3.client("ec2", endpoint_url=url, region_name=region, aws_access_key_id=key, aws_secret_access_key="test",
                        config=config)


def launch(ec2, count=1, **more):
    more = {"ImageId": IMAGE, "InstanceType": "m5.large", "MinCount": count, "MaxCount": count} | more
    return [instance["InstanceId"] for instance in ec2.run_instances(**more)["Instances"]]


def wait(ec2, name, **what):
    waiter = ec2.get_waiter(name)
    waiter.config.delay, waiter.config.max_attempts = 0.05, 200
    waiter.wait(**what)


def running(ec2, count=1, **more):
    ids = launch(ec2, count, **more)
    wait(ec2, "instance_running", InstanceIds=ids)
    return ids


def refused(code, status, call, **arguments):
    """Checks that the call is refused with this code and status."""
    try:
        call(**arguments)
    except botocore.exceptions.ClientError as error:
        found = (error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"])
        assert found == (code, status), f"refused with {found}, not {(code, status)}"
    else:
        raise AssertionError(f"not refused with {code}")


def lifecycle(ec2, emulator):
    """Waiters see every state of a lifecycle."""
    ids = running(ec2, 2, ClientToken="life", UserData="#!/bin/sh\necho ü\n", KeyName="default",
                  TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": " ü\r\n<&> "}]},
                                     {"ResourceType": "volume", "Tags": [{"Key": "a", "Value": ""}]}])
    shown = ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"]
    assert [instance["Tags"] for instance in shown] == [[{"Key": "Name", "Value": " ü\r\n<&> "}]] * 2
    data = ec2.describe_instance_attribute(InstanceId=ids[0], Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(data).decode() == "#!/bin/sh\necho ü\n"
    wait(ec2, "instance_status_ok", InstanceIds=ids)
    ec2.reboot_instances(InstanceIds=ids)
    assert "rebooted" in ec2.get_console_output(InstanceId=ids[0])["Output"]
    change = ec2.stop_instances(InstanceIds=ids)["StoppingInstances"][0]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "stopping")
    wait(ec2, "instance_stopped", InstanceIds=ids)
    ec2.modify_instance_attribute(InstanceId=ids[0], InstanceType={"Value": "c5.large"})
    ec2.start_instances(InstanceIds=ids)
    wait(ec2, "instance_running", InstanceIds=ids)
    ec2.terminate_instances(InstanceIds=ids)
    wait(ec2, "instance_terminated", InstanceIds=ids)
    assert ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []


def tokens(ec2, emulator):
    """A client token is honoured as EC2 documents it."""
    first = launch(ec2, ClientToken="once")
    assert launch(ec2, ClientToken="once") == first
    refused("IdempotentParameterMismatch", 400, launch, ec2=ec2, ClientToken="once", InstanceType="t3.micro")
    other = launch(ec2, ClientToken="once", Placement={"AvailabilityZone": "us-east-1b"})
    assert other != first
    ec2.terminate_instances(InstanceIds=first)
    wait(ec2, "instance_terminated", InstanceIds=first)
    refused("IdempotentInstanceTerminated", 400, launch, ec2=ec2, ClientToken="once")


def pages(ec2, emulator):
    """Paginators follow every list to its end."""
    ids = running(ec2, 12, TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "b"}]}])
    for operation, key, expected in [
        ("describe_instances", "Reservations[].Instances[]", 12), ("describe_instance_status", "InstanceStatuses[]", 12),
        ("describe_volumes", "Volumes[]", 12), ("describe_network_interfaces", "NetworkInterfaces[]", 12),
        ("describe_tags", "Tags[]", 12), ("describe_instance_types", "InstanceTypes[]", 11),
        ("describe_images", "Images[]", 3), ("describe_subnets", "Subnets[]", 3),
        ("describe_security_groups", "SecurityGroups[]", 1),
    ]:
        found = list(ec2.get_paginator(operation).paginate(PaginationConfig={"PageSize": 5}).search(key))
        assert len(found) == expected, f"{operation}: {len(found)}"
    tagged = ec2.describe_instances(Filters=[{"Name": "tag:a", "Values": ["b"]}])["Reservations"]
    assert [instance["InstanceId"] for group in tagged for instance in group["Instances"]] == ids


def images(ec2, emulator):
    """An image of an instance becomes available and can be launched, and is deleted with its snapshot."""
    [instance] = running(ec2)
    image = ec2.create_image(InstanceId=instance, Name="golden", NoReboot=True)["ImageId"]
    wait(ec2, "image_available", ImageIds=[image])
    running(ec2, ImageId=image)
    [device] = ec2.describe_images(ImageIds=[image])["Images"][0]["BlockDeviceMappings"]
    snapshot = device["Ebs"]["SnapshotId"]
    wait(ec2, "snapshot_completed", SnapshotIds=[snapshot])
    refused("InvalidSnapshot.InUse", 400, ec2.delete_snapshot, SnapshotId=snapshot)
    ec2.deregister_image(ImageId=image)
    refused("InvalidAMIID.Unavailable", 400, ec2.deregister_image, ImageId=image)
    assert [found["SnapshotId"] for found in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]] == [snapshot]
    ec2.delete_snapshot(SnapshotId=snapshot)
    assert ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"] == []
    image = ec2.create_image(InstanceId=instance, Name="golden", NoReboot=True)["ImageId"]
    [deleted] = ec2.deregister_image(ImageId=image, DeleteAssociatedSnapshots=True)["DeleteSnapshotResults"]
    assert deleted["ReturnCode"] == "success"


def tags(ec2, emulator):
    """Tags are created, described and deleted."""
    [instance] = running(ec2)
    ec2.create_tags(Resources=[instance], Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    ec2.delete_tags(Resources=[instance], Tags=[{"Key": "a"}])
    assert [tag["Key"] for tag in ec2.describe_tags()["Tags"]] == ["b"]


def catalog(ec2, emulator):
    """The catalog of a region."""
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    assert [zone["ZoneName"] for zone in zones] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert ec2.describe_subnets()["Subnets"][0]["AvailableIpAddressCount"] == 4091
    assert ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"][0]["GroupName"] == "default"
    spec = ec2.describe_instance_types(InstanceTypes=["m5.large"])["InstanceTypes"][0]
    assert (spec["VCpuInfo"]["DefaultVCpus"], spec["MemoryInfo"]["SizeInMiB"]) == (2, 8192)
    assert ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"] == IMAGE
    assert ec2.describe_addresses()["Addresses"] == []


def refusals(ec2, emulator):
    """Every action has an error that boto3 reads."""
    gone = [MISSING["i"]]
    for call, code, arguments in [
        (ec2.run_instances, "InvalidAMIID.NotFound", {"ImageId": MISSING["ami"], "MinCount": 1, "MaxCount": 1}),
        (ec2.describe_instances, "InvalidInstanceID.NotFound", {"InstanceIds": gone}),
        (ec2.start_instances, "InvalidInstanceID.NotFound", {"InstanceIds": gone}),
        (ec2.stop_instances, "InvalidInstanceID.Malformed", {"InstanceIds": ["web"]}),
        (ec2.reboot_instances, "InvalidInstanceID.NotFound", {"InstanceIds": gone}),
        (ec2.terminate_instances, "InvalidInstanceID.NotFound", {"InstanceIds": gone}),
        (ec2.modify_instance_attribute, "InvalidInstanceID.NotFound", {"InstanceId": MISSING["i"], "EbsOptimized": {"Value": True}}),
        (ec2.describe_instance_attribute, "InvalidInstanceID.NotFound", {"InstanceId": MISSING["i"], "Attribute": "userData"}),
        (ec2.describe_instance_status, "InvalidInstanceID.NotFound", {"InstanceIds": gone}),
        (ec2.get_console_output, "InvalidInstanceID.NotFound", {"InstanceId": MISSING["i"]}),
        (ec2.create_tags, "InvalidInstanceID.NotFound", {"Resources": gone, "Tags": [{"Key": "a", "Value": "b"}]}),
        (ec2.delete_tags, "InvalidID", {"Resources": ["web"], "Tags": [{"Key": "a"}]}),
        (ec2.describe_tags, "InvalidParameterValue", {"Filters": [{"Name": "colour", "Values": ["red"]}]}),
        (ec2.create_image, "InvalidInstanceID.NotFound", {"InstanceId": MISSING["i"], "Name": "golden"}),
        (ec2.describe_images, "InvalidAMIID.NotFound", {"ImageIds": [MISSING["ami"]]}),
        (ec2.deregister_image, "InvalidAMIID.NotFound", {"ImageId": MISSING["ami"]}),
        (ec2.describe_snapshots, "InvalidSnapshot.NotFound", {"SnapshotIds": [MISSING["snap"]]}),
        (ec2.delete_snapshot, "InvalidSnapshot.NotFound", {"SnapshotId": MISSING["snap"]}),
        (ec2.describe_instance_types, "InvalidInstanceType", {"InstanceTypes": ["m5.huge"]}),
        (ec2.describe_volumes, "InvalidVolume.NotFound", {"VolumeIds": [MISSING["vol"]]}),
        (ec2.describe_network_interfaces, "InvalidNetworkInterfaceID.NotFound", {"NetworkInterfaceIds": [MISSING["eni"]]}),
        (ec2.describe_availability_zones, "InvalidParameterValue", {"ZoneNames": ["mars-1a"]}),
        (ec2.describe_subnets, "InvalidSubnetID.NotFound", {"SubnetIds": [MISSING["subnet"]]}),
        (ec2.describe_security_groups, "InvalidGroup.NotFound", {"GroupIds": [MISSING["sg"]]}),
        (ec2.describe_addresses, "InvalidAddress.NotFound", {"PublicIps": ["198.18.0.1"]}),
    ]:
        refused(code, 400, call, **arguments)
    refused("DryRunOperation", 412, launch, ec2=ec2, DryRun=True)
    client(ec2.meta.endpoint_url, key="anybody", region="eu-west-1").describe_instances()
    with emulator.set_knobs(access_keys=["test"], check_region=True):
        refused("AuthFailure", 401, client(ec2.meta.endpoint_url, key="nobody").describe_instances)
        refused("AuthFailure", 401, client(ec2.meta.endpoint_url, region="eu-west-1").describe_instances)
    unsigned = botocore.config.Config(signature_version=botocore.UNSIGNED, retries={"total_max_attempts": 1})
    anybody = boto3.client("ec2", endpoint_url=ec2.meta.endpoint_url, region_name="us-east-1", config=unsigned)
    refused("MissingAuthenticationToken", 403, anybody.describe_instances)


def scarcity(ec2, emulator):
    """Capacity, quota and throttling have their own codes and statuses."""
    emulator.control("PATCH", "knobs", {"capacity": [{"machines": 0}]})
    refused("InsufficientInstanceCapacity", 500, launch, ec2=ec2)
    emulator.control("PATCH", "knobs", {"capacity": [], "vcpu_quota": 1})
    refused("VcpuLimitExceeded", 400, launch, ec2=ec2)
    emulator.control("PATCH", "knobs", {"vcpu_quota": None, "throttle": {"DescribeTags": {"period": 3600000, "burst": 1}}})
    ec2.describe_tags()
    refused("RequestLimitExceeded", 503, ec2.describe_tags)
    emulator.control("PATCH", "knobs", {"throttle": {"DescribeTags": None}})


def retries(ec2, emulator):
    """botocore's own retries handle faults; sent past the proxy, because broken responses cannot be checked."""
    patient = client(emulator.url, attempts=3)
    for fault in [{"kind": "lost", "phase": "after"}, {"kind": "reset"}, {"kind": "server_error", "phase": "after"},
                  {"kind": "throttled"}, {"kind": "lost", "phase": "before"}]:
        emulator.control("POST", "reset")
        emulator.fault("RunInstances", fault)
        launch(patient)
        oracle = emulator.control("GET", "oracle")
        assert (len(oracle["instances"]), oracle["calls"]["RunInstances"]) == (1, 2), f"{fault}: {oracle['calls']}"
        used = [call["parameters"]["ClientToken"] for call in emulator.control("GET", "calls")]
        assert len(set(used)) == 1


CASES = [lifecycle, tokens, pages, images, tags, catalog, refusals, scarcity, retries]
