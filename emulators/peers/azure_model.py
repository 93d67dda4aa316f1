"""Checks Azure's documents strictly against the models of Azure's own packages: unknown members are reported, and required
members must be there. The packages' own parsers accept both errors."""

import enum
import functools
import json
import re
import sys
import types
import typing
import urllib.parse

import azure.mgmt.compute.models as compute
import azure.mgmt.network.models as network

from recording_proxy import Exchange

# The model of each operation's document; a list means pages of that model. Other documents are checked by member names.
MODELS = {
    "VirtualMachines_CreateOrUpdate": compute.VirtualMachine, "VirtualMachines_Update": compute.VirtualMachine,
    "VirtualMachines_Get": compute.VirtualMachine, "VirtualMachines_InstanceView": compute.VirtualMachineInstanceView,
    "VirtualMachines_List": [compute.VirtualMachine], "VirtualMachines_ListAll": [compute.VirtualMachine],
    "VirtualMachines_ListByLocation": [compute.VirtualMachine],
    "VirtualMachines_RetrieveBootDiagnosticsData": compute.RetrieveBootDiagnosticsDataResult,
    "VirtualMachineSizes_List": [compute.VirtualMachineSize], "ResourceSkus_List": [compute.ResourceSku],
    "Usage_List": [compute.Usage],
    "Disks_CreateOrUpdate": compute.Disk, "Disks_Get": compute.Disk, "Disks_List": [compute.Disk],
    "Disks_ListByResourceGroup": [compute.Disk],
    "Images_CreateOrUpdate": compute.Image, "Images_Get": compute.Image, "Images_List": [compute.Image],
    "Images_ListByResourceGroup": [compute.Image],
    "NetworkInterfaces_CreateOrUpdate": network.NetworkInterface, "NetworkInterfaces_Get": network.NetworkInterface,
    "NetworkInterfaces_List": [network.NetworkInterface], "NetworkInterfaces_ListAll": [network.NetworkInterface],
    "PublicIPAddresses_CreateOrUpdate": network.PublicIPAddress, "PublicIPAddresses_Get": network.PublicIPAddress,
    "PublicIPAddresses_List": [network.PublicIPAddress], "PublicIPAddresses_ListAll": [network.PublicIPAddress],
    "VirtualNetworks_Get": network.VirtualNetwork, "VirtualNetworks_List": [network.VirtualNetwork],
    "VirtualNetworks_ListAll": [network.VirtualNetwork], "Subnets_Get": network.Subnet, "Subnets_List": [network.Subnet],
    "NetworkSecurityGroups_Get": network.NetworkSecurityGroup,
    "NetworkSecurityGroups_List": [network.NetworkSecurityGroup],
}
MODELS |= {
    "Disks_Update": compute.Disk, "Images_Update": compute.Image,
    **{f"Snapshots_{it}": compute.Snapshot for it in ("CreateOrUpdate", "Get", "Update")},
    "Snapshots_List": [compute.Snapshot], "Snapshots_ListByResourceGroup": [compute.Snapshot],
    **{f"SshPublicKeys_{it}": compute.SshPublicKeyResource for it in ("Create", "Get", "Update")},
    "SshPublicKeys_ListByResourceGroup": [compute.SshPublicKeyResource],
    "SshPublicKeys_ListBySubscription": [compute.SshPublicKeyResource],
    "VirtualMachines_ListAvailableSizes": [compute.VirtualMachineSize],
    "VirtualMachineExtensions_List": [compute.VirtualMachineExtension],
    "VirtualMachineImages_Get": compute.VirtualMachineImage,
    "NetworkInterfaces_UpdateTags": network.NetworkInterface, "PublicIPAddresses_UpdateTags": network.PublicIPAddress,
    "VirtualNetworks_CreateOrUpdate": network.VirtualNetwork, "VirtualNetworks_UpdateTags": network.VirtualNetwork,
    "Subnets_CreateOrUpdate": network.Subnet, "NetworkSecurityGroups_CreateOrUpdate": network.NetworkSecurityGroup,
    "NetworkSecurityGroups_UpdateTags": network.NetworkSecurityGroup,
    "NetworkSecurityGroups_ListAll": [network.NetworkSecurityGroup],
    "SecurityRules_CreateOrUpdate": network.SecurityRule, "SecurityRules_Get": network.SecurityRule,
    "SecurityRules_List": [network.SecurityRule], "DefaultSecurityRules_List": [network.SecurityRule],
}
# These lists are arrays, without pages.
ARRAYS = {f"VirtualMachineImages_{it}" for it in ("ListPublishers", "ListOffers", "ListSkus", "List")}
# The list of a subscription, where the list of a group is called ListByResourceGroup.
BY_GROUP = {"Disks": "List", "Images": "List", "Snapshots": "List", "SshPublicKeys": "ListBySubscription"}
# The members of documents that no model of these packages describes.
MEMBERS = {
    "Operations_Get": {"startTime", "endTime", "status", "name", "error"},
    "ResourceGroups_Get": {"id", "name", "type", "location", "properties"},
    "ResourceGroups_List": {"value", "nextLink"},
    "Subscriptions_ListLocations": {"value", "nextLink"},
    "Providers_Get": {"id", "namespace", "registrationState", "resourceTypes"},
}
# Paths of members that Azure is known to send and the models do not know. There are none so far; one that no response
# has fails.
ADDITIONS = set()
RECEIVED = set()
VALUES = {"InProgress", "Succeeded", "Failed"}


