"""google-cloud-compute against the emulator: protocol buffers of every reply, its own pagers, and its own poller."""

import functools
import json
import re

from google.api_core.exceptions import GoogleAPICallError
from google.api_core.future.polling import DEFAULT_POLLING
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
from google.protobuf.json_format import MessageToDict

import gcp_cases
from gcp_bench import PROJECT, ZONE, Bench

# As patient as by default, and quicker: a second between two looks would be most of the time here.
POLLING = DEFAULT_POLLING.with_delay(initial=0.03, maximum=0.3)
# Requests are named after the method and what it is about, which is one thing or many.
REQUESTS = {name.lower(): getattr(compute_v1, name) for name in dir(compute_v1) if name.endswith("Request")}


class ComputeClient(Bench):
    """The methods of the discovery document by name, with and without a wait for their operation."""

    def __init__(self, url):
        super().__init__()
        self.options = {"credentials": AnonymousCredentials(), "client_options": {"api_endpoint": url}}

    @functools.cache
    def client(self, resource):
        """The client of a resource. Its poller has clients of its own, which would ask Google unless they are told."""
        client = getattr(compute_v1, f"{resource[0].upper()}{resource[1:]}Client")(**self.options)
        if hasattr(client.transport, "_extended_operations_services"):
            client.transport._extended_operations_services |= {
                "zone_operations": self.client("zoneOperations"), "region_operations": self.client("regionOperations"),
                "global_operations": self.client("globalOperations")}
        return client

    def ask(self, name, body=None, retry=None, **parameters):
        """The client's own answer: a message, a pager or an operation. Nothing is tried again unless told so."""
        resource, method = name.split(".")
        kind = next(kind for kind in map(REQUESTS.get, (f"{method}{resource}request".lower(),
                                                        f"{method}{one(resource)}request".lower())) if kind)
        if body is not None:
            [field] = [field.json_name for field in kind.pb(kind()).DESCRIPTOR.fields if field.name.endswith("_resource")]
            parameters[field] = body
        request = kind.from_json(json.dumps(parameters))
        named = {} if retry == "default" else {"retry": retry}
        return getattr(self.client(resource), re.sub("([A-Z])", r"_\1", method).lower())(request=request, **named)

    def call(self, name, **parameters):
        return document(self.ask(name, **parameters))

    def pages(self, name, **parameters):
        """Every page that the client's own pager leads to."""
        for page in self.ask(name, **parameters).pages:
            yield document(page).get("items", [])

    def finish(self, name, **parameters):
        """Calls, and waits by the client's own poller. Answers the operation."""
        operation = self.ask(name, **parameters)
        operation.result(timeout=60, polling=POLLING)
        return document(operation)

    def fails(self, code, status, name, **parameters):
        """The poller must raise the operation's error, with its code."""
        try:
            self.finish(name, **parameters)
        except GoogleAPICallError as error:
            found = (error.errors[0].code, int(error.code))
            assert found == (code, status), f"{name}: {found}, not {(code, status)}"
        else:
            raise AssertionError(f"{name}: the poller raised nothing")

    def reason(self, error):
        if isinstance(error, GoogleAPICallError) and error.errors:
            return int(error.code), error.errors[0]["reason"]
        return None


def one(resource):
    return re.sub("(?<=ss)es$|s$", "", resource)


def document(answer):
    """A message, or the one in an operation, with the names of the API."""
    message = getattr(answer, "_extended_operation", answer)
    return MessageToDict(type(message).pb(message))


def retries(client, emulator):
    """Its own retries come through where it reads, and its poller outlives a reply of 503."""
    emulator.fault("zones.get", {"kind": "refused", "status": 503, "code": "backendError", "message": "later"})
    client.expect(503, "backendError")
    assert client.call("zones.get", project=PROJECT, zone=ZONE, retry="default")["name"] == ZONE
    emulator.fault("zoneOperations.get", {"kind": "refused", "status": 503, "code": "backendError", "message": "later"})
    client.expect(503, "backendError")
    client.finish("instances.insert", project=PROJECT, zone=ZONE, body=gcp_cases.instance("web"))


CASES = [*gcp_cases.CASES, retries]
