"""google-cloud-compute against the emulator: it parses every response into protocol buffers, with its own pagers and poller."""

import functools
import json
import re

from google.api_core.exceptions import GoogleAPICallError
from google.api_core.future.polling import DEFAULT_POLLING
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
from google.protobuf.json_format import MessageToDict

import gcp_cases
from gcp_client import PROJECT, ZONE, CaseClient

# The default timeout with shorter delays: the default delay of a second would be most of the test's time.
POLLING = DEFAULT_POLLING.with_delay(initial=0.03, maximum=0.3)
# Request types are named after the method and the resource, in singular or plural.
REQUESTS = {name.lower(): getattr(compute_v1, name) for name in dir(compute_v1) if name.endswith("Request")}


class ComputeClient(CaseClient):
    """The methods of the discovery document by name, with and without a wait for their operation."""

    def __init__(self, url):
        super().__init__()
        self.options = {"credentials": AnonymousCredentials(), "client_options": {"api_endpoint": url}}

    @functools.cache
    def client(self, resource):
        """Returns the client of a resource. Its poller has its own clients, which would call Google unless they are replaced."""
        client = getattr(compute_v1, f"{resource[0].upper()}{resource[1:]}Client")(**self.options)
        if hasattr(client.transport, "_extended_operations_services"):
            client.transport._extended_operations_services |= {
                "zone_operations": self.client("zoneOperations"), "region_operations": self.client("regionOperations"),
                "global_operations": self.client("globalOperations")}
        return client

    def send(self, name, body=None, retry=None, **parameters):
        """Returns the client's own result: a message, a pager or an operation. Retries are off unless `retry` is given."""
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
        return document(self.send(name, **parameters))

    def pages(self, name, **parameters):
        """Yields every page of the client's own pager."""
        for page in self.send(name, **parameters).pages:
            yield document(page).get("items", [])

    def finish(self, name, **parameters):
        """Calls the method, waits with the client's own poller, and returns the operation."""
        operation = self.send(name, **parameters)
        operation.result(timeout=60, polling=POLLING)
        return document(operation)

    def fails(self, code, status, name, **parameters):
        """Checks that the poller raises the operation's error with this code."""
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


def document(result):
    """Returns a message, or the message of an operation, as a document with the API's names."""
    message = getattr(result, "_extended_operation", result)
    return MessageToDict(type(message).pb(message))


def retries(client, emulator):
    """Its own retries make reads succeed, and its poller survives a 503 response."""
    emulator.fault("zones.get", {"kind": "refused", "status": 503, "code": "backendError", "message": "later"})
    client.expect(503, "backendError")
    assert client.call("zones.get", project=PROJECT, zone=ZONE, retry="default")["name"] == ZONE
    emulator.fault("zoneOperations.get", {"kind": "refused", "status": 503, "code": "backendError", "message": "later"})
    client.expect(503, "backendError")
    client.finish("instances.insert", project=PROJECT, zone=ZONE, body=gcp_cases.instance("web"))


CASES = [*gcp_cases.CASES, retries]
