"""gcloud against the emulator, where it is installed: commands of a life, with its own waiting and its own words."""

import json
import os
import shutil
import subprocess

from gcp_bench import OTHER, PROJECT, ZONE, Bench

PROGRAM = shutil.which("gcloud")
SYSTEM = ["--image-family", "debian-12", "--image-project", "debian-cloud"]


class Failed(Exception):
    """The command ended with an error; its text is what it printed."""


class Gcloud(Bench):
    """The command, with a configuration of its own that sends it to a tap and nowhere else."""

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
        """Runs `gcloud compute …`, and answers what it printed as JSON."""
        done = subprocess.run([PROGRAM, "compute", *words, "--format=json"], env=self.environment, capture_output=True,
                              text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def on(self, command, *words):
        """A command about the one instance of the cases."""
        return self.run("instances", command, "web", "--zone", ZONE, *words)

    def says(self, text, command, *words):
        """The command must fail with this text among its words: it has no reasons and no statuses."""
        try:
            command(*words)
        except Failed as error:
            assert text in str(error), str(error)
        else:
            raise AssertionError(f"{words}: not failed with {text}")


def life(gcloud, emulator):
    """A life: create, list, labels, stop, start, suspend, resume, delete, gone."""
    [made] = gcloud.on("create", "--machine-type", "e2-small", *SYSTEM, "--labels", "a=b")
    assert (made["status"], made["labels"]) == ("RUNNING", {"a": "b"})
    gcloud.says("already exists", gcloud.on, "create", "--machine-type", "e2-small")
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
    gcloud.says("was not found", gcloud.on, "describe")
    gcloud.expect(404, "notFound")


def fleet(gcloud, emulator):
    """Several at once, a zone that does not answer, and a stockout in gcloud's words."""
    gcloud.run("instances", "bulk", "create", "--name-pattern", "web-#", "--count", "3", "--zone", ZONE,
               "--machine-type", "e2-small", *SYSTEM)
    with emulator.turned(unreachable_zones=[OTHER]):
        assert len(gcloud.run("instances", "list")) == 3
    with emulator.turned(capacity=[{"machines": 0}]):
        gcloud.says("does not have enough resources", gcloud.on, "create", "--machine-type", "e2-small")


def images(gcloud, emulator):
    """An image of a disk, its operations, and the machine types of a zone."""
    emulator.control("POST", "acts", {"act": "add_disk", "project": PROJECT, "zone": ZONE, "name": "spare", "gib": 5})
    gcloud.run("images", "create", "golden", "--source-disk", "spare", "--source-disk-zone", ZONE, "--family", "golden")
    assert gcloud.run("images", "describe-from-family", "golden")["name"] == "golden"
    gcloud.run("images", "delete", "golden")
    assert len(gcloud.run("operations", "list")) == 2
    assert any(kind["name"] == "e2-small" for kind in gcloud.run("machine-types", "list", "--zones", ZONE))


CASES = [life, fleet, images]
