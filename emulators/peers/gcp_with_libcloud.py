"""apache-libcloud's driver against the emulator: it follows links as they are, and has its own caches, poller and parser."""

import datetime
import os

from libcloud.common import google
from libcloud.compute.drivers import gce

from gcp_client import OTHER, PROJECT, REGION, ZONE, CaseClient

IMAGE = "debian-12-bookworm-v20260201"


class Credential(google.GoogleOAuth2Credential):
    """A fixed token, so that the driver neither requests nor stores one."""

    def __init__(self, *_, **__):
        self.token = {"access_token": "test"}
        self.token_expire_time = datetime.datetime.max

    @property
    def access_token(self):
        return self.token["access_token"]


class Libcloud(CaseClient):
    """The driver, pointed at a proxy."""

    def __init__(self, port):
        super().__init__()

        class Connection(gce.GCEConnection):
            poll_interval = 0.03

            def __init__(self, *arguments, **named):
                super().__init__(*arguments, **named)
                self.host, self.port, self.secure = "127.0.0.1", port, False

        class Driver(gce.GCENodeDriver):
            connectionCls = Connection

        google.GoogleOAuth2Credential = Credential
        self.driver = Driver("test", "test", project=PROJECT, auth_type="IA", credential_file=os.devnull)

    def node(self, name="web", **more):
        return self.driver.create_node(name, "e2-small", IMAGE, ZONE, **more)

    def reload(self, node):
        return self.driver.ex_get_node(node.name, ZONE)

    def reason(self, error):
        if not isinstance(error, google.GoogleBaseError):
            return None
        # After an error the driver would send the page size of the failed call with its next call.
        self.driver.connection.gce_params = None
        # The driver drops the code of a 404.
        return error.http_code, error.code or error.value["reason"]


def lifecycle(client, emulator):
    """A lifecycle: create, stop, another size, start, reboot, labels, metadata, destroy."""
    gce = client.driver
    node = client.node(ex_labels={"a": "b"}, ex_metadata={"user-data": "hello"})
    assert (node.state, node.extra["labels"]) == ("running", {"a": "b"}) and node.public_ips
    assert [shown.name for shown in gce.list_nodes()] == ["web"] == [shown.name for shown in gce.list_nodes(ex_zone=ZONE)]
    assert gce.ex_get_serial_output(node)
    assert gce.stop_node(node) and client.reload(node).state == "stopped"
    assert gce.ex_set_machine_type(node, "e2-medium") and gce.start_node(node)
    assert client.reload(node).size == "e2-medium"
    assert gce.reboot_node(node)
    assert gce.ex_set_node_labels(node, {"c": "d"}) and gce.ex_set_node_metadata(node, {"e": "f"})
    assert client.reload(node).extra["labels"] == {"c": "d"}
    client.refused(412, "conditionNotMet", gce.ex_set_node_labels, node, {})
    client.refused(412, "conditionNotMet", gce.ex_set_node_metadata, node, {})
    assert gce.destroy_node(node)
    client.refused(404, "notFound", client.reload, node)


def several(client, emulator):
    """Several at once, pages of its own iterator, and two zones."""
    gce = client.driver
    # Without a default zone the driver names a disk type of some other zone, which is refused.
    gce.zone = gce.ex_get_zone(ZONE)
    nodes = gce.ex_create_multiple_nodes("fleet", "e2-small", IMAGE, 3, location=ZONE, poll_interval=0.05)
    assert sorted(node.name for node in nodes) == ["fleet-000", "fleet-001", "fleet-002"]
    gce.zone = None
    gce.create_node("away", "e2-small", IMAGE, OTHER)
    assert len(gce.list_nodes()) == 4 and len(gce.list_volumes()) == 4 and len(gce.list_volumes(ex_zone=OTHER)) == 1
    assert [len(page) for page in gce.ex_list(gce.ex_list_networks).page(1)] == [1]
    assert all(gce.ex_destroy_multiple_nodes(nodes, poll_interval=0.05))


def images(client, emulator):
    """Images by name, link and family, one created from a disk and deleted; a disk that is left."""
    gce = client.driver
    assert {image.name for image in gce.list_images("debian-cloud")} > {IMAGE}
    image = gce.ex_get_image(IMAGE)
    assert gce.ex_get_image(image.extra["selfLink"]).id == image.id
    assert gce.ex_get_image_from_family("debian-12", ["debian-cloud"]).name == IMAGE
    emulator.control("POST", "external-actions", {"action": "add_disk", "project": PROJECT, "zone": ZONE, "name": "spare", "gib": 5})
    spare = gce.ex_get_volume("spare", ZONE)
    # The driver sends a zone, which images do not have. The same request without it uses the driver's own poller.
    client.refused(400, "badRequest", gce.ex_create_image, "golden", spare)
    body = {"name": "golden", "sourceDisk": spare.extra["selfLink"]}
    gce.connection.async_request("/global/images", method="POST", data=body)
    client.refused(409, "alreadyExists", gce.connection.async_request, "/global/images", method="POST", data=body)
    golden = gce.ex_get_image("golden")
    assert golden.extra["status"] == "READY" and gce.ex_delete_image(golden)
    emulator.fault("globalOperations.get", {"kind": "forbidden"})
    other = body | {"name": "other"}
    client.refused(403, "forbidden", gce.connection.async_request, "/global/images", method="POST", data=other)
    assert gce.destroy_volume(spare)
    assert gce.list_volumes(ex_zone=ZONE) == []


