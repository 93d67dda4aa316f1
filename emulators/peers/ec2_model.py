"""Checks a response of EC2 against botocore's service model, element by element.

The check is strict. All of these are problems: an element that the model does not know, a value outside an enumeration, a
text instead of a number, a boolean or a date, an element that occurs twice, an attribute beside the namespace.
"""

import datetime
import urllib.parse
import xml.etree.ElementTree as ET

import botocore.session

from recording_proxy import Exchange

MODEL = botocore.session.get_session().get_service_model("ec2")
NAMESPACE = "{http://ec2.amazonaws.com/doc/2016-11-15/}"
# Elements that the model does not have: every response has the first, actions without an output shape the second.
NOT_IN_MODEL = {"requestId", "return"}


def check_exchange(_verb, path, body, status, content):
    """Creates the exchange of a request and its response."""
    query = urllib.parse.urlsplit(path).query or body.decode()
    action = urllib.parse.parse_qs(query).get("Action", [""])[0]
    code = None if status == 200 else ET.fromstring(content).findtext("Errors/Error/Code")
    return Exchange(action, status, code, response_problems(action, status, content))


def response_problems(action, status, body):
    """Returns what is wrong with a response."""
    try:
        root = ET.fromstring(body)
    except ET.ParseError as error:
        return [f"{action}: not well-formed: {error}"]
    if status != 200:
        return error_problems(action, root)
    problems = []
    if root.tag != f"{NAMESPACE}{action}Response":
        problems.append(f"{action}: the document is a {root.tag}")
    shape = MODEL.operation_model(action).output_shape
    known = {} if shape is None else members(shape)
    for element in unique(root, action, problems):
        name = local(element)
        if name in known:
            walk(known[name], element, f"{action}/{name}", problems)
        elif name not in NOT_IN_MODEL:
            problems.append(f"{action}/{name}: the model has no such element")
    if not root.findtext(f"{NAMESPACE}requestId"):
        problems.append(f"{action}: has no requestId")
    return problems


def error_problems(action, root):
    """Returns what is wrong with an error response. The model does not describe its envelope."""
    shape = [(element.tag, len(element)) for element in root.iter()]
    expected = [("Response", 2), ("Errors", 1), ("Error", 2), ("Code", 0), ("Message", 0), ("RequestID", 0)]
    if shape != expected:
        return [f"{action}: the error is {shape}"]
    return [f"{action}: {name} is empty" for name in ("Errors/Error/Code", "RequestID") if not root.findtext(name)]


def walk(shape, element, path, problems):
    if element.attrib:
        problems.append(f"{path}: has attributes {sorted(element.attrib)}")
    if shape.type_name == "structure":
        known = members(shape)
        for child in unique(element, path, problems):
            name = local(child)
            if name in known:
                walk(known[name], child, f"{path}/{name}", problems)
            else:
                problems.append(f"{path}/{name}: the model has no such element")
        if (element.text or "").strip():
            problems.append(f"{path}: has the text {element.text!r}")
    elif shape.type_name == "list":
        for child in element:
            if local(child) != "item":
                problems.append(f"{path}: a list has {local(child)} and not item")
            walk(shape.member, child, f"{path}/item", problems)
    else:
        scalar(shape, element, path, problems)


def scalar(shape, element, path, problems):
    text = element.text or ""
    if len(element):
        problems.append(f"{path}: a {shape.type_name} has elements inside")
    values = getattr(shape, "enum", None)
    if values and text not in values:
        problems.append(f"{path}: {text!r} is not one of {sorted(values)}")
    parse = {"integer": int, "long": int, "double": float, "float": float, "boolean": boolean, "timestamp": date}
    try:
        parse.get(shape.type_name, str)(text)
    except ValueError:
        problems.append(f"{path}: {text!r} is not a {shape.type_name}")


def boolean(text):
    if text not in ("true", "false"):
        raise ValueError(text)


def date(text):
    datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def members(shape):
    return {member.serialization.get("name") or name: member for name, member in shape.members.items()}


def unique(element, path, problems):
    """Returns the children, and reports names that occur more than once."""
    names = [local(child) for child in element]
    problems += [f"{path}/{name}: occurs {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1]
    return list(element)


def local(element):
    return element.tag.rsplit("}", 1)[-1]


def self_test():
    """Proves that the check detects errors, with bodies that are wrong in one way each."""
    envelope = f'<DescribeInstancesResponse xmlns="{NAMESPACE[1:-1]}"><requestId>r</requestId>{{}}</DescribeInstancesResponse>'
    instance = "<reservationSet><item><instancesSet><item>{}</item></instancesSet></item></reservationSet>"
    right = [
        ("DescribeInstances", 200, envelope.format("")),
        ("DescribeInstances", 200, envelope.format(instance.format("<instanceId>i</instanceId>"))),
        ("CreateTags", 200, f'<CreateTagsResponse xmlns="{NAMESPACE[1:-1]}"><requestId>r</requestId><return>true</return></CreateTagsResponse>'),
    ]
    wrong = [
        ("DescribeInstances", 200, envelope.format("<colour>red</colour>")),
        ("DescribeInstances", 200, envelope.format(instance.format("<colour>red</colour>"))),
        ("DescribeInstances", 200, envelope.format(instance.format("<instanceState><name>asleep</name></instanceState>"))),
        ("DescribeInstances", 200, envelope.format(instance.format("<amiLaunchIndex>one</amiLaunchIndex>"))),
        ("DescribeInstances", 200, envelope.format(instance.format("<launchTime>today</launchTime>"))),
        ("DescribeInstances", 200, envelope.format(instance.format("<ebsOptimized>yes</ebsOptimized>"))),
        ("DescribeInstances", 200, envelope.format(instance.format("<imageId>a</imageId><imageId>b</imageId>"))),
        ("DescribeInstances", 200, envelope.format("<reservationSet><member/></reservationSet>")),
        ("DescribeInstances", 200, "<html>"),
        ("DescribeInstances", 400, "<Response><Errors><Error><Code>x</Code></Error></Errors></Response>"),
        ("RunInstances", 200, envelope.format("")),
    ]
    failures = [f"should pass: {case[2]}" for case in right if response_problems(*case)]
    return failures + [f"should fail: {case[2]}" for case in wrong if not response_problems(*case)]
