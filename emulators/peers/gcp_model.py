"""Checks requests and replies of Compute Engine against Google's discovery document, field by field.

Strict with replies: a field the document does not know, a number where a text belongs (64 bits are texts), a value outside
an enumeration, bytes that are not URL-safe base64, a time that is none, a kind that is missing or another are all
problems. A request that the document does not allow must be refused; one that it allows is the cases' to account for.
The envelope of errors is not in the document.
"""

import datetime
import importlib.resources
import json
import re
import urllib.parse

from tap import Exchange

DOCUMENT = json.loads(importlib.resources.files("googleapiclient").joinpath(
    "discovery_cache/documents/compute.v1.json").read_text())
SCHEMAS = DOCUMENT["schemas"]
BASE = "/" + DOCUMENT["servicePath"]
# Method by name, such as instances.get.
METHODS = {method["id"].split(".", 1)[1]: method
           for resource in DOCUMENT["resources"].values() for method in resource["methods"].values()}
PATHS = {name: re.compile(re.escape(BASE) + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", method["flatPath"]))
         for name, method in METHODS.items()}
RANGES = {"int32": (-2**31, 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-2**63, 2**63 - 1), "uint64": (0, 2**64 - 1)}
# The reference has it for every list and gcloud sends it; this revision of the document does not have it.
OF_LISTS = {"returnPartialSuccess": {"type": "boolean"}}
# Google answers in one alphabet of base64 and takes both.
BYTES = re.compile(r"([\w-]{4})*([\w-]{2}==|[\w-]{3}=)?", re.ASCII)
ANY_BYTES = re.compile(r"[\w+/-]*={0,2}", re.ASCII)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def judge(verb, path, body, status, answer):
    """The exchange that a request and its reply are."""
    name, values = find(verb, urllib.parse.urlsplit(path).path)
    try:
        document = json.loads(answer)
    except ValueError:
        return Exchange(name, status, None, [f"{name}: the reply of {status} is not JSON: {answer[:80]!r}"])
    if status >= 400:
        problems = error_problems(name, status, document)
        return Exchange(name, status, None if problems else document["error"]["errors"][0]["reason"], problems)
    if name not in METHODS:
        return Exchange(name, status, None, [f"{name}: accepted, and the document has no such method"])
    problems = [f"{name}: accepted although {problem}" for problem in request_problems(METHODS[name], values, path, body)]
    problems += [f"{name}{problem}" for problem in reply_problems(METHODS[name], path, document)]
    return Exchange(name, status, None, problems)


def find(verb, path):
    """The name of the method that a request is for, and the values in its path; the request itself if there is none."""
    for name, pattern in PATHS.items():
        if METHODS[name]["httpMethod"] == verb and (found := pattern.fullmatch(path)):
            return name, {key: urllib.parse.unquote(value) for key, value in found.groupdict().items()}
    return f"{verb} {path}", {}


def request_problems(method, values, path, body):
    """What the document does not allow in a request."""
    known = DOCUMENT["parameters"] | method.get("parameters", {})
    if "filter" in known:
        known |= OF_LISTS
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
        yield from walk(method["request"], json.loads(body or b"{}"), "body", is_reply=False)
    elif body and isinstance(given := json.loads(body), dict) and given:
        yield f"it takes no document, and got {given}"


def text_problems(parameter, text, key):
    """What is wrong with a value in a path or a query, where everything is text."""
    if parameter["type"] == "boolean":
        right = text.lower() in ("true", "false")
    elif parameter["type"] == "integer":
        right = text.isdigit() and int(parameter.get("minimum", 0)) <= int(text) <= int(parameter.get("maximum", 2**32 - 1))
    else:
        right = text in parameter.get("enum", [text]) and re.fullmatch(parameter.get("pattern", "(?s:.*)"), text)
    if not right:
        yield f"{key} is {text!r}"


def reply_problems(method, path, document):
    yield from walk(method["response"], document, "", is_reply=True)
    # What is asked for by its own path says that path of itself.
    link = document.get("selfLink") if method["httpMethod"] == "GET" and "family" not in method["parameters"] else None
    if link and urllib.parse.urlsplit(link).path != urllib.parse.urlsplit(path).path:
        yield f"/selfLink: is {link}, and was asked for at {path}"


def error_problems(name, status, document):
    """Google's envelope of errors: the status again, the words again, and a reason."""
    try:
        error, one = document["error"], document["error"]["errors"][0]
        found = {"the document": (set(document), {"error"}), "the code": (error["code"], status),
                 "the error": (set(error) - {"status", "details"}, {"code", "message", "errors"}),
                 "one of the errors": (set(one) - {"location", "locationType"}, {"message", "domain", "reason"}),
                 "the first message": (one["message"], error["message"])}
    except (KeyError, IndexError, TypeError):
        return [f"{name}: {status} with an envelope that is none: {document}"]
    problems = [f"{name}: {what} of {status} is {value}, not {right}"
                for what, (value, right) in found.items() if value != right]
    return problems + [f"{name}: {status} has an empty {key}" for key, value in one.items() if not value]


def walk(schema, value, path, is_reply):
    """What is wrong with a value, and all that is in it."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"]]
    kind = schema["type"]
    if kind == "any" or value is None and not is_reply:
        return
    if not is_reply and kind in ("integer", "string") and type(value) in (int, str):
        # Numbers are taken as texts and texts as numbers.
        value = str(value) if kind == "string" else int(value) if str(value).isdigit() else value
    if not isinstance(value, TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool)):
        yield f"{path}: {json.dumps(value)[:80]} is not of the type {kind}"
    elif kind == "object":
        yield from walk_object(schema, value, path, is_reply)
    elif kind == "array":
        for index, item in enumerate(value):
            yield from walk(schema["items"], item, f"{path}[{index}]", is_reply)
    elif problem := scalar(schema, value, is_reply):
        yield f"{path}: {value!r} {problem}"


def walk_object(schema, value, path, is_reply):
    known = schema.get("properties", {})
    for key, item in value.items():
        inner = known.get(key) or schema.get("additionalProperties")
        if inner:
            yield from walk(inner, item, f"{path}/{key}", is_reply)
        elif known or "format" not in schema:
            yield f"{path}/{key}: the document has no such field"
    said = known.get("kind", {}).get("default")
    if is_reply and said and value.get("kind") != said:
        yield f"{path}/kind: is {value.get('kind')}, not {said}"


def scalar(schema, value, is_reply):
    """Why a text or a number is none of this schema; nothing if it is one."""
    form = schema.get("format")
    if form in RANGES:
        low, high = RANGES[form]
        if not re.fullmatch(r"-?(0|[1-9]\d*)", str(value)) or not low <= int(value) <= high:
            return f"is no {form}"
    if "enum" in schema and value not in schema["enum"]:
        return f"is not one of {schema['enum']}"
    if form == "byte" and not (BYTES if is_reply else ANY_BYTES).fullmatch(value):
        return "is no URL-safe base64"
    if form == "google-datetime" or is_reply and "rfc3339" in schema.get("description", "").lower():
        try:
            datetime.datetime.fromisoformat(value)
        except ValueError:
            return "is no time"
    return None


def self_test():
    """Proves that the check fires: exchanges that are wrong in one way each."""
    path = f"{BASE}projects/p/zones/z/instances"
    one = {"kind": "compute#instance"}
    listed = {"kind": "compute#instanceList", "id": "x", "items": [one]}
    missing = {"message": "gone", "domain": "global", "reason": "notFound"}
    refusal = {"error": {"code": 404, "message": "gone", "errors": [missing]}}
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
    found = lambda case: judge(*case[:4], json.dumps(case[4]).encode()).problems
    failures = [f"should pass: {case}" for case in right if found(case)]
    return failures + [f"should fail: {case}" for case in wrong if not found(case)]
