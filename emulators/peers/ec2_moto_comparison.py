"""Sends the same calls to the emulator and to moto, and compares the outcomes and the elements of the responses.

Every difference needs a row in ec2_moto_differences.toml that says which one is right and why. A row without a difference
fails as well.
"""

import collections
import fnmatch
import pathlib
import re
import tomllib

import boto3
import botocore.config
import botocore.exceptions

from ec2_with_boto3 import MISSING, wait

TABLE = pathlib.Path(__file__).with_name("ec2_moto_differences.toml")
VERDICTS = {"ours right", "moto right", "a choice"}
TAGS = [{"ResourceType": "instance", "Tags": [{"Key": "role", "Value": "web"}]}]


class Server:
    """One of the two servers, and the key paths of all its responses by operation."""

    def __init__(self, url, image):
        config = botocore.config.Config(retries={"total_max_attempts": 1})
        self.ec2 = boto3.client("ec2", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
                                aws_secret_access_key="test", config=config)
        self.image = image
        self.paths = collections.defaultdict(set)
        self.ids = []
        self.ec2.meta.events.register("after-call.ec2", self.record)

    def record(self, parsed, model, **_):
        if "Error" not in parsed:
            self.paths[model.name] |= set(key_paths({k: v for k, v in parsed.items() if k != "ResponseMetadata"}))

    def launch(self, count=1, **more):
        more = {"ImageId": self.image, "InstanceType": "m5.large", "MinCount": count, "MaxCount": count} | more
        return [instance["InstanceId"] for instance in self.ec2.run_instances(**more)["Instances"]]

    def wait_until(self, state):
        wait(self.ec2, f"instance_{state}", InstanceIds=self.ids)


def key_paths(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from key_paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from key_paths(inner, path + "[]")
    else:
        yield path


def names(changes):
    return [(change["PreviousState"]["Name"], change["CurrentState"]["Name"]) for change in changes]


def states(server):
    shown = server.ec2.describe_instances(InstanceIds=server.ids)["Reservations"]
    return [instance["State"]["Name"] for group in shown for instance in group["Instances"]]


def filtered(server, name, value):
    shown = server.ec2.describe_instances(Filters=[{"Name": name, "Values": [value]}])["Reservations"]
    return len([instance for group in shown for instance in group["Instances"]])


def first(server):
    server.ids = server.launch(2, ClientToken="first", TagSpecifications=TAGS, UserData="hello")
    return len(server.ids)


def page_sizes(server):
    pages = server.ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5})
    return [sum(len(group["Instances"]) for group in page["Reservations"]) for page in pages]


def protected(server):
    [instance] = server.launch(DisableApiTermination=True)
    try:
        server.ec2.terminate_instances(InstanceIds=[instance])
    finally:
        server.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": False})
        server.ec2.terminate_instances(InstanceIds=[instance])


def left_over(server):
    """Counts the extra volumes that are left after their instance is terminated."""
    device = {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 5}}
    before = {volume["VolumeId"] for volume in server.ec2.describe_volumes()["Volumes"]}
    [instance] = server.launch(BlockDeviceMappings=[device])
    wait(server.ec2, "instance_running", InstanceIds=[instance])
    server.ec2.terminate_instances(InstanceIds=[instance])
    wait(server.ec2, "instance_terminated", InstanceIds=[instance])
    return len([volume for volume in server.ec2.describe_volumes()["Volumes"] if volume["VolumeId"] not in before])


def image_twice(server):
    server.ec2.create_image(InstanceId=server.ids[0], Name="golden")
    server.ec2.create_image(InstanceId=server.ids[0], Name="golden")


def attribute(server, name):
    return server.ec2.describe_instance_attribute(InstanceId=server.ids[0], Attribute=name)