class Router:
    """Finds the operation of a method and a path."""

    def __init__(self):
        scope = "/subscriptions/[^/]+"
        group = scope + "/resourcegroups/[^/]+/providers"
        kinds = {
            "Disks": "microsoft.compute/disks", "Images": "microsoft.compute/images",
            "NetworkInterfaces": "microsoft.network/networkinterfaces",
            "PublicIPAddresses": "microsoft.network/publicipaddresses",
            "VirtualMachines": "microsoft.compute/virtualmachines",
            "VirtualNetworks": "microsoft.network/virtualnetworks",
            "NetworkSecurityGroups": "microsoft.network/networksecuritygroups", "Snapshots": "microsoft.compute/snapshots",
            "SshPublicKeys": "microsoft.compute/sshpublickeys",
        }
        rows = []
        for name, kind in kinds.items():
            one = f"{group}/{kind}/[^/]+"
            grouped = "ListByResourceGroup" if name in BY_GROUP else "List"
            everywhere = BY_GROUP.get(name, "ListAll")
            create = "Create" if name == "SshPublicKeys" else "CreateOrUpdate"
            update = "UpdateTags" if "microsoft.network" in kind else "Update"
            rows += [("PUT", one, f"{name}_{create}"), ("GET", one, f"{name}_Get"),
                     ("DELETE", one, f"{name}_Delete"), ("PATCH", one, f"{name}_{update}"),
                     ("GET", f"{group}/{kind}", f"{name}_{grouped}"),
                     ("GET", f"{scope}/providers/{kind}", f"{name}_{everywhere}")]
        vm = f"{group}/microsoft.compute/virtualmachines/[^/]+"
        for verb in ("Start", "PowerOff", "Restart", "Deallocate", "Generalize", "SimulateEviction",
                     "RetrieveBootDiagnosticsData", "Reapply", "Redeploy"):
            rows.append(("POST", f"{vm}/{verb.lower()}", f"VirtualMachines_{verb}"))
        place = f"{scope}/providers/microsoft.compute/locations/[^/]+"
        network_path = f"{group}/microsoft.network/virtualnetworks/[^/]+"
        rules = f"{group}/microsoft.network/networksecuritygroups/[^/]+"
        offers = f"{place}/publishers/[^/]+/artifacttypes/vmimage/offers"
        rows += [
            ("GET", f"{vm}/instanceview", "VirtualMachines_InstanceView"),
            ("GET", f"{place}/virtualmachines", "VirtualMachines_ListByLocation"),
            ("GET", f"{place}/vmsizes", "VirtualMachineSizes_List"), ("GET", f"{place}/usages", "Usage_List"),
            ("GET", f"{scope}/providers/microsoft.compute/skus", "ResourceSkus_List"),
            ("GET", f"{scope}/providers/[^/]+/locations/[^/]+/operations/[^/]+", "Operations_Get"),
            ("GET", f"{scope}/providers/[^/]+", "Providers_Get"),
            ("GET", f"{scope}/locations", "Subscriptions_ListLocations"),
            ("GET", f"{scope}/resourcegroups", "ResourceGroups_List"),
            ("GET", f"{scope}/resourcegroups/[^/]+", "ResourceGroups_Get"),
            ("HEAD", f"{scope}/resourcegroups/[^/]+", "ResourceGroups_CheckExistence"),
            ("GET", f"{network_path}/subnets", "Subnets_List"),
            ("GET", f"{network_path}/subnets/[^/]+", "Subnets_Get"),
            ("PUT", f"{network_path}/subnets/[^/]+", "Subnets_CreateOrUpdate"),
            ("DELETE", f"{network_path}/subnets/[^/]+", "Subnets_Delete"),
            ("GET", f"{rules}/securityrules", "SecurityRules_List"),
            ("GET", f"{rules}/defaultsecurityrules", "DefaultSecurityRules_List"),
            ("GET", f"{rules}/securityrules/[^/]+", "SecurityRules_Get"),
            ("PUT", f"{rules}/securityrules/[^/]+", "SecurityRules_CreateOrUpdate"),
            ("DELETE", f"{rules}/securityrules/[^/]+", "SecurityRules_Delete"),
            ("GET", f"{vm}/vmsizes", "VirtualMachines_ListAvailableSizes"),
            ("GET", f"{vm}/extensions", "VirtualMachineExtensions_List"),
            ("DELETE", f"{vm}/extensions/[^/]+", "VirtualMachineExtensions_Delete"),
            ("GET", f"{place}/publishers", "VirtualMachineImages_ListPublishers"),
            ("GET", f"{offers}", "VirtualMachineImages_ListOffers"),
            ("GET", f"{offers}/[^/]+/skus", "VirtualMachineImages_ListSkus"),
            ("GET", f"{offers}/[^/]+/skus/[^/]+/versions", "VirtualMachineImages_List"),
            ("GET", f"{offers}/[^/]+/skus/[^/]+/versions/[^/]+", "VirtualMachineImages_Get"),
            ("GET", "/bootdiagnostics/[^/]+/[^/]+", "Blob_Get"),
        ]
        self.rows = [(method, re.compile(path), name) for method, path, name in rows]

    def name(self, method, path):
        path = urllib.parse.urlsplit(path).path.lower().rstrip("/")
        for known, pattern, name in self.rows:
            if known == method and pattern.fullmatch(path):
                return name
        return f"{method} {path}"


