"""A provider as GARM sees it: an executable that is started once for every call."""

import base64
import json
import subprocess
import time
import uuid

CONTROLLER = "b4a2c1d0-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
POOL = "11111111-2222-4333-8444-555555555555"
TEMPLATE = "#!/bin/bash\ncurl -H 'Authorization: Bearer secret' http://127.0.0.1:1/api/v1/metadata/install-script/ | bash\n"


class Call:
    """The result of one call: the exit code, the documents, and how long it took."""

    def __init__(self, code, output, error, seconds):
        self.code, self.error, self.seconds = code, error.decode(errors="replace").strip(), seconds
        self.document = json.loads(output) if code == 0 and output.strip()[:1] in (b"{", b"[") else None

    @property
    def ok(self):
        return self.code == 0


class Provider:
    """One executable with its configuration file and the environment that GARM passes on to it."""

    def __init__(self, name, program, config, environment, interface="v0.1.0"):
        self.name, self.program, self.config = name, program, config
        self.environment, self.interface = environment, interface

    def start(self, command, instance=None, document=None):
        """Starts the executable as GARM's `runner/providers` does, and returns its process."""
        environment = {"GARM_COMMAND": command, "GARM_CONTROLLER_ID": CONTROLLER, "GARM_POOL_ID": POOL,
                       "GARM_INTERFACE_VERSION": self.interface, "GARM_PROVIDER_CONFIG_FILE": str(self.config), **self.environment}
        if instance:
            environment["GARM_INSTANCE_ID"] = instance
        process = subprocess.Popen([self.program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.document = json.dumps(document).encode() if document else None
        return process

    def call(self, command, instance=None, document=None, timeout=180):
        started = time.monotonic()
        return finish(self.start(command, instance, document), started, timeout)


class Setup:
    """A provider with its proxy: what the story and the sweep need to run it."""

    def __init__(self, provider, proxy, reset, left):
        self.provider, self.proxy, self.reset, self.left = provider, proxy, reset, left


def finish(process, started=None, timeout=180):
    """Waits for a process that `start` returned. A process that takes longer than `timeout` is killed, as GARM does."""
    started = started or time.monotonic()
    try:
        output, error = process.communicate(process.document, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, error = process.communicate()
    return Call(process.returncode, output, error, time.monotonic() - started)


def bootstrap(cloud, name):
    """Returns the document that GARM sends with CreateInstance."""
    tool = {"os": "linux", "architecture": "x64", "download_url": "http://127.0.0.1:1/runner", "filename": "runner",
            "sha256_checksum": "", "temp_download_token": ""}
    template = base64.b64encode(TEMPLATE.encode()).decode()
    return {"name": name, "tools": [tool], "repo_url": "http://127.0.0.1:1/acme/rocket", "callback-url": "http://127.0.0.1:1/api/v1/callbacks",
            "metadata-url": "http://127.0.0.1:1/api/v1/metadata", "instance-token": "secret", "ssh-keys": [],
            "extra_specs": {"runner_install_template": template}, "github-runner-group": "", "ca-cert-bundle": None, "arch": "amd64",
            "os_type": "linux", "flavor": cloud.flavor, "image": cloud.image, "labels": ["fleet"], "pool_id": POOL,
            "user_data_options": {"disable_updates_on_boot": False, "extra_packages": [], "enable_boot_debug": False},
            "jit_config_enabled": False}


def new_name():
    """Returns a name as GARM makes them: a prefix and twelve characters."""
    return f"ci-{uuid.uuid4().hex[:12]}"