def catalog(client, emulator):
    """Zones, regions, sizes, disk types, networks, addresses, the project."""
    gce = client.driver
    assert ZONE in [zone.name for zone in gce.list_locations()] and ZONE in [zone.name for zone in gce.ex_list_zones()]
    assert REGION in [region.name for region in gce.ex_list_regions()] and gce.ex_get_region(REGION).name == REGION
    assert gce.ex_get_size("e2-small", ZONE).ram == 2048
    assert len(gce.list_sizes(ZONE)) * 6 == len(gce.list_sizes())
    assert gce.ex_get_disktype("pd-ssd", ZONE).name == "pd-ssd" and gce.ex_list_disktypes(ZONE) and gce.ex_list_disktypes()
    assert gce.ex_get_network("default").name == gce.ex_get_subnetwork("default", REGION).name == "default"
    assert len(gce.ex_list_subnetworks()) == 2 and len(gce.ex_list_subnetworks(REGION)) == 1
    assert gce.ex_list_addresses() == gce.ex_list_addresses(REGION) == []
    assert gce.ex_get_project().name == PROJECT
    # Simulates a zone that is newer than the driver's cache.
    gce._zone_dict = {}
    assert gce.ex_get_zone(ZONE).name == ZONE
    gce._zone_dict = None


def failures(client, emulator):
    """The driver raises immediate failures and failed operations as errors with their codes."""
    with emulator.set_knobs(capacity=[{"machines": 0}]):
        fails(client, google.GoogleBaseError, "ZONE_RESOURCE_POOL_EXHAUSTED")
    with emulator.set_knobs(cpu_quota=1, quota_check="in_operation"):
        fails(client, google.QuotaExceededError, "QUOTA_EXCEEDED")
    with emulator.set_knobs(cpu_quota=1):
        client.refused(403, "quotaExceeded", client.node)
    client.node()
    client.refused(409, "alreadyExists", client.node)


def fails(client, kind, code):
    """Checks that the driver raises this kind of error from a finished operation."""
    try:
        client.node()
    except kind as error:
        assert (error.http_code, error.code) == (200, code), f"{error.http_code} {error.code}: {error}"
    else:
        raise AssertionError(f"not failed with {code}")


def refusals(client, emulator):
    """Every call of the driver is forbidden once, and the driver reports it."""
    gce = client.driver
    node = client.node()
    volume = gce.ex_get_volume("web", ZONE)
    for method, call in [
        ("instances.get", lambda: client.reload(node)), ("instances.list", lambda: gce.list_nodes(ex_zone=ZONE)),
        ("instances.aggregatedList", gce.list_nodes), ("instances.insert", lambda: client.node("other")),
        ("instances.delete", lambda: gce.destroy_node(node)), ("instances.stop", lambda: gce.stop_node(node)),
        ("instances.start", lambda: gce.start_node(node)), ("instances.reset", lambda: gce.reboot_node(node)),
        ("instances.getSerialPortOutput", lambda: gce.ex_get_serial_output(node)),
        ("instances.setMachineType", lambda: gce.ex_set_machine_type(node, "e2-medium")),
        ("zoneOperations.get", lambda: gce.stop_node(node)),
        ("disks.list", lambda: gce.list_volumes(ex_zone=ZONE)), ("disks.aggregatedList", gce.list_volumes),
        ("disks.delete", lambda: gce.destroy_volume(volume)), ("images.list", gce.list_images),
        ("images.get", lambda: gce.ex_get_image(gce.ex_get_image(IMAGE).extra["selfLink"])),
        ("images.getFromFamily", lambda: gce.ex_get_image_from_family("debian-12", ["debian-cloud"])),
        ("images.insert", lambda: gce.ex_create_image("golden", volume)),
        ("images.delete", lambda: gce.ex_delete_image(gce.ex_get_image(IMAGE))),
        ("zones.list", gce.ex_list_zones), ("zones.get", lambda: gce.ex_get_zone("mars-1a")),
        ("regions.list", gce.ex_list_regions), ("regions.get", lambda: gce.ex_get_region("mars-1")),
        ("networks.list", gce.ex_list_networks), ("networks.get", lambda: gce.ex_get_network("default")),
        ("subnetworks.list", lambda: gce.ex_list_subnetworks(REGION)),
        ("subnetworks.aggregatedList", gce.ex_list_subnetworks),
        ("subnetworks.get", lambda: gce.ex_get_subnetwork("default", REGION)),
        ("addresses.list", lambda: gce.ex_list_addresses(REGION)), ("addresses.aggregatedList", gce.ex_list_addresses),
        ("machineTypes.get", lambda: gce.ex_get_size("e2-small", ZONE)), ("machineTypes.list", lambda: gce.list_sizes(ZONE)),
        ("machineTypes.aggregatedList", gce.list_sizes), ("diskTypes.get", lambda: gce.ex_get_disktype("pd-ssd", ZONE)),
        ("diskTypes.aggregatedList", gce.ex_list_disktypes),
        ("diskTypes.list", lambda: gce.ex_list_disktypes(ZONE)), ("projects.get", gce.ex_get_project),
    ]:
        emulator.fault(method, {"kind": "forbidden"})
        try:
            client.refused(403, "forbidden", call)
        except Exception as error:
            raise AssertionError(f"{method}: {error!r}") from error


# Methods that the driver has no call for.
NO_CALL = {"disks.get", "instances.suspend", "instances.resume", "instances.bulkInsert", "zoneOperations.list",
           "zoneOperations.wait", "regionOperations.get", "regionOperations.list", "regionOperations.wait",
           "globalOperations.list", "globalOperations.wait", "globalOperations.aggregatedList"}

CASES = [lifecycle, several, images, catalog, failures, refusals]
