"""Checks requests and responses of Compute Engine against Google's discovery document, field by field.

The check of responses is strict. All of these are problems: a field that the document does not know, a number instead of a
string (64-bit numbers are strings), a value outside an enumeration, bytes that are not URL-safe base64, an invalid time, a
missing or wrong kind. A request that the document does not allow must be refused; the cases check the requests that it
allows. The error envelope is not in the document.
"""

import datetime
import importlib.resources
import json
import re
import urllib.parse

from recording_proxy import Exchange

DISCOVERY = json.loads(importlib.resources.files("googleapiclient").joinpath(
    "discovery_cache/documents/compute.v1.json").read_text())
SCHEMAS = DISCOVERY["schemas"]
BASE = "/" + DISCOVERY["servicePath"]
# Methods by name, for example instances.get.
METHODS = {method["id"].split(".", 1)[1]: method
           for resource in DISCOVERY["resources"].values() for method in resource["methods"].values()}
PATHS = {name: re.compile(re.escape(BASE) + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", method["flatPath"]))
         for name, method in METHODS.items()}
RANGES = {"int32": (-2**31, 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-2**63, 2**63 - 1), "uint64": (0, 2**64 - 1)}
# The reference documents it for every list and gcloud sends it, but this revision of the document does not have it.
LIST_PARAMETERS = {"returnPartialSuccess": {"type": "boolean"}}
# Google sends one base64 alphabet and accepts both.
BYTES = re.compile(r"([\w-]{4})*([\w-]{2}==|[\w-]{3}=)?", re.ASCII)
ANY_BYTES = re.compile(r"[\w+/-]*={0,2}", re.ASCII)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def check_exchange(verb, path, body, status, content):
    """Creates the exchange of a request and its response."""
    name, values = find(verb, urllib.parse.urlsplit(path).path)
    try:
        document = json.loads(content)
    except ValueError:
        return Exchange(name, status, None, [f"{name}: the response with status {status} is not JSON: {content[:80]!r}"])
    if status >= 400:
        problems = error_problems(name, status, document)
        return Exchange(name, status, None if problems else document["error"]["errors"][0]["reason"], problems)
    if name not in METHODS:
        return Exchange(name, status, None, [f"{name}: accepted, but the document has no such method"])
    problems = [f"{name}: accepted although {problem}" for problem in request_problems(METHODS[name], values, path, body)]
    problems += [f"{name}{problem}" for problem in response_problems(METHODS[name], path, document)]
    return Exchange(name, status, None, problems)


def find(verb, path):
    """Returns the name of a request's method and the values in its path, or verb and path if no method matches."""
    for name, pattern in PATHS.items():
        if METHODS[name]["httpMethod"] == verb and (found := pattern.fullmatch(path)):
            return name, {key: urllib.parse.unquote(value) for key, value in found.groupdict().items()}
    return f"{verb} {path}", {}


def request_problems(method, values, path, body):
    """Yields what the document does not allow in a request."""
    known = DISCOVERY["parameters"] | method.get("parameters", {})
    if "filter" in known:
        known |= LIST_PARAMETERS
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query, keep_blank_values=True)
    for key, texts in [*query.items(), *((key, [value]) for key, value in values.items())]:
        if key not in known:
            yield f"there is no parameter {key}"
        elif len(texts) > 1 and not known[key].get("repeated"):
            yield f"{key} is given {len(texts)} times"
        else:
            yield from (problem for text in texts for problem in text_problems(known[key], text, key))
    for key in method.get("parameterOrder", []):
        if key not in query and key not in values:
            yield f"{key} is missing"
    if "request" in method:
        yield from walk(method["request"], json.loads(body or b"{}"), "body", is_response=False)
    elif body and isinstance(given := json.loads(body), dict) and given:
        yield f"it takes no body, but got {given}"


def text_problems(parameter, text, key):
    """Yields what is wrong with a value in a path or a query, where everything is text."""
    if parameter["type"] == "boolean":
        right = text.lower() in ("true", "false")
    elif parameter["type"] == "integer":
        right = text.isdigit() and int(parameter.get("minimum", 0)) <= int(text) <= int(parameter.get("maximum", 2**32 - 1))
    else:
        right = text in parameter.get("enum", [text]) and re.fullmatch(parameter.get("pattern", "(?s:.*)"), text)
    if not right:
        yield f"{key} is {text!r}"


def response_problems(method, path, document):
    yield from walk(method["response"], document, "", is_response=True)
    # The selfLink of a resource is the path that it was read from.
    link = document.get("selfLink") if method["httpMethod"] == "GET" and "family" not in method["parameters"] else None
    if link and urllib.parse.urlsplit(link).path != urllib.parse.urlsplit(path).path:
        yield f"/selfLink: is {link}, but the resource was read from {path}"