ROUTER = Router()


def check_exchange(method, path, _body, status, content):
    """Creates the exchange of a request and its response."""
    operation = ROUTER.name(method, path)
    if operation == "Blob_Get" and status == 200:
        return Exchange(operation, status, None, [] if content else ["Blob_Get: an empty console"])
    document = json.loads(content) if content else None
    if status >= 300:
        code = document["error"]["code"] if document else None
        return Exchange(operation, status, code, error_problems(operation, document))
    return Exchange(operation, status, None, [f"{operation}: {it}" for it in response_problems(operation, status, document)])


def error_problems(operation, document):
    if document is None:
        return [] if operation.startswith("ResourceGroups_Check") else [f"{operation}: an error without a document"]
    error = document.get("error", {})
    wrong = set(document) ^ {"error"} | set(error) - {"code", "message", "target", "details"}
    wrong |= {name for name in ("code", "message") if not isinstance(error.get(name), str)}
    return [f"{operation}: the error's {name}" for name in wrong]


def response_problems(operation, status, document):
    if operation in ARRAYS:
        return [problem for item in document for problem in type_problems(compute.VirtualMachineImageResource, item, "")]
    if document is None:
        fine = status in (202, 204) or operation in ("Operations_Get", "VirtualMachines_Generalize", "SshPublicKeys_Delete")
        return [] if fine else [f"status {status} and no document"]
    model = MODELS.get(operation)
    if model is None:
        unknown = set(document) - MEMBERS.get(operation, set())
        problems = [f"unknown member {name}" for name in unknown]
        if operation == "Operations_Get" and document.get("status") not in VALUES:
            problems.append(f"status {document.get('status')!r}")
        return problems
    if not isinstance(model, list):
        return list(type_problems(model, document, ""))
    problems = [f"unknown member {name}" for name in set(document) - {"value", "nextLink"}]
    for item in document["value"]:
        problems += type_problems(model[0], item, "")
    return problems


