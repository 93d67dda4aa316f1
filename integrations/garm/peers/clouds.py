"""What differs between the three emulated clouds: names in the catalog, and how to read the oracle."""

import base64
import uuid


class Machine:
    """A machine that exists, as the oracle shows it. `number` is its unique id in the cloud, `name` its name there, if it has one."""

    def __init__(self, key, running, user_data, number, tags, name=None):
        self.key, self.running, self.user_data = key, running, user_data
        self.number, self.tags, self.name = number, tags, name

    def has(self, provider_id):
        """Whether a provider means this machine: by its name, or by an id that contains the cloud's."""
        return bool(provider_id) and (provider_id == self.name or self.number in provider_id)


class Ec2:
    name, image, flavor = "ec2", "ami-00000000000000001", "m5.large"
    create, knobs = "RunInstances", {}

    @staticmethod
    def machines(oracle):
        return [Machine(item["id"], item["state"] == "running", content(item["user_data"]), item["id"], item["tags"])
                for item in oracle["instances"] if item["state"] not in ("shutting-down", "terminated")]

    @staticmethod
    def left(oracle):
        """Returns what is left beside machines: disks, network cards, addresses."""
        return {"volumes": len(oracle["volumes"]), "cards": len(oracle["network_interfaces"]), "addresses": 0}

    @staticmethod
    def external(tags, _oracle):
        return {"action": "launch_external", "count": 1, "tags": tags}


class Gcp:
    name, image, flavor = "gcp", "projects/debian-cloud/global/images/family/debian-12", "e2-medium"
    create, knobs = "instances.insert", {}

    @staticmethod
    def machines(oracle):
        return [Machine(f"{item['zone']}/{item['name']}", item["status"] == "RUNNING", metadata(item["metadata"]), item["id"],
                        item["labels"], item["name"]) for item in oracle["instances"]]

    @staticmethod
    def left(oracle):
        return {"volumes": len(oracle["disks"]), "cards": 0, "addresses": 0}

    @staticmethod
    def external(tags, oracle):
        place = {"project": oracle["instances"][0]["project"], "zone": oracle["instances"][0]["zone"]}
        return {"action": "launch_external", "count": 1, "name": f"ci-{uuid.uuid4().hex}", "labels": tags, **place}


class Azure:
    name, image, flavor = "azure", "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest", "Standard_D2s_v5"
    create, knobs = "VirtualMachines_CreateOrUpdate", {}

    @staticmethod
    def machines(oracle):
        return [Machine(item["id"], item["power_state"] == "running", content(item["custom_data"]), item["vm_id"], item["tags"],
                        item["name"]) for item in oracle["vms"]]

    @staticmethod
    def left(oracle):
        return {"volumes": len(oracle["disks"]), "cards": len(oracle["nics"]), "addresses": len(oracle["public_ips"])}

    @staticmethod
    def external(tags, oracle):
        subscription = oracle["vms"][0]["id"].split("/")[2]
        return {"action": "create_external", "count": 1, "tags": tags, "subscription": subscription}


CLOUDS = {cloud.name: cloud for cloud in (Ec2, Gcp, Azure)}


def content(data):
    """Returns the bytes that the oracle shows as a list of numbers."""
    return bytes(data or [])


def metadata(items):
    """Returns the parts of an instance's metadata in which user data can be."""
    parts = [value.encode() for value in items.values()]
    for value in items.values():
        try:
            parts.append(base64.b64decode(value, validate=True))
        except ValueError:
            continue
    return b"\n".join(parts)