STEPS = [
    ("launch two", first),
    ("launch with an image that is not there", lambda s: s.launch(ImageId=MISSING["ami"])),
    ("launch with a malformed image", lambda s: s.launch(ImageId="linux")),
    ("launch with a type that is not there", lambda s: s.launch(InstanceType="m5.huge")),
    ("launch with a subnet that is not there", lambda s: s.launch(SubnetId=MISSING["subnet"])),
    ("launch with a group that is not there", lambda s: s.launch(SecurityGroupIds=[MISSING["sg"]])),
    ("launch with a key that is not there", lambda s: s.launch(KeyName="nobody")),
    ("launch at least two and at most one", lambda s: len(s.launch(MinCount=2, MaxCount=1))),
    ("launch with a reserved tag", lambda s: s.launch(
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "aws:x", "Value": ""}]}])),
    ("launch with too much user data", lambda s: len(s.launch(UserData="x" * 16385))),
    ("launch dry", lambda s: s.launch(DryRun=True)),
    ("launch again with the token", lambda s: s.launch(2, ClientToken="first", TagSpecifications=TAGS, UserData="hello") == s.ids),
    ("launch another with the token", lambda s: len(s.launch(ClientToken="first"))),
    ("wait until running", lambda s: (s.wait_until("running"), states(s))[1]),
    ("describe an id that is not there", lambda s: s.ec2.describe_instances(InstanceIds=[MISSING["i"]])),
    ("describe a malformed id", lambda s: s.ec2.describe_instances(InstanceIds=["web"])),
    ("describe ids and a page", lambda s: s.ec2.describe_instances(InstanceIds=s.ids, MaxResults=5)),
    ("describe with a token that is none", lambda s: s.ec2.describe_instances(MaxResults=5, NextToken="zzz")),
    ("describe too small a page", lambda s: s.ec2.describe_instances(MaxResults=1)),
    ("filter by tag", lambda s: filtered(s, "tag:role", "web") >= 2),
    ("filter by a wildcard", lambda s: filtered(s, "tag:role", "w*") >= 2),
    ("filter by state", lambda s: filtered(s, "instance-state-name", "stopped")),
    ("filter by client token", lambda s: filtered(s, "client-token", "first")),
    ("filter by something unknown", lambda s: filtered(s, "colour", "red")),
    ("status of running ones", lambda s: s.ec2.describe_instance_status(InstanceIds=s.ids)["InstanceStatuses"][0]["InstanceState"]["Name"]),
    ("status of an id that is not there", lambda s: s.ec2.describe_instance_status(InstanceIds=[MISSING["i"]])),
    ("console of a running one", lambda s: bool(s.ec2.get_console_output(InstanceId=s.ids[0]))),
    ("console of an id that is not there", lambda s: s.ec2.get_console_output(InstanceId=MISSING["i"])),
    ("user data read back", lambda s: attribute(s, "userData")["UserData"]["Value"]),
    ("type read back", lambda s: attribute(s, "instanceType")["InstanceType"]["Value"]),
    ("change the type while running", lambda s: s.ec2.modify_instance_attribute(InstanceId=s.ids[0], InstanceType={"Value": "c5.large"}) and None),
    ("tag", lambda s: s.ec2.create_tags(Resources=s.ids, Tags=[{"Key": "a", "Value": "1"}]) and None),
    ("tag an id that is not there", lambda s: s.ec2.create_tags(Resources=[MISSING["i"]], Tags=[{"Key": "a", "Value": "1"}])),
    ("tag something that is nothing", lambda s: s.ec2.create_tags(Resources=["web"], Tags=[{"Key": "a", "Value": "1"}])),
    ("tag with too many", lambda s: s.ec2.create_tags(Resources=s.ids, Tags=[{"Key": f"k{n}", "Value": ""} for n in range(51)])),
    ("untag with another value", lambda s: s.ec2.delete_tags(Resources=s.ids, Tags=[{"Key": "a", "Value": "2"}]) and None),
    ("tags of one", lambda s: sorted(t["Key"] for t in s.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": s.ids[:1]}])["Tags"])),
    ("untag", lambda s: s.ec2.delete_tags(Resources=s.ids, Tags=[{"Key": "a"}]) and None),
    ("an image under one name twice", image_twice),
    ("an image of an id that is not there", lambda s: s.ec2.create_image(InstanceId=MISSING["i"], Name="other")),
    ("images that are not there", lambda s: s.ec2.describe_images(ImageIds=[MISSING["ami"]])),
    ("Amazon's images", lambda s: bool(s.ec2.describe_images(Owners=["amazon"])["Images"])),
    ("own images", lambda s: len(s.ec2.describe_images(Owners=["self"])["Images"])),
    ("a type", lambda s: s.ec2.describe_instance_types(InstanceTypes=["m5.large"])["InstanceTypes"][0]["VCpuInfo"]["DefaultVCpus"]),
    ("a type that is not there", lambda s: s.ec2.describe_instance_types(InstanceTypes=["m5.huge"])),
    ("volumes of one", lambda s: len(s.ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": s.ids[:1]}])["Volumes"])),
    ("a volume that is not there", lambda s: s.ec2.describe_volumes(VolumeIds=[MISSING["vol"]])),
    ("interfaces of one", lambda s: len(s.ec2.describe_network_interfaces(
        Filters=[{"Name": "attachment.instance-id", "Values": s.ids[:1]}])["NetworkInterfaces"])),
    ("an interface that is not there", lambda s: s.ec2.describe_network_interfaces(NetworkInterfaceIds=[MISSING["eni"]])),
    ("a zone", lambda s: len(s.ec2.describe_availability_zones(ZoneNames=["us-east-1a"])["AvailabilityZones"])),
    ("a zone that is not there", lambda s: len(s.ec2.describe_availability_zones(ZoneNames=["mars-1a"])["AvailabilityZones"])),
    ("subnets of a zone", lambda s: len(s.ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-east-1a"]}])["Subnets"])),
    ("a subnet that is not there", lambda s: s.ec2.describe_subnets(SubnetIds=[MISSING["subnet"]])),
    ("the default group", lambda s: len(s.ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"])),
    ("a group that is not there", lambda s: s.ec2.describe_security_groups(GroupIds=[MISSING["sg"]])),
    ("elastic addresses", lambda s: len(s.ec2.describe_addresses()["Addresses"])),
    ("reboot", lambda s: s.ec2.reboot_instances(InstanceIds=s.ids) and None),
    ("stop", lambda s: names(s.ec2.stop_instances(InstanceIds=s.ids)["StoppingInstances"])),
    ("wait until stopped", lambda s: (s.wait_until("stopped"), states(s))[1]),
    ("stop again", lambda s: names(s.ec2.stop_instances(InstanceIds=s.ids)["StoppingInstances"])),
    ("reboot while stopped", lambda s: s.ec2.reboot_instances(InstanceIds=s.ids) and None),
    ("change the type", lambda s: s.ec2.modify_instance_attribute(InstanceId=s.ids[0], InstanceType={"Value": "c5.large"}) and None),
    ("change to a type that is not there", lambda s: s.ec2.modify_instance_attribute(InstanceId=s.ids[0], InstanceType={"Value": "m5.huge"}) and None),
    ("start", lambda s: names(s.ec2.start_instances(InstanceIds=s.ids)["StartingInstances"])),
    ("wait until running again", lambda s: (s.wait_until("running"), states(s))[1]),
    ("start again", lambda s: names(s.ec2.start_instances(InstanceIds=s.ids)["StartingInstances"])),
    ("terminate with one bad id", lambda s: s.ec2.terminate_instances(InstanceIds=[*s.ids, MISSING["i"]])),
    ("states after that", states),
    ("terminate a protected one", protected),
    ("terminate", lambda s: names(s.ec2.terminate_instances(InstanceIds=s.ids)["TerminatingInstances"])),
    ("wait until terminated", lambda s: (s.wait_until("terminated"), states(s))[1]),
    ("terminate again", lambda s: names(s.ec2.terminate_instances(InstanceIds=s.ids)["TerminatingInstances"])),
    ("start a terminated one", lambda s: names(s.ec2.start_instances(InstanceIds=s.ids)["StartingInstances"])),
    ("stop a terminated one", lambda s: names(s.ec2.stop_instances(InstanceIds=s.ids)["StoppingInstances"])),
    ("launch with the token of terminated ones", lambda s: len(s.launch(2, ClientToken="first", TagSpecifications=TAGS, UserData="hello"))),
    ("volumes left by a terminated one", left_over),
    ("pages of seven more", lambda s: (s.launch(7), sum(page_sizes(s)) == filtered(s, "instance-type", "*"), max(page_sizes(s)))[1:]),
]


def outcome(step, server):
    """Returns the outcome of a step as a short text."""
    try:
        value = step(server)
    except botocore.exceptions.ClientError as error:
        return f"{error.response['ResponseMetadata']['HTTPStatusCode']} {error.response['Error']['Code']}"
    except Exception as error:
        return type(error).__name__
    if value is None or isinstance(value, dict):
        return "ok"
    return re.sub(r"\bi-[0-9a-f]+", "i-…", f"ok: {value}")


def run(results, our_url, moto_url):
    ours = Server(our_url, "ami-00000000000000001")
    moto = Server(moto_url, None)
    images = moto.ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"]
    moto.image = images[0]["ImageId"]
    table = tomllib.loads(TABLE.read_text()) if TABLE.exists() else {}
    rows = table.get("outcome", []) + table.get("shape", [])
    problems = [f"row without a verdict or a reason: {row}" for row in rows if row.get("verdict") not in VERDICTS or not row.get("why")]
    used, counts = set(), collections.Counter()
    for name, step in STEPS:
        pair = outcome(step, ours), outcome(step, moto)
        if pair[0] == pair[1]:
            counts["the same"] += 1
            continue
        row = next((row for row in table.get("outcome", []) if (row["step"], row["ours"], row["moto"]) == (name, *pair)), None)
        explain(row, f"{name}: ours {pair[0]!r}, moto {pair[1]!r}", problems, used, counts)
    results.check(f"{len(STEPS)} calls have the same outcome at the emulator and at moto, or differ as explained", problems)
    problems = []
    for operation in sorted(set(ours.paths) | set(moto.paths)):
        for only, paths in (("ours", ours.paths[operation] - moto.paths[operation]), ("moto", moto.paths[operation] - ours.paths[operation])):
            for path in sorted(paths):
                row = next((row for row in table.get("shape", []) if row["only"] == only and fnmatch.fnmatchcase(operation, row["operation"])
                            and any(fnmatch.fnmatchcase(path, pattern.replace("[]", "[[][]]")) for pattern in row["paths"])), None)
                explain(row, f"{operation}: only {only} has {path}", problems, used, counts)
    problems += [f"row without a difference: {row}" for row in rows if id(row) not in used]
    results.check("their responses have the same elements, or differ as explained", problems)
    report(rows, counts)


def explain(row, difference, problems, used, counts):
    if row is None:
        problems.append(difference)
    else:
        used.add(id(row))
        counts[row["verdict"]] += 1


def report(rows, counts):
    print(f"\n{'verdict':<12}difference from moto")
    for row in sorted(rows, key=lambda row: sorted(VERDICTS).index(row["verdict"])):
        what = row.get("step") or f"{row['operation']}: elements that only {row['only']} has"
        print(f"{row['verdict']:<12}{what}: {row['why']}")
    print(", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items())) + "\n")