def type_problems(kind, value, path):
    """Yields what is wrong with a value that must have this type, which is an annotation."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [it for it in parts if it is not type(None)]
        enums = [it for it in kinds if isinstance(it, type) and issubclass(it, enum.Enum)]
        if enums:
            yield from enum_problems(enums[0], value, path)
        elif len(kinds) == 1:
            yield from type_problems(kinds[0], value, path)
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path} is not a list"
            return
        for item in value:
            yield from type_problems(parts[0], item, path + "[]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path} is not an object"
    elif hasattr(kind, "_is_model"):
        yield from model_problems(kind, value, path)
    elif kind in (str, int, bool, float):
        fits = isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
        if not fits and not (kind is float and isinstance(value, int)):
            yield f"{path} is {type(value).__name__}, not {kind.__name__}"


# The packages' documentation says that these lists are open: sizes, SKUs and API versions.
OPEN_ENUMS = {"VirtualMachineSizeTypes", "NetworkApiVersion"}


def enum_problems(kind, value, path):
    known = {member.value.lower() for member in kind}
    if kind.__name__ not in OPEN_ENUMS and str(value).lower() not in known:
        yield f"{path} is {value!r}, which {kind.__name__} does not know"


def model_problems(kind, value, path):
    if not isinstance(value, dict):
        yield f"{path} is not an object"
        return
    fields = fields_of(kind)
    for name, member in value.items():
        where = f"{path}.{name}".lstrip(".")
        if name not in fields:
            RECEIVED.add(where)
            if where not in ADDITIONS:
                yield f"{kind.__name__} does not know {where}"
        else:
            yield from type_problems(fields[name][0], member, where)
    for name, (_, required) in fields.items():
        if required and name not in value:
            yield f"{kind.__name__} misses {path}.{name}"


@functools.cache
def fields_of(kind):
    """Returns the members of a model by their JSON names, with their types and whether they are required."""
    kind({})
    package = sys.modules[kind.__module__.rsplit(".", 1)[0]]
    scope = {**vars(sys.modules[kind.__module__]), "_models": package, "_types": package}
    hints = {}
    for base in reversed(kind.__mro__):
        for name, hint in vars(base).get("__annotations__", {}).items():
            hints[name] = typing.ForwardRef(hint) if isinstance(hint, str) else hint
    resolved = typing.get_type_hints(types.SimpleNamespace(__annotations__=hints), scope)
    return {field._rest_name: (resolved[name], type(None) not in typing.get_args(resolved[name]))
            for name, field in kind._attr_to_rest_field.items()}


def unneeded():
    """Returns the additions that no response had."""
    return [f"no response has {path}" for path in sorted(ADDITIONS - RECEIVED)]


def self_test():
    """Proves that a good document passes and that each kind of error is detected."""
    good = {"location": "eastus", "properties": {"hardwareProfile": {"vmSize": "Huge"}, "priority": "Spot"}}
    bad = {
        "unknown": {**good, "colour": "red"},
        "missing": {"properties": {}},
        "type": {**good, "zones": "1"},
        "enum": {"location": "eastus", "properties": {"priority": "Urgent"}},
        "deep": {"location": "eastus", "properties": {"storageProfile": {"osDisk": {"colour": "red"}}}},
    }
    if found := list(type_problems(compute.VirtualMachine, good, "")):
        yield f"a good document has problems: {found}"
    for name, document in bad.items():
        if not list(type_problems(compute.VirtualMachine, document, "")):
            yield f"the check does not detect the error `{name}`"
    if not error_problems("x", {"error": {"code": 1}}):
        yield "the check does not detect a malformed error"
