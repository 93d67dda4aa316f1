"""awscli against the emulator: every action once with success and once with an error."""

import contextlib
import io
import json
import os

import awscli.clidriver

from ec2_with_boto3 import MISSING, IMAGE


class Failed(Exception):
    """The command failed. The text is what it printed."""


def aws(url, *arguments):
    """Runs `aws ec2 …` in this process and returns its JSON output."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
                   "AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": os.devnull,
                   "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = awscli.clidriver.create_clidriver().main(["--endpoint-url", url, "--output", "json", "ec2", *arguments])
    text = out.buffer.getvalue().decode()
    if code != 0:
        raise Failed(err.getvalue() or text)
    return json.loads(text) if text.strip() else {}


def refused(code, url, *arguments):
    try:
        aws(url, *arguments)
    except Failed as error:
        assert f"({code})" in str(error), str(error)
    else:
        raise AssertionError(f"{arguments}: not refused with {code}")


def successes(url, emulator):
    """Every action, in the order of a lifecycle."""
    run = ["run-instances", "--image-id", IMAGE, "--instance-type", "m5.large", "--count", "1", "--client-token", "cli",
           "--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=cli}]",
           "--block-device-mappings", "DeviceName=/dev/sdf,Ebs={VolumeSize=5,DeleteOnTermination=true}",
           "--metadata-options", "HttpTokens=required", "--user-data", "hello"]
    instance = aws(url, *run)["Instances"][0]["InstanceId"]
    assert aws(url, *run)["Instances"][0]["InstanceId"] == instance
    emulator.control("POST", "advance", {"millis": 1000})
    shown = aws(url, "describe-instances", "--instance-ids", instance)["Reservations"][0]["Instances"][0]
    assert shown["State"]["Name"] == "running" and len(shown["BlockDeviceMappings"]) == 2
    emulator.control("POST", "advance", {"millis": 1000})
    status = aws(url, "describe-instance-status", "--instance-ids", instance)["InstanceStatuses"][0]
    assert status["InstanceStatus"]["Status"] == "ok"
    assert "booted" in aws(url, "get-console-output", "--instance-id", instance)["Output"]
    aws(url, "reboot-instances", "--instance-ids", instance)
    aws(url, "create-tags", "--resources", instance, "--tags", "Key=a,Value=b")
    assert len(aws(url, "describe-tags", "--filters", f"Name=resource-id,Values={instance}")["Tags"]) == 2
    aws(url, "delete-tags", "--resources", instance, "--tags", "Key=a")
    image = aws(url, "create-image", "--instance-id", instance, "--name", "golden", "--no-reboot")["ImageId"]
    emulator.control("POST", "advance", {"millis": 1000})
    assert aws(url, "describe-images", "--image-ids", image)["Images"][0]["State"] == "available"
    [snapshot] = aws(url, "describe-snapshots", "--owner-ids", "self")["Snapshots"]
    aws(url, "deregister-image", "--image-id", image)
    aws(url, "delete-snapshot", "--snapshot-id", snapshot["SnapshotId"])
    aws(url, "stop-instances", "--instance-ids", instance)
    emulator.control("POST", "advance", {"millis": 1000})
    aws(url, "modify-instance-attribute", "--instance-id", instance, "--instance-type", "Value=c5.large")
    attribute = aws(url, "describe-instance-attribute", "--instance-id", instance, "--attribute", "instanceType")
    assert attribute["InstanceType"]["Value"] == "c5.large"
    aws(url, "start-instances", "--instance-ids", instance)
    assert len(aws(url, "describe-volumes")["Volumes"]) == 2
    assert len(aws(url, "describe-network-interfaces")["NetworkInterfaces"]) == 1
    assert len(aws(url, "describe-availability-zones")["AvailabilityZones"]) == 3
    assert len(aws(url, "describe-subnets")["Subnets"]) == 3
    assert len(aws(url, "describe-security-groups")["SecurityGroups"]) == 1
    assert len(aws(url, "describe-instance-types", "--page-size", "5")["InstanceTypes"]) == 11
    assert aws(url, "describe-addresses")["Addresses"] == []
    ended = aws(url, "terminate-instances", "--instance-ids", instance)["TerminatingInstances"][0]
    assert ended["CurrentState"]["Name"] == "shutting-down"


def refusals(url, emulator):
    """Every action, refused."""
    missing = "InvalidInstanceID.NotFound"
    for code, *arguments in [
        ("InvalidAMIID.NotFound", "run-instances", "--image-id", MISSING["ami"]),
        (missing, "describe-instances", "--instance-ids", MISSING["i"]),
        (missing, "start-instances", "--instance-ids", MISSING["i"]),
        (missing, "stop-instances", "--instance-ids", MISSING["i"]),
        (missing, "reboot-instances", "--instance-ids", MISSING["i"]),
        (missing, "terminate-instances", "--instance-ids", MISSING["i"]),
        (missing, "modify-instance-attribute", "--instance-id", MISSING["i"], "--ebs-optimized"),
        (missing, "describe-instance-attribute", "--instance-id", MISSING["i"], "--attribute", "userData"),
        (missing, "describe-instance-status", "--instance-ids", MISSING["i"]),
        (missing, "get-console-output", "--instance-id", MISSING["i"]),
        ("InvalidVolume.NotFound", "create-tags", "--resources", MISSING["vol"], "--tags", "Key=a,Value=b"),
        ("InvalidID", "delete-tags", "--resources", "web"),
        ("InvalidParameterValue", "describe-tags", "--filters", "Name=colour,Values=red"),
        (missing, "create-image", "--instance-id", MISSING["i"], "--name", "golden"),
        ("InvalidAMIID.Malformed", "describe-images", "--image-ids", "linux"),
        ("InvalidAMIID.NotFound", "deregister-image", "--image-id", MISSING["ami"]),
        ("InvalidSnapshot.NotFound", "describe-snapshots", "--snapshot-ids", MISSING["snap"]),
        ("InvalidSnapshot.NotFound", "delete-snapshot", "--snapshot-id", MISSING["snap"]),
        ("InvalidInstanceType", "describe-instance-types", "--instance-types", "m5.huge"),
        ("InvalidVolume.NotFound", "describe-volumes", "--volume-ids", MISSING["vol"]),
        ("InvalidNetworkInterfaceID.NotFound", "describe-network-interfaces", "--network-interface-ids", MISSING["eni"]),
        ("InvalidParameterValue", "describe-availability-zones", "--zone-names", "mars-1a"),
        ("InvalidSubnetID.NotFound", "describe-subnets", "--subnet-ids", MISSING["subnet"]),
        ("InvalidGroup.NotFound", "describe-security-groups", "--group-ids", MISSING["sg"]),
        ("InvalidAddress.NotFound", "describe-addresses", "--public-ips", "198.18.0.1"),
    ]:
        refused(code, url, *arguments)


CASES = [successes, refusals]
