"""Plays the machines: for each machine that the emulator runs, the calls of GARM's install script."""

import base64
import gzip
import json
import re
import threading
import urllib.error
import urllib.request

JWT = re.compile(rb"eyJ[\w-]+\.[\w-]+\.[\w-]+")
METADATA = re.compile(rb"http://127\.0\.0\.1:\d+/api/v1/metadata")
BASE64 = re.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")


class Machines:
    """Watches the oracle of an emulator and plays each new machine once, until `close`."""

    def __init__(self, emulator, cloud, forge):
        self.emulator, self.cloud, self.forge = emulator, cloud, forge
        self.played, self.problems = {}, []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stopped.wait(0.3):
            running = [machine for machine in self.cloud.machines(self.emulator.control("GET", "oracle")) if machine.running]
            alive = {machine.key for machine in running}
            for key in [key for key in self.played if key not in alive]:
                self.forge.unregister(self.played.pop(key))
            for machine in running:
                if machine.key not in self.played:
                    try:
                        self.played[machine.key] = self.play(machine)
                    except (OSError, RuntimeError) as error:
                        # GARM may be down, or may not know the machine any more. The next round tries again.
                        self.problems.append(f"{machine.key}: {error}")

    def play(self, machine):
        """Does what the install script does, with nothing but the machine's user data. Returns the runner's name."""
        token, metadata = credentials(machine.user_data)
        name = claims(token)["name"]
        script = call("GET", f"{metadata}/install-script", token)
        if b"registration-token" not in script:
            raise RuntimeError(f"the install script of {name} does not register a runner")
        registration = call("GET", f"{metadata}/runner-registration-token/", token).decode().strip().strip('"')
        labels = re.search(rb'--labels "([^"]*)"', script)[1].decode().split(",")
        number = self.forge.register(registration, name, labels)
        callbacks = metadata.removesuffix("/metadata") + "/callbacks"
        call("POST", f"{callbacks}/status", token, {"status": "installing", "message": "configuring runner"})
        call("POST", f"{callbacks}/system-info/", token, {"os_name": "Ubuntu", "os_version": "22.04", "agent_id": number})
        call("POST", f"{callbacks}/status", token, {"status": "idle", "message": "runner successfully installed", "agent_id": number})
        return name

    def close(self):
        self.stopped.set()
        self.thread.join()


def credentials(user_data):
    """Returns the instance token and the metadata URL in a machine's user data, also if parts are compressed or encoded."""
    parts, seen = [user_data or b""], []
    while parts:
        part = parts.pop()
        if part.startswith(b"\x1f\x8b"):
            part = gzip.decompress(part)
        seen.append(part)
        for encoded in BASE64.findall(part):
            try:
                parts.append(base64.b64decode(encoded, validate=True))
            except ValueError:
                continue
    everything = b"\n".join(seen)
    token, metadata = JWT.search(everything), METADATA.search(everything)
    if not token or not metadata:
        raise RuntimeError("the user data has no instance token or no metadata URL")
    return token[0].decode(), metadata[0].decode()


def claims(token):
    """Returns the claims of a token: GARM puts the runner's name there."""
    middle = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))


def call(method, url, token, body=None):
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), method=method)
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {url}: {error.code} {error.read().decode(errors='replace')}") from None