def error_problems(name, status, document):
    """Returns what is wrong with an error: it must repeat the status and the message, and give a reason."""
    try:
        error, one = document["error"], document["error"]["errors"][0]
        found = {"the document": (set(document), {"error"}), "the code": (error["code"], status),
                 "the error": (set(error) - {"status", "details"}, {"code", "message", "errors"}),
                 "one of the errors": (set(one) - {"location", "locationType"}, {"message", "domain", "reason"}),
                 "the first message": (one["message"], error["message"])}
    except (KeyError, IndexError, TypeError):
        return [f"{name}: {status} with an invalid error envelope: {document}"]
    problems = [f"{name}: {what} of {status} is {value}, not {right}"
                for what, (value, right) in found.items() if value != right]
    return problems + [f"{name}: {status} has an empty {key}" for key, value in one.items() if not value]


def walk(schema, value, path, is_response):
    """Yields what is wrong with a value and everything inside it."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"]]
    kind = schema["type"]
    if kind == "any" or value is None and not is_response:
        return
    if not is_response and kind in ("integer", "string") and type(value) in (int, str):
        # In requests, numbers may be strings and strings may be numbers.
        value = str(value) if kind == "string" else int(value) if str(value).isdigit() else value
    if not isinstance(value, TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool)):
        yield f"{path}: {json.dumps(value)[:80]} is not of the type {kind}"
    elif kind == "object":
        yield from walk_object(schema, value, path, is_response)
    elif kind == "array":
        for index, item in enumerate(value):
            yield from walk(schema["items"], item, f"{path}[{index}]", is_response)
    elif problem := scalar(schema, value, is_response):
        yield f"{path}: {value!r} {problem}"


def walk_object(schema, value, path, is_response):
    known = schema.get("properties", {})
    for key, item in value.items():
        inner = known.get(key) or schema.get("additionalProperties")
        if inner:
            yield from walk(inner, item, f"{path}/{key}", is_response)
        elif known or "format" not in schema:
            yield f"{path}/{key}: the document has no such field"
    expected = known.get("kind", {}).get("default")
    if is_response and expected and value.get("kind") != expected:
        yield f"{path}/kind: is {value.get('kind')}, not {expected}"


def scalar(schema, value, is_response):
    """Returns why a string or a number does not match this schema, or None if it does."""
    form = schema.get("format")
    if form in RANGES:
        low, high = RANGES[form]
        if not re.fullmatch(r"-?(0|[1-9]\d*)", str(value)) or not low <= int(value) <= high:
            return f"is not a valid {form}"
    if "enum" in schema and value not in schema["enum"]:
        return f"is not one of {schema['enum']}"
    if form == "byte" and not (BYTES if is_response else ANY_BYTES).fullmatch(value):
        return "is not URL-safe base64"
    if form == "google-datetime" or is_response and "rfc3339" in schema.get("description", "").lower():
        try:
            datetime.datetime.fromisoformat(value)
        except ValueError:
            return "is not a time"
    return None


def self_test():
    """Proves that the check detects errors, with exchanges that are wrong in one way each."""
    path = f"{BASE}projects/p/zones/z/instances"
    one = {"kind": "compute#instance"}
    listed = {"kind": "compute#instanceList", "id": "x", "items": [one]}
    detail = {"message": "gone", "domain": "global", "reason": "notFound"}
    refusal = {"error": {"code": 404, "message": "gone", "errors": [detail]}}
    right = [("GET", f"{path}?maxResults=5&alt=json", b"", 200, listed), ("GET", f"{path}/n", b"", 404, refusal),
             ("GET", f"{path}/n", b"", 200, one | {"id": f"{2**64 - 1}", "fingerprint": "_-8=", "status": "RUNNING"})]
    wrong = [("GET", f"{path}/n", b"", 200, one | more) for more in (
        {"colour": "red"}, {"id": 5}, {"id": "-5"}, {"id": "5.0"}, {"status": "ASLEEP"}, {"fingerprint": "/+8="},
        {"fingerprint": "abc"}, {"creationTimestamp": "today"}, {"kind": "compute#disk"}, {"labels": {"a": 1}},
        {"disks": {}}, {"disks": [{"index": 0}]}, {"canIpForward": "true"}, {"metadata": None},
        {"selfLink": f"https://www.googleapis.com{path}/other"})]
    wrong += [("GET", f"{path}?colour=red", b"", 200, listed), ("GET", f"{path}?maxResults=many", b"", 200, listed),
              ("GET", path, b'{"name": "n"}', 200, listed), ("GET", f"{path}?filter=a&filter=b", b"", 200, listed),
              ("POST", path, b'{"colour": "red"}', 200, {"kind": "compute#operation"}),
              ("GET", f"{BASE}projects/p/clouds", b"", 200, listed), ("GET", path, b"", 200, {}),
              ("GET", f"{path}/n", b"", 404, {}), ("GET", f"{path}/n", b"", 400, refusal),
              ("GET", f"{path}/n", b"", 404, {"error": refusal["error"] | {"errors": [{"reason": "notFound"}]}})]
    problems = lambda case: check_exchange(*case[:4], json.dumps(case[4]).encode()).problems
    failures = [f"should pass: {case}" for case in right if problems(case)]
    return failures + [f"should fail: {case}" for case in wrong if not problems(case)]
