"""What garm-provider-azure needs of Azure and the emulator has no operation for, as a stand-in in front of it.

The emulator's resource groups, networks and security groups are knobs. This stand-in turns the calls that create and delete them
into changes of the knobs: "Resource Groups - Create Or Update" (201), "Resource Groups - Delete" (202 with Location, which answers 202
until everything in the group is deleted, then 200), "Virtual Networks", "Subnets" and "Network Security Groups - Create Or Update"
(201, already Succeeded: real Azure needs at least one more poll each), of the REST API reference. Everything else is the emulator's.
It makes the polls of operations quick: `Retry-After-Ms`, which Azure's SDK for Go reads (azcore, internal/shared).
"""

import json
import re
import threading
import time
import urllib.parse

from proxy import ask

ORIGIN = "https://management.azure.com"
GROUP = re.compile(r"/subscriptions/[^/]+/resourcegroups/([^/]+)$", re.I)
NETWORK = re.compile(r"/subscriptions/[^/]+/resourcegroups/([^/]+)/providers/microsoft\.network/"
                     r"(virtualnetworks|networksecuritygroups)/([^/]+)(?:/subnets/([^/]+))?$", re.I)
DELETION = "/stand-in/deletions/"
# The lists of the oracle in the order in which dependencies allow deletion, with the option of the call.
KINDS = {"vms": "&forceDeletion=true", "nics": "", "public_ips": "", "disks": ""}


