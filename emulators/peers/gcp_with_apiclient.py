"""google-api-python-client against the emulator: requests made of the discovery document itself, replies as they come."""

from google.auth.credentials import AnonymousCredentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

import gcp_cases
from gcp_bench import OTHER, PROJECT, ZONE, Bench


class ApiClient(Bench):
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
        """Every page that the client's own `…_next` leads to."""
        resource, method = name.split(".")
        request = self.request(name, **parameters)
        while request is not None:
            page = request.execute()
            yield page.get("items", [])
            request = getattr(getattr(self.service, resource)(), f"{method}_next")(request, page)

    def finish(self, name, **parameters):
        """Calls, and waits by the API's own wait: this client has no poller. Answers the operation."""
        operation = self.call(name, **parameters)
        scope = {"zone": parameters["zone"]} if "zone" in operation else {}
        wait = "zoneOperations.wait" if scope else "globalOperations.wait"
        while operation["status"] != "DONE":
            operation = self.call(wait, project=parameters["project"], operation=operation["name"], **scope)
        return operation

    def fails(self, code, status, name, **parameters):
        """The operation must end with this code; this client leaves it in the document."""
        operation = self.finish(name, **parameters)
        found = (operation["error"]["errors"][0]["code"], operation["httpErrorStatusCode"])
        assert found == (code, status), f"{name}: {found}, not {(code, status)}"

    def reason(self, error):
        if isinstance(error, HttpError):
            return error.status_code, error.error_details[0]["reason"]
        return None


def partial(client, emulator):
    """A zone that does not answer is named where a part will do."""
    client.finish("instances.insert", project=PROJECT, zone=ZONE, body=gcp_cases.instance("web"))
    with emulator.turned(unreachable_zones=[OTHER]):
        request = client.request("instances.aggregatedList", project=PROJECT)
        # The reference has this parameter; this revision of the document, which the client goes by, does not.
        request.uri += "&returnPartialSuccess=true"
        part = request.execute()
    assert any(OTHER in name for name in part["unreachables"]), part["unreachables"]
    assert len(part["items"][f"zones/{ZONE}"]["instances"]) == 1


CASES = [*gcp_cases.CASES, partial]
