"""The cases that both of Google's Python clients run against the emulator. A client has `call`, `pages`, `finish`, `fails`
and `refused`, which take a method by its name in the discovery document."""

import uuid

import gcp_model
from gcp_client import IMAGE, OTHER, PROJECT, REGION, ZONE

HERE = {"project": PROJECT, "zone": ZONE}
# An invalid filter, and a name that nothing has.
NO_FILTER, NOBODY = "colour = (red", "nobody"


def instance(name, zone=ZONE, **more):
    """Returns the body of an insert with a new boot disk."""
    return {"name": name, "machineType": f"zones/{zone}/machineTypes/e2-small",
            "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "12"}}],
            "networkInterfaces": [{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}]} | more


def names(pages):
    return [item["name"] for page in pages for item in page]


def everywhere(client, resource, **more):
    """Returns the scopes of an aggregated list, with the items of each."""
    pages = client.pages(f"{resource}.aggregatedList", project=PROJECT, **more)
    return [scope for page in pages for scope in page.items()]


def state(client, name="web"):
    return client.call("instances.get", **HERE, instance=name)["status"]


def lifecycle(client, emulator):
    """A lifecycle: insert, stop, another machine type, start, reset, suspend, resume, delete, not found."""
    web = {**HERE, "instance": "web"}
    spec = instance("web", labels={"a": "b"}, metadata={"items": [{"key": "user-data", "value": "#cloud-config\nü"}]})
    client.finish("instances.insert", **HERE, body=spec)
    shown = client.call("instances.get", **web)
    assert (shown["status"], shown["labels"]) == ("RUNNING", {"a": "b"})
    assert shown["metadata"]["items"] == spec["metadata"]["items"]
    assert shown["disks"][0]["diskSizeGb"] == "12" and shown["networkInterfaces"][0]["accessConfigs"][0]["natIP"]
    assert client.call("instances.getSerialPortOutput", **web)["contents"]
    client.refused(409, "alreadyExists", client.call, "instances.insert", **HERE, body=spec)
    client.finish("instances.stop", **web)
    assert state(client) == "TERMINATED"
    machine = {"machineType": f"zones/{ZONE}/machineTypes/e2-medium"}
    client.finish("instances.setMachineType", **web, body=machine)
    client.finish("instances.start", **web)
    assert client.call("instances.get", **web)["machineType"].endswith("/e2-medium")
    client.refused(400, "invalid", client.call, "instances.setMachineType", **web, body=machine)
    client.finish("instances.reset", **web)
    client.finish("instances.suspend", **web)
    assert state(client) == "SUSPENDED"
    client.finish("instances.resume", **web)
    assert state(client) == "RUNNING"
    client.finish("instances.delete", **web)
    client.refused(404, "notFound", client.call, "instances.get", **web)
    assert names(client.pages("disks.list", **HERE)) == []


def changes(client, emulator):
    """Labels and metadata are replaced with the current fingerprint, and refused with an old one (412)."""
    web = {**HERE, "instance": "web"}
    client.finish("instances.insert", **HERE, body=instance("web", labels={"a": "b"}))
    before = client.call("instances.get", **web)
    labels = {"labels": {"c": "d"}, "labelFingerprint": before["labelFingerprint"]}
    metadata = {"items": [{"key": "e", "value": "f"}], "fingerprint": before["metadata"]["fingerprint"]}
    client.finish("instances.setLabels", **web, body=labels)
    client.finish("instances.setMetadata", **web, body=metadata)
    after = client.call("instances.get", **web)
    assert (after["labels"], after["metadata"]["items"]) == ({"c": "d"}, metadata["items"])
    client.refused(412, "conditionNotMet", client.call, "instances.setLabels", **web, body=labels)
    client.refused(412, "conditionNotMet", client.call, "instances.setMetadata", **web, body=metadata)


def request_ids(client, emulator):
    """The same request id gives the same operation, and another body under it is refused."""
    once = {**HERE, "requestId": str(uuid.uuid4())}
    first = client.finish("instances.insert", **once, body=instance("web"))
    assert client.call("instances.insert", **once, body=instance("web"))["name"] == first["name"]
    client.refused(400, "invalid", client.call, "instances.insert", **once, body=instance("other"))
    client.refused(400, "invalid", client.call, "instances.insert", **HERE, requestId="once", body=instance("other"))
    assert names(client.pages("instances.list", **HERE)) == ["web"]


