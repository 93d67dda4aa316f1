"""google-api-python-client against the emulator: it builds requests from the discovery document and returns the responses unchanged."""

from google.auth.credentials import AnonymousCredentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

import gcp_cases
from gcp_client import OTHER, PROJECT, ZONE, CaseClient


class ApiClient(CaseClient):
    """The methods of the discovery document by name, with and without a wait for their operation."""

    def __init__(self, url):
        super().__init__()
        self.service = build("compute", "v1", credentials=AnonymousCredentials(), static_discovery=True,
                             client_options={"api_endpoint": f"{url}/compute/v1/"})

    def request(self, name, **parameters):
        resource, method = name.split(".")
        return getattr(getattr(self.service, resource)(), method)(**parameters)

    def call(self, name, **parameters):
        return self.request(name, **parameters).execute()

    def pages(self, name, **parameters):
        """Yields every page, following the client's own `…_next`."""
        resource, method = name.split(".")
        request = self.request(name, **parameters)
        while request is not None:
            page = request.execute()
            yield page.get("items", [])
            request = getattr(getattr(self.service, resource)(), f"{method}_next")(request, page)

    def finish(self, name, **parameters):
        """Calls the method, waits with the API's `wait` (this client has no poller), and returns the operation."""
        operation = self.call(name, **parameters)
        scope = {"zone": parameters["zone"]} if "zone" in operation else {}
        wait = "zoneOperations.wait" if scope else "globalOperations.wait"
        while operation["status"] != "DONE":
            operation = self.call(wait, project=parameters["project"], operation=operation["name"], **scope)
        return operation

    def fails(self, code, status, name, **parameters):
        """Checks that the operation fails with this code, which this client leaves in the document."""
        operation = self.finish(name, **parameters)
        found = (operation["error"]["errors"][0]["code"], operation["httpErrorStatusCode"])
        assert found == (code, status), f"{name}: {found}, not {(code, status)}"

    def reason(self, error):
        if isinstance(error, HttpError):
            return error.status_code, error.error_details[0]["reason"]
        return None


def partial(client, emulator):
    """An unreachable zone is named in a partial response."""
    client.finish("instances.insert", project=PROJECT, zone=ZONE, body=gcp_cases.instance("web"))
    with emulator.set_knobs(unreachable_zones=[OTHER]):
        request = client.request("instances.aggregatedList", project=PROJECT)
        # The reference has this parameter; the client's revision of the document does not.
        request.uri += "&returnPartialSuccess=true"
        part = request.execute()
    assert any(OTHER in name for name in part["unreachables"]), part["unreachables"]
    assert len(part["items"][f"zones/{ZONE}"]["instances"]) == 1


CASES = [*gcp_cases.CASES, partial]
