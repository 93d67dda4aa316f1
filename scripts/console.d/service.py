"""The programs that the cases start, and their interface without the page."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "facade/server/src/sample"
CONFIG = """\
database = "fleet.db"
catalog = "catalog.toml"
tokens = "tokens.toml"
administrator = "olga"

[[region]]
provider = "memory"
mapping = "mapping.toml"
"""


class Service:
    """A running program."""

    def __init__(self, program, arguments, port=0):
        command = [program, "--listen", f"127.0.0.1:{port}", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "RUST_LOG": "warn"})
        self.greeting = line = self.process.stdout.readline()
        if " http://" not in line:
            raise RuntimeError(f"the service printed {line!r} instead of its address")
        self.url = line.split()[-1]
        # Only the sample prints more. Its last line is known.
        while "--config" not in arguments and "openapi.json" not in line:
            line = self.process.stdout.readline()
            self.greeting += line

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Sample(Service):
    """The sample, as `cargo run -p fleetwright-server` starts it."""

    def __init__(self, program, arguments):
        super().__init__(program, arguments)
        self.token = next(line for line in self.greeting.splitlines() if line.startswith("export TOKEN=")).split("=", 1)[1]
        self.olga = Client(self.url, self.token)
        [network] = self.olga.get("/api/v2/networks")["items"]
        self.tenant = {"organizationId": network["organizationId"], "projectId": network["projectId"], "networkId": network["id"]}

    def new_instance(self, name, flavor="standard-2", image="debian-13", **metadata):
        spec = {**self.tenant, "flavorId": flavor, "imageId": image}
        return self.olga.post("/api/v2/instances", {"metadata": {"name": name, **metadata}, "spec": spec})["metadata"]["id"]

    def wait_until_empty(self):
        deadline = time.monotonic() + 60
        while self.olga.get("/api/v2/instances")["items"]:
            assert time.monotonic() < deadline, "the instances are not deleted"
            time.sleep(0.1)


class Installation:
    """A service with a configuration, so that it can be restarted and has several users."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        folder.mkdir()
        for name in ("catalog.toml", "mapping.toml"):
            shutil.copy(SAMPLE / name, folder / name)
        (folder / "server.toml").write_text(CONFIG)
        self.tokens = {name: self.new_token(name) for name in ("olga", "rita", "nobody", "tom")}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()
        self.olga = Client(self.url, self.tokens["olga"])
        self.organization = self.olga.post("/api/v2/organizations", {"name": "acme"})["id"]
        self.project = self.olga.post(f"/api/v2/organizations/{self.organization}/projects", {"name": "shop"})["id"]
        self.scope = {"organizationId": self.organization, "projectId": self.project}
        for user, role in (("rita", "project-reader"), ("tom", "project-user")):
            self.olga.post("/api/v2/rolebindings", {"actor": f"user:{user}", "role": role, "scope": self.scope})
        network = {**self.scope, "regionId": "north", "name": "blue", "prefix": "10.0.0.0/16"}
        self.network = self.olga.post("/api/v2/networks", network)["id"]

    def new_token(self, actor):
        command = [self.program, "token", "new", "--actor", actor, "--tokens", str(self.folder / "tokens.toml")]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self):
        self.service = Service(self.program, ["--config", str(self.folder / "server.toml")], self.port)
        self.url = self.service.url

    def stop(self):
        self.service.stop()

    def wait_until(self, user, status):
        """Waits until the service, which looks at its file of tokens now and then, accepts or refuses a user."""
        deadline = time.monotonic() + 60
        while (found := Client(self.url, self.tokens[user]).status("/api/v2/caller")) != status:
            assert time.monotonic() < deadline, f"the service still answers {found} to {user}"
            time.sleep(0.1)

    def new_instance(self, name, **metadata):
        spec = {**self.scope, "networkId": self.network, "flavorId": "standard-2", "imageId": "debian-13"}
        return self.olga.post("/api/v2/instances", {"metadata": {"name": name, **metadata}, "spec": spec})["metadata"]["id"]


class Client:
    """The interface, as one caller."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def get(self, path):
        return self.send("GET", path)

    def post(self, path, body):
        return self.send("POST", path, body)

    def put(self, path, body):
        return self.send("PUT", path, body)

    def delete(self, path):
        return self.send("DELETE", path)

    def status(self, path):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(text) if text else None
