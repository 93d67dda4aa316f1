"""apache-libcloud's EC2 driver against the emulator: GET requests, and its own parser."""

import libcloud.common.exceptions
from libcloud.compute.base import NodeImage, VolumeSnapshot
from libcloud.compute.providers import get_driver
from libcloud.compute.types import Provider

from ec2_with_boto3 import MISSING, IMAGE


def driver(port):
    return get_driver(Provider.EC2)("test", "test", region="us-east-1", host="127.0.0.1", port=port, secure=False,
                                    signature_version="4")


def launch(ec2, **more):
    size = next(size for size in ec2.list_sizes() if size.id == "m5.large")
    return ec2.create_node(name="web", image=ec2.get_image(IMAGE), size=size, **more)


def refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except libcloud.common.exceptions.BaseHTTPError as error:
        assert code in str(error), str(error)
    else:
        raise AssertionError(f"not refused with {code}")


def successes(ec2, emulator):
    """Everything that the driver has a method for."""
    location = ec2.list_locations()[1]
    node = launch(ec2, location=location, ex_clienttoken="libcloud", ex_userdata="hello", ex_metadata={"role": "web"})
    emulator.control("POST", "advance", {"millis": 1000})
    [shown] = ec2.list_nodes()
    assert (shown.id, shown.state, shown.name) == (node.id, "running", "web")
    assert shown.extra["tags"]["role"] == "web" and shown.public_ips
    assert ec2.ex_describe_tags(node)["role"] == "web"
    assert ec2.ex_create_tags(node, {"a": "b"}) and ec2.ex_delete_tags(node, {"a": "b"})
    assert ec2.reboot_node(node)
    assert b"rebooted" in bytes(str(ec2.ex_get_console_output(node)["output"]), "utf-8")
    image = ec2.create_image(node, "golden")
    assert image.id in [image.id for image in ec2.list_images(ex_owner="self")]
    [snapshot] = ec2.list_snapshots(owner="self")
    assert ec2.delete_image(image) and ec2.destroy_volume_snapshot(snapshot)
    assert len(ec2.list_volumes(node)) == 1
    assert len(ec2.ex_list_network_interfaces()) == 1 and len(ec2.ex_list_subnets()) == 3
    assert ec2.ex_list_security_groups() == ["default"]
    assert ec2.stop_node(node)
    emulator.control("POST", "advance", {"millis": 1000})
    assert ec2.ex_modify_instance_attribute(node, {"InstanceType.Value": "c5.large"})
    assert ec2.start_node(node)
    assert ec2.destroy_node(node)


def refusals(ec2, emulator):
    """The driver raises what the emulator refuses."""
    node = launch(ec2)
    node.id = MISSING["i"]
    missing = "InvalidInstanceID.NotFound"
    image = NodeImage(MISSING["ami"], "gone", ec2)
    refused("InvalidAMIID.NotFound", ec2.create_node, name="web", image=image, size=ec2.list_sizes()[0])
    refused(missing, ec2.list_nodes, ex_node_ids=[MISSING["i"]])
    for call in [ec2.reboot_node, ec2.stop_node, ec2.start_node, ec2.destroy_node, ec2.ex_get_console_output]:
        refused(missing, call, node)
    refused(missing, ec2.ex_create_tags, node, {"a": "b"})
    refused(missing, ec2.ex_delete_tags, node, {"a": "b"})
    refused(missing, ec2.create_image, node, "golden")
    refused(missing, ec2.ex_modify_instance_attribute, node, {"InstanceType.Value": "c5.large"})
    refused("InvalidAMIID.NotFound", ec2.get_image, MISSING["ami"])
    snapshot = VolumeSnapshot(MISSING["snap"], ec2)
    refused("InvalidAMIID.NotFound", ec2.delete_image, image)
    refused("InvalidSnapshot.NotFound", ec2.list_snapshots, snapshot=snapshot)
    refused("InvalidSnapshot.NotFound", ec2.destroy_volume_snapshot, snapshot)
    refused("InvalidParameterValue", ec2.ex_list_subnets, filters={"colour": "red"})
    refused("InvalidParameterValue", ec2.list_volumes, ex_filters={"colour": "red"})
    # Calls that have no other way to fail are forbidden instead.
    for action, call in [("DescribeAvailabilityZones", ec2.list_locations), ("DescribeTags", lambda: ec2.ex_describe_tags(node)),
                         ("DescribeNetworkInterfaces", ec2.ex_list_network_interfaces),
                         ("DescribeSecurityGroups", ec2.ex_list_security_groups), ("DescribeAddresses", ec2.list_nodes)]:
        emulator.fault(action, {"kind": "forbidden"})
        refused("UnauthorizedOperation", call)


# Actions that the driver has no call for.
NO_CALL = {"DescribeInstanceTypes", "DescribeInstanceStatus", "DescribeInstanceAttribute"}

CASES = [successes, refusals]