class Groups:
    """The upstream for management.azure.com."""

    def __init__(self, emulator):
        self.emulator, self.lock = emulator, threading.Lock()
        self.defaults = {key: emulator.control("GET", "knobs")[key]
                         for key in ("resource_groups", "virtual_networks", "network_security_groups")}
        self.deletions, self.poll_millis = {}, 20
        emulator.control("PATCH", "knobs", {"polling_origin": ORIGIN, "link_origin": ORIGIN})

    def reset(self):
        """Restores the catalog and removes everything else."""
        with self.lock:
            self.emulator.control("PATCH", "knobs", self.defaults)
            self.emulator.control("POST", "reset", {})
            self.deletions = {}

    def left(self):
        """Returns the groups, networks and security groups that were created and still exist."""
        knobs = self.emulator.control("GET", "knobs")
        return {key: [item["name"] for item in knobs[key] if item not in self.defaults[key]] for key in self.defaults}

    def __call__(self, method, path, headers, body):
        place = urllib.parse.unquote(path.partition("?")[0])
        if place.startswith(DELETION):
            return self.poll(place)
        group, network = GROUP.match(place), NETWORK.match(place)
        if method == "PUT" and group:
            return self.put_group(place, group[1], json.loads(body))
        if method == "DELETE" and group:
            return self.delete_group(group[1], headers)
        if method == "PUT" and network:
            return self.put_network(place, network, json.loads(body))
        status, fields, content = ask(self.emulator.address, method, path, headers, body)
        if any(name.lower() == "azure-asyncoperation" for name, _ in fields) or "/operations/" in place.lower():
            fields = [*fields, ("Retry-After-Ms", str(self.poll_millis))]
        return status, fields, content

    def change(self, key, change):
        """Replaces one list of the catalog by what `change` makes of it. `None` changes nothing."""
        with self.lock:
            items = change(self.emulator.control("GET", "knobs")[key])
            if items is not None:
                self.emulator.control("PATCH", "knobs", {key: items})

    def put_group(self, place, name, document):
        self.change("resource_groups", lambda items: [*without(items, name), {"name": name, "location": document["location"]}])
        return answer(201, {"id": place, "name": name, "type": "Microsoft.Resources/resourceGroups", "location": document["location"],
                            "tags": document.get("tags"), "properties": {"provisioningState": "Succeeded"}})

    def exists(self, name):
        return any(same(item["name"], name) for item in self.emulator.control("GET", "knobs")["resource_groups"])

    def put_network(self, place, found, document):
        group, kind, name, subnet = found.groups()
        if not self.exists(group):
            message = f"Resource group '{group}' could not be found."
            return answer(404, {"error": {"code": "ResourceGroupNotFound", "message": message}})
        if kind.lower() == "networksecuritygroups":
            item = {"resource_group": group, "name": name, "location": document["location"]}
            self.change("network_security_groups", lambda items: [*without(items, name, group), item])
        elif subnet:
            prefix = document["properties"]["addressPrefix"]
            self.change("virtual_networks", lambda items: [
                {**item, "subnets": [*without(item["subnets"], subnet), {"name": subnet, "cidr": prefix}]}
                if same(item["name"], name) and same(item["resource_group"], group) else item for item in items])
        else:
            item = {"resource_group": group, "name": name, "location": document["location"], "subnets": []}
            self.change("virtual_networks", lambda items: None if len(without(items, name, group)) < len(items) else [*items, item])
        properties = {**document.get("properties", {}), "provisioningState": "Succeeded"}
        return answer(201, {"id": place, "name": subnet or name, "location": document.get("location"), "properties": properties})

    def delete_group(self, name, headers):
        if not self.exists(name):
            message = f"Resource group '{name}' could not be found."
            return answer(404, {"error": {"code": "ResourceGroupNotFound", "message": message}})
        with self.lock:
            if name not in self.deletions:
                self.deletions[name] = threading.Thread(target=self.empty, args=(name, headers.get("Authorization", "")), daemon=True)
                self.deletions[name].start()
        location = [("Location", f"{ORIGIN}{DELETION}{name}?api-version=2021-04-01"), ("Retry-After-Ms", str(self.poll_millis))]
        return 202, location, b""

    def poll(self, place):
        name = place.removeprefix(DELETION)
        thread = self.deletions.get(name)
        if thread and thread.is_alive():
            return 202, [("Location", f"{ORIGIN}{place}?api-version=2021-04-01"), ("Retry-After-Ms", str(self.poll_millis))], b""
        return 200, [], b""

    def empty(self, name, token):
        """Deletes everything in a group, in the order that dependencies allow, and then the group."""
        part = f"/resourcegroups/{name}/".lower()
        headers = {"Authorization": token, "Host": "management.azure.com"}
        for kind, option in KINDS.items():
            for _ in range(400):
                records = [record for record in self.emulator.control("GET", "oracle")[kind] if part in record["id"].lower()]
                if not records:
                    break
                for record in records:
                    ask(self.emulator.address, "DELETE", f"{record['id']}?api-version=2024-07-01{option}", headers, b"")
                time.sleep(0.05)
        for key in ("virtual_networks", "network_security_groups"):
            self.change(key, lambda items: [item for item in items if not same(item["resource_group"], name)])
        self.change("resource_groups", lambda items: without(items, name))
        with self.lock:
            self.deletions.pop(name, None)


def same(one, other):
    return one.lower() == other.lower()


def without(items, name, group=None):
    """Returns the items with another name, or in another group."""
    return [item for item in items if not (same(item["name"], name) and (group is None or same(item["resource_group"], group)))]


def answer(status, document):
    return status, [("Content-Type", "application/json")], json.dumps(document).encode()


def sign_in(method, path, _headers, _body):
    """The upstream for login.microsoftonline.com: the metadata of a tenant and a token, as azidentity asks for them."""
    tenant = path.split("/")[1]
    base = f"https://login.microsoftonline.com/{tenant}"
    if "openid-configuration" in path:
        return answer(200, {"token_endpoint": f"{base}/oauth2/v2.0/token", "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                            "issuer": f"{base}/v2.0"})
    if "discovery/instance" in path:
        return answer(200, {"tenant_discovery_endpoint": f"{base}/v2.0/.well-known/openid-configuration", "metadata": [
            {"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net",
             "aliases": ["login.microsoftonline.com"]}]})
    return answer(200, {"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600, "access_token": "token"})


sign_in.uncounted = True