def fleet(client, emulator):
    """Several at once, filters, pages, and aggregated lists that name the empty zones."""
    properties = instance("", labels={"role": "fleet"}) | {"machineType": "e2-small"}
    del properties["name"]
    body = {"count": "7", "namePattern": "fleet-#", "instanceProperties": properties}
    client.finish("instances.bulkInsert", **HERE, body=body)
    client.finish("instances.insert", project=PROJECT, zone=OTHER, body=instance("away", OTHER))
    pages = list(client.pages("instances.list", **HERE, maxResults=3))
    assert [len(page) for page in pages] == [3, 3, 1] and sorted(names(pages))[0] == "fleet-1"
    assert len(names(client.pages("instances.list", **HERE, filter="labels.role=fleet AND status=RUNNING"))) == 7
    first = client.pages("instances.list", **HERE, filter='name eq "fleet-[12]"', orderBy="name")
    assert names(first) == ["fleet-1", "fleet-2"]
    scopes = dict(everywhere(client, "instances"))
    found = {scope: len(items["instances"]) for scope, items in scopes.items() if "instances" in items}
    assert found == {f"zones/{ZONE}": 7, f"zones/{OTHER}": 1}, found
    assert scopes[f"zones/{REGION}-b"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
    assert sum(len(items.get("instances", [])) for _, items in everywhere(client, "instances", maxResults=3)) == 8
    emulator.fault("instances.list", {"kind": "empty_page"})
    assert len(names(client.pages("instances.list", **HERE))) == 7


def unreachable(client, emulator):
    """An unreachable zone fails its list and the aggregated list."""
    with emulator.set_knobs(unreachable_zones=[OTHER]):
        client.refused(503, "backendError", client.call, "instances.aggregatedList", project=PROJECT)
        client.refused(503, "backendError", client.call, "instances.list", project=PROJECT, zone=OTHER)


def images(client, emulator):
    """An image of a disk, by name and by family; disks that are left over and deleted."""
    client.finish("instances.insert", **HERE, body=instance("web"))
    client.finish("instances.stop", **HERE, instance="web")
    assert client.call("disks.get", **HERE, disk="web")["sizeGb"] == "12"
    body = {"name": "golden-1", "family": "golden", "sourceDisk": f"zones/{ZONE}/disks/web", "labels": {"a": "b"}}
    client.finish("images.insert", project=PROJECT, body=body)
    assert client.call("images.get", project=PROJECT, image="golden-1")["status"] == "READY"
    assert client.call("images.getFromFamily", project=PROJECT, family="golden")["name"] == "golden-1"
    assert names(client.pages("images.list", project=PROJECT, filter="labels.a=b")) == ["golden-1"]
    client.refused(409, "alreadyExists", client.call, "images.insert", project=PROJECT, body=body)
    client.finish("images.delete", project=PROJECT, image="golden-1")
    client.refused(404, "notFound", client.call, "images.getFromFamily", project=PROJECT, family="golden")
    assert len(names(client.pages("images.list", project="debian-cloud", maxResults=1))) > 1
    emulator.control("POST", "external-actions", {"action": "add_disk", **HERE, "name": "spare", "gib": 5})
    assert sorted(names(client.pages("disks.list", **HERE))) == ["spare", "web"]
    client.refused(400, "resourceInUseByAnotherResource", client.call, "disks.delete", **HERE, disk="web")
    client.finish("disks.delete", **HERE, disk="spare")
    assert len(dict(everywhere(client, "disks"))[f"zones/{ZONE}"]["disks"]) == 1


def operations(client, emulator):
    """Operations of zones and of the project: get, wait, list, aggregated list; one that expired."""
    created = client.finish("instances.insert", **HERE, body=instance("web"))
    client.finish("instances.stop", **HERE, instance="web")
    body = {"name": "golden", "sourceDisk": f"zones/{ZONE}/disks/web"}
    image_insert = client.finish("images.insert", project=PROJECT, body=body)
    for scope, where, operation in (("zone", HERE, created), ("global", {"project": PROJECT}, image_insert)):
        for method in ("get", "wait"):
            found = client.call(f"{scope}Operations.{method}", **where, operation=operation["name"])
            assert (found["name"], found["status"], found["progress"]) == (operation["name"], "DONE", 100)
        assert operation["name"] in names(client.pages(f"{scope}Operations.list", **where, maxResults=1))
    region = {"project": PROJECT, "region": REGION}
    assert names(client.pages("regionOperations.list", **region)) == []
    scopes = dict(everywhere(client, "globalOperations"))
    assert [len(scopes[name]["operations"]) for name in ("global", f"zones/{ZONE}")] == [1, 2]
    assert scopes[f"regions/{REGION}"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
    emulator.fault("zoneOperations.get", {"kind": "operation_expired"})
    client.refused(404, "notFound", client.call, "zoneOperations.get", **HERE, operation=created["name"])


def catalog(client, emulator):
    """The catalog: get, list and aggregated list of each resource."""
    known = {"project": PROJECT, "zone": ZONE, "region": REGION, "machineType": "e2-small", "diskType": "pd-ssd",
             "network": "default", "subnetwork": "default"}
    scopes = {"zones": {}, "regions": {}, "networks": {}, "machineTypes": {"zone": ZONE}, "diskTypes": {"zone": ZONE},
              "subnetworks": {"region": REGION}}
    for resource, scope in scopes.items():
        one = known[resource[:-1]]
        shown = client.call(f"{resource}.get", project=PROJECT, **scope, **{resource[:-1]: one})
        assert shown["name"] == one
        listed = list(client.pages(f"{resource}.list", project=PROJECT, **scope, maxResults=1))
        assert one in names(listed) and all(len(page) <= 1 for page in listed), resource
    assert client.call("projects.get", project=PROJECT)["name"] == PROJECT
    assert names(client.pages("addresses.list", project=PROJECT, region=REGION)) == []
    for resource in ("machineTypes", "diskTypes", "subnetworks"):
        scope = f"regions/{REGION}" if resource == "subnetworks" else f"zones/{ZONE}"
        assert dict(everywhere(client, resource))[scope][resource]
    assert "warning" in dict(everywhere(client, "addresses"))[f"regions/{REGION}"]


def scarcity(client, emulator):
    """Quota and rate limit refused at once; stockout, quota and late failure in the operation."""
    request = {**HERE, "body": instance("web")}
    with emulator.set_knobs(cpu_quota=1):
        client.refused(403, "quotaExceeded", client.call, "instances.insert", **request)
    with emulator.set_knobs(cpu_quota=1, quota_check="in_operation"):
        client.fails("QUOTA_EXCEEDED", 403, "instances.insert", **request)
    with emulator.set_knobs(capacity=[{"machines": 0}]):
        client.fails("ZONE_RESOURCE_POOL_EXHAUSTED", 503, "instances.insert", **request)
    client.refused(404, "notFound", client.call, "instances.get", **HERE, instance="web")
    for status in (403, 429):
        with emulator.set_knobs(throttle={"zones.list": {"period": 3600000, "burst": 1}}, throttle_status=status):
            list(client.pages("zones.list", project=PROJECT))
            client.refused(status, "rateLimitExceeded", client.call, "zones.list", project=PROJECT)
    emulator.fault("instances.insert", {"kind": "operation_error", "errors": [{"code": "INTERNAL_ERROR", "message": "oh"}]})
    client.fails("INTERNAL_ERROR", 500, "instances.insert", **request)
    emulator.fault("instances.insert", {"kind": "forbidden"})
    client.refused(403, "forbidden", client.call, "instances.insert", **request)


def refusals(client, emulator):
    """Every supported method refuses a missing resource or an invalid request."""
    known = {"project": PROJECT, "zone": ZONE, "region": REGION}
    bodies = {"instances.setMachineType": {"machineType": f"zones/{ZONE}/machineTypes/e2-small"}}
    with emulator.set_knobs(projects=[PROJECT]):
        for name in emulator.control("GET", "")["methods"]:
            method = gcp_model.METHODS[name]
            given = {key: known.get(key, NOBODY) for key in method["parameterOrder"]}
            if "request" in method:
                given["body"] = bodies.get(name, {})
            if "filter" in method["parameters"]:
                client.refused(400, "invalid", client.call, name, **given, filter=NO_FILTER)
            elif name.endswith("nsert"):
                client.refused(400, "required", client.call, name, **given)
            else:
                client.refused(404, "notFound", client.call, name, **given | {method["parameterOrder"][-1]: NOBODY})


CASES = [lifecycle, changes, request_ids, fleet, unreachable, images, operations, catalog, scarcity, refusals]
