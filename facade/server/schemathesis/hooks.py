"""Puts existing ids into generated requests, so that they get beyond the first check of the service.

Only requests that fit the schema are changed, and only by other values that fit it. Requests that must be refused are sent as they are generated.
"""

import itertools
import json
import os

import schemathesis

IDS = json.loads(os.environ["FLEETWRIGHT_IDS"])
TENANT = {name: IDS[name] for name in ("organizationId", "projectId")}
# What the catalog, the roles and the quotas of the sample have. A generated name is in none of them.
FLAVORS = ["standard-2", "arm-2"]
IMAGES = {"standard-2": "debian-13", "arm-2": "debian-13-arm"}
ROLES = {0: "platform-administrator", 1: "organization-administrator", 2: "project-user"}
KINDS = ["servers", "gpus", "public-ips", "networks", "images", "ssh-authorities"]
# How long a long poll or a watch may take. Both would wait for something that does not come.
SHORT = 0
KEYS = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    shorten(case)
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if isinstance(case.body, dict):
        fill_body(case.operation.definition.raw["operationId"], case.body, is_linked(case))
    if is_linked(case):
        renew_key(case)
    else:
        fill_path(case)


def is_linked(case):
    """Whether the request follows a link, whose ids stay."""
    return case.meta.phase.name.value == "stateful"


def renew_key(case):
    """A sequence begins with new records. A key of an earlier sequence would repeat a response about a record that is deleted since."""
    headers = case.headers or {}
    if "Idempotency-Key" in headers:
        case.headers["Idempotency-Key"] = f"sequence-{next(KEYS)}"


def shorten(case):
    """Lets a watch end, and a long poll respond at once, unless the parameter is meant to be refused."""
    waits = case.operation.definition.raw["operationId"] in ("watchInstances", "readInstance")
    if not waits or not isinstance(case.query, (dict, type(None))):
        return
    query = dict(case.query or {})
    if "timeout" not in query or (isinstance(query["timeout"], int) and not isinstance(query["timeout"], bool) and 0 <= query["timeout"] <= 25):
        query["timeout"] = SHORT
        case.query = query


def pick(values, text):
    return values[sum(map(ord, str(text))) % len(values)]


def fill_path(case):
    parameters = case.path_parameters
    if not isinstance(parameters, dict) or case.method.upper() != "GET":
        return
    # Half of them, so that there are ids of nothing too.
    if sum(map(ord, str(parameters))) % 2 == 0:
        parameters.update({name: IDS[name] for name in IDS if name in parameters})


def fill_body(operation, body, linked):
    if operation in ("createInstance", "updateInstance"):
        spec = body["spec"]
        spec["flavorId"] = pick(FLAVORS, spec["flavorId"])
        spec["imageId"] = IMAGES[spec["flavorId"]]
        if operation == "createInstance":
            spec.update(TENANT, networkId=IDS["networkId"])
            # A certificate authority or a group of nothing would be all that is ever refused.
            spec.pop("sshCertificateAuthorityId", None)
            (spec.get("networking") or {}).pop("securityGroups", None)
        # Random bytes are no user data, and no region supports source addresses: one of four is sent to be refused.
        if sum(map(ord, body["metadata"]["name"])) % 4:
            spec.pop("userData", None)
            (spec.get("networking") or {}).pop("allowedSourceAddresses", None)
    if operation == "createNetwork":
        body["regionId"] = IDS["regionId"]
    if operation in ("createNetwork", "createSshAuthority") and not linked:
        body.update(TENANT)
    if operation == "createSecurityGroup" and not linked:
        body["networkId"] = IDS["networkId"]
    if operation == "createRoleBinding":
        scope = body["scope"]
        body["role"] = ROLES[sum(scope.get(name) is not None for name in TENANT)]
        scope.update({name: TENANT[name] for name in TENANT if scope.get(name) is not None})
    if operation in ("updateOrganizationQuota", "updateProjectQuota"):
        for limit in body["limits"]:
            limit["kind"] = pick(KINDS, limit["kind"])
