"""gcloud against the emulator, if it is installed: the commands of a lifecycle, with its own waiting and messages."""

import json
import os
import shutil
import subprocess

from gcp_client import OTHER, PROJECT, ZONE, CaseClient

PROGRAM = shutil.which("gcloud")
SYSTEM = ["--image-family", "debian-12", "--image-project", "debian-cloud"]


class Failed(Exception):
    """The command failed. The text is what it printed."""


class Gcloud(CaseClient):
    """The command, with its own configuration, which sends it to a proxy and nowhere else."""

    def __init__(self, url, home):
        super().__init__()
        home.mkdir(parents=True, exist_ok=True)
        token = home / "token"
        token.write_text("test")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSDK_")} | {
            "CLOUDSDK_CONFIG": str(home), "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token), "CLOUDSDK_CORE_PROJECT": PROJECT,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{url}/compute/v1/", "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1", "CLOUDSDK_CORE_DISABLE_FILE_LOGGING": "1",
            "CLOUDSDK_SURVEY_DISABLE_PROMPTS": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def run(self, *words):
        """Runs `gcloud compute …` and returns its JSON output."""
        done = subprocess.run([PROGRAM, "compute", *words, "--format=json"], env=self.environment, capture_output=True,
                              text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def on(self, command, *words):
        """Runs a command on the one instance of the cases."""
        return self.run("instances", command, "web", "--zone", ZONE, *words)

    def fails_with(self, text, command, *words):
        """Checks that the command fails and prints this text: gcloud reports neither reasons nor statuses."""
        try:
            command(*words)
        except Failed as error:
            assert text in str(error), str(error)
        else:
            raise AssertionError(f"{words}: not failed with {text}")


def lifecycle(gcloud, emulator):
    """A lifecycle: create, list, labels, stop, start, suspend, resume, delete, not found."""
    [created] = gcloud.on("create", "--machine-type", "e2-small", *SYSTEM, "--labels", "a=b")
    assert (created["status"], created["labels"]) == ("RUNNING", {"a": "b"})
    gcloud.fails_with("already exists", gcloud.on, "create", "--machine-type", "e2-small")
    gcloud.expect(409, "alreadyExists")
    [shown] = gcloud.run("instances", "list", "--filter", "labels.a=b")
    assert shown["name"] == "web"
    gcloud.on("add-labels", "--labels", "c=d")
    assert gcloud.on("get-serial-port-output")["contents"]
    for command in ("stop", "start", "suspend", "resume"):
        gcloud.on(command)
    after = gcloud.on("describe")
    assert (after["status"], after["labels"]) == ("RUNNING", {"a": "b", "c": "d"})
    gcloud.on("delete")
    gcloud.fails_with("was not found", gcloud.on, "describe")
    gcloud.expect(404, "notFound")


def fleet(gcloud, emulator):
    """Several at once, an unreachable zone, and gcloud's message for a stockout."""
    gcloud.run("instances", "bulk", "create", "--name-pattern", "web-#", "--count", "3", "--zone", ZONE,
               "--machine-type", "e2-small", *SYSTEM)
    with emulator.set_knobs(unreachable_zones=[OTHER]):
        assert len(gcloud.run("instances", "list")) == 3
    with emulator.set_knobs(capacity=[{"machines": 0}]):
        gcloud.fails_with("does not have enough resources", gcloud.on, "create", "--machine-type", "e2-small")


def images(gcloud, emulator):
    """An image of a disk, its operations, and the machine types of a zone."""
    emulator.control("POST", "external-actions", {"action": "add_disk", "project": PROJECT, "zone": ZONE, "name": "spare", "gib": 5})
    gcloud.run("images", "create", "golden", "--source-disk", "spare", "--source-disk-zone", ZONE, "--family", "golden")
    assert gcloud.run("images", "describe-from-family", "golden")["name"] == "golden"
    gcloud.run("images", "delete", "golden")
    # The disk, the image, and its deletion.
    assert len(gcloud.run("operations", "list")) == 3
    assert any(kind["name"] == "e2-small" for kind in gcloud.run("machine-types", "list", "--zones", ZONE))


CASES = [lifecycle, fleet, images]
