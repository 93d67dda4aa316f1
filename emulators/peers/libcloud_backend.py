"""apache-libcloud's EC2 driver on the emulated EC2, as a backend for contract-run: libcloud_backend.py EMULATOR PAGE_SIZE

One call of the contract is the driver's call for it, without retries, waits or checks. Where the driver has several ways, the adapter takes
the one that promises most; the comments say which. docs/libcloud.md has the results, and says what of them is this adapter's doing.
"""

import base64
import contextlib
import ctypes
import pathlib
import queue
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "pipe"))

import libcloud
import requests.exceptions
from libcloud.common.exceptions import BaseHTTPError
from libcloud.common.types import InvalidCredsError, MalformedResponseError
from libcloud.compute.base import Node, NodeImage, NodeSize
from libcloud.compute.drivers.ec2 import (EC2NodeDriver, EC2NodeLocation, ExEC2AvailabilityZone,
                                          IdempotentParamError)
from libcloud.compute.types import NodeState

from contract_pipe import Failure, duration, serve
from processes import Emulator

IMAGE = "ami-00000000000000001"
# The driver's launch always has a name, and stores it as the tag Name.
UNNAMED = "libcloud"
STATES = {"pending": "pending", "running": "running", "stopping": "stopping", "stopped": "stopped",
          "shutting-down": "terminating", "terminated": "terminated"}
# Long enough that the driver sees a transition on a busy machine too. Reads do not lag: nothing here waits for them, so
# clauses of every kind would fail for that one reason, and not the same ones in every run.
TRANSITION_MS, PAGE_SIZE = 200, int(sys.argv[2])
KNOBS = {"page_size": PAGE_SIZE, "timing": dict.fromkeys(["boot", "stop", "terminate", "image"], TRANSITION_MS)}
ACTIONS = {"launch": "RunInstances", "terminate": "TerminateInstances", "stop": "StopInstances", "start": "StartInstances",
           "describe": "DescribeInstances", "list": "DescribeInstances", "find_launch": "DescribeInstances",
           "update_tags": "CreateTags"}
FAULTS = {
    "throttled": lambda fault: {"kind": "throttled", "retry_after_secs": fault["delay_ms"] // 1000},
    "bad_credentials": lambda fault: {"kind": "expired_credentials"},
    "forbidden": lambda fault: {"kind": "forbidden"},
    "capacity": lambda fault: {"kind": "capacity"},
    "quota": lambda fault: {"kind": "quota"},
    "request_lost": lambda fault: {"kind": "lost", "phase": "before"},
    "response_lost": lambda fault: {"kind": "lost", "phase": "after"},
    "server_error_before": lambda fault: {"kind": "server_error", "phase": "before"},
    "server_error_after": lambda fault: {"kind": "server_error", "phase": "after"},
    "malformed": lambda fault: {"kind": "malformed"},
    "unknown_state": lambda fault: {"kind": "unknown_state", "state": fault["state"]},
    "fails_late": lambda fault: {"kind": "late_failure", "code": fault["code"], "message": "the operation failed"},
    # To the cloud, a process that has died looks like a call that never ends.
    "hang": lambda fault: {"kind": "hang", "phase": "before"},
    "crash_before": lambda fault: {"kind": "hang", "phase": "before"},
    "crash_after": lambda fault: {"kind": "hang", "phase": "after"},
}
# Native codes -> kinds. A code with another ending, such as .NotFound, is decided by its beginning.
KINDS = {
    "InvalidInstanceID": "not_found", "IncorrectInstanceState": "wrong_state", "IncorrectState": "wrong_state",
    "RequestLimitExceeded": "throttled", "InsufficientInstanceCapacity": "capacity", "VcpuLimitExceeded": "quota",
    "InstanceLimitExceeded": "quota", "UnauthorizedOperation": "forbidden", "RequestExpired": "unauthenticated",
    "IdempotentInstanceTerminated": "token_spent", "OperationNotPermitted": "conflict",
}


class Account:
    def __init__(self, protocol, contract, directory, restarted):
        self.emulator = Emulator(sys.argv[1], started=die_with_parent)
        self.emulator.control("PATCH", "knobs", KNOBS)
        self.port = int(self.emulator.url.rsplit(":", 1)[1])
        self.free_drivers = queue.SimpleQueue()

    def shut_down(self):
        self.emulator.stop()

    def hello(self):
        return {
            "protocol": 1, "name": "libcloud-ec2", "budget_ms": 2500,
            "capabilities": {
                "provider": "libcloud-ec2", "max_user_data_bytes": 16384, "page_size": PAGE_SIZE,
                # One of EC2's 50 tags is the driver's own.
                "tags": {"max_tags": 49, "max_key_chars": 128, "max_value_chars": 256, "reserved_prefixes": ["aws:"]},
                "poll_interval": duration(5), "token_after_terminate": duration(1_200_000),
                "terminated_visible": duration(1_200_000), "terminated_listed": True, "batch_launch": "all-or-nothing", "placement": ["zone"],
                # The driver has no call that reimages an instance or opens its console, and none that tags an image
                # when it creates it.
                "verbs": ["update_tags", "reboot_instance", "resize_instance", "console_output"],
            },
            "methods": ["launch_instances"], "config": {"image": IMAGE, "instance_type": "t3.micro"},
            "unknown_id": "i-0fffffffffffffff0", "unknown_image": "ami-0fffffffffffffff0", "unknown_type": "t3.unknown",
            "other_type": "t3.small",
            "zone": "us-east-1b", "oracle": True, "faults": sorted(FAULTS), "late_failure_code": "Server.InternalError",
            "external_actor": True, "peer": {"name": "apache-libcloud", "version": libcloud.__version__},
        }

    @contextlib.contextmanager
    def driver(self, reads):
        """Lends a driver to one call, because two threads must not share one, and translates what it raises."""
        try:
            driver = self.free_drivers.get_nowait()
        except queue.Empty:
            driver = EC2NodeDriver("test", "test", region="us-east-1", host="127.0.0.1", port=self.port, secure=False,
                                   signature_version="4")
        try:
            yield driver
        except Exception as error:
            raise translated(error, "none" if reads else "unknown") from error
        finally:
            self.free_drivers.put(driver)

    # The calls of the contract.

    def open(self, call, session, options):
        """A driver has no launch options of its own."""

    def close(self, call):
        """Nothing belongs to a handle."""

    def launch_instance(self, call, config):
        return self.launch(config, 1)[0]

    def launch_instances(self, call, config, count):
        return self.launch(config, count)

    def launch(self, config, count):
        tags, placement = config.get("tags", {}), config.get("placement", {})
        more = {"ex_mincount": count, "ex_maxcount": count, "ex_metadata": tags}
        refuse_other_fields(placement)
        if "zone" in placement:
            zone = placement["zone"]
            more["location"] = EC2NodeLocation(0, zone, "", None, ExEC2AvailabilityZone(zone, "available", "us-east-1"))
        if "user_data" in config:
            more["ex_userdata"] = base64.b64decode(config["user_data"])
        if "disk_size_gb" in config:
            more["ex_blockdevicemappings"] = [{"DeviceName": "/dev/xvda", "Ebs.VolumeSize": config["disk_size_gb"]}]
        if "launch_token" in config:
            more["ex_clienttoken"] = config["launch_token"]
        with self.driver(reads=False) as driver:
            size = NodeSize(config["instance_type"], "", 0, 0, 0, 0, driver)
            image = NodeImage(config["image"], "", driver)
            nodes = driver.create_node(name=tags.get("Name", UNNAMED), image=image, size=size, **more)
        return [info(node) for node in (nodes if isinstance(nodes, list) else [nodes])]

    def terminate_instance(self, call, id):
        with self.driver(reads=False) as driver:
            driver.destroy_node(node(id, driver))

    def stop_instance(self, call, id):
        # What it returns is not used: it is false for a stop of a stopped instance, which succeeds.
        with self.driver(reads=False) as driver:
            driver.stop_node(node(id, driver))

    def start_instance(self, call, id):
        with self.driver(reads=False) as driver:
            driver.start_node(node(id, driver))
            with after_effect():
                return info(driver.list_nodes(ex_node_ids=[id])[0])

    def describe_instance(self, call, id):
        with self.driver(reads=True) as driver:
            return status(driver.list_nodes(ex_node_ids=[id])[0])

    def list_instances(self, call, filter):
        # EC2's filters have wildcards, so the whole list is filtered here, exactly.
        with self.driver(reads=True) as driver:
            nodes = [info(node) for node in driver.list_nodes()]
        states = filter["states"] or [state for state in STATES.values() if state != "terminated"]
        return [one for one in nodes if one["state"] in states and filter["tags"].items() <= one["tags"].items()]

    def find_launch(self, call, token):
        with self.driver(reads=True) as driver:
            found = [info(node) for node in driver.list_nodes(ex_filters={"client-token": token})]
        if not found:
            return "not_found"
        ending = all(one["state"] in ("terminating", "terminated") for one in found)
        return {"terminated" if ending else "found": found}

    def update_tags(self, call, id, change):
        """Two calls of the driver: whatever becomes of the second one, the first one has had its effect."""
        with self.driver(reads=False) as driver:
            if change["set"]:
                driver.ex_create_tags(node(id, driver), change["set"])
            if change["remove"]:
                with after_effect() if change["set"] else contextlib.nullcontext():
                    driver.ex_delete_tags(node(id, driver), dict.fromkeys(change["remove"]))

    def reboot_instance(self, call, id, how):
        with self.driver(reads=False) as driver:
            driver.reboot_node(node(id, driver))

    def resize_instance(self, call, id, to):
        with self.driver(reads=False) as driver:
            driver.ex_modify_instance_attribute(node(id, driver), {"InstanceType.Value": to})

    def console_output(self, call, id):
        with self.driver(reads=True) as driver:
            return {"text": driver.ex_get_console_output(node(id, driver))["output"] or ""}

    # The test environment: the emulator's own oracle, faults and actions.

    def oracle_instances(self, call, tags):
        oracle = self.emulator.control("GET", "oracle")
        gib = {volume["id"]: volume["gib"] for volume in oracle["volumes"]}
        found = [one for one in oracle["instances"] if tags.items() <= one["tags"].items()]
        return [{"info": {"id": one["id"], "state": STATES[one["state"]], "tags": plain(one["tags"]), "image": one["image"],
                          "instance_type": one["instance_type"], "private_ip": one["private_ip"],
                          "public_ip": one["public_ip"], "placement": {"zone": one["zone"]}},
                 "user_data": encoded(one["user_data"]), "disk_size_gb": gib.get(next(iter(one["volumes"]), None)),
                 "holds_machine": one["holds_machine"], "boots": one["boots"]} for one in found]

    def oracle_leftovers(self, call, tags):
        oracle = self.emulator.control("GET", "oracle")
        return [f"{kind} {one['id']}" for kind in ("instances", "volumes", "network_interfaces") for one in oracle[kind]
                if tags.items() <= one["tags"].items() and one.get("state") != "terminated"]

    def oracle_images(self, call, tags):
        return None

    def oracle_calls(self, call):
        return sum(self.emulator.control("GET", "oracle")["calls"].values())

    def faults_inject(self, call, operation, nth, fault):
        rule = {"fault": FAULTS[fault["kind"]](fault)}
        if operation != "any":
            rule["operation"] = ACTIONS[operation]
        if nth is not None:
            rule["nth"] = nth
        self.emulator.control("POST", "faults", rule)

    def faults_all_injected(self, call):
        return not self.emulator.control("GET", "faults")

    def faults_clear(self, call):
        injected = self.faults_all_injected(call)
        self.emulator.control("DELETE", "faults")
        return injected

    def actor_launch(self, call, tags):
        return self.emulator.control("POST", "external-actions", {"action": "launch_external", "count": 1, "tags": tags})["ids"][0]

    def actor_stop(self, call, id):
        self.emulator.control("POST", "external-actions", {"action": "stop", "id": id})

    def actor_terminate(self, call, id):
        self.emulator.control("POST", "external-actions", {"action": "terminate", "id": id})

    def actor_disconnect(self, call, id):
        """EC2's list is one call for the region: no part of it fails alone."""

    def actor_reconnect(self, call):
        self.emulator.control("PATCH", "knobs", {"capacity": None})

    def actor_limit_capacity(self, call, count):
        used = sum(one["holds_machine"] for one in self.emulator.control("GET", "oracle")["instances"])
        self.emulator.control("PATCH", "knobs", {"capacity": [{"machines": used + count}]})
        return True


@contextlib.contextmanager
def after_effect():
    """Reports what fails inside as done: a call of the driver before it has had its effect."""
    try:
        yield
    except Exception as error:
        failure = translated(error, "unknown")
        if isinstance(failure, Failure):
            failure.form["effect"] = "done"
        raise failure from error


def translated(error, unknown):
    """Returns the error of the contract for what the driver raised. `unknown` is the effect of a call that may have had one."""
    if isinstance(error, requests.exceptions.Timeout):
        return Failure("timeout", "no response", unknown, "same_token")
    if isinstance(error, requests.exceptions.RequestException):
        return Failure("unavailable", "the connection failed", unknown, "same_token")
    if isinstance(error, MalformedResponseError):
        return Failure("unexpected", "the driver cannot parse the response", unknown, "same_token")
    if isinstance(error, InvalidCredsError):
        return Failure("unauthenticated", "the driver says that the credentials are wrong")
    if isinstance(error, IdempotentParamError):
        return Failure("token_conflict", "the driver says that the token was used with other parameters")
    if isinstance(error, IndexError):
        return Failure("not_found", "the driver returned no instance")
    return refused(error, unknown) if isinstance(error, BaseHTTPError) else error


def refused(error, unknown):
    code = str(error).split(":")[0]
    kind = KINDS.get(code) or KINDS.get(code.split(".")[0])
    if kind == "throttled":
        delay = (error.headers or {}).get("retry-after")
        return Failure(kind, code, retry=int(delay) * 1000 if delay else "same_token", native_code=code)
    if kind in ("capacity", "quota"):
        return Failure(kind, code, scopes=["region" if kind == "capacity" else "account"], native_code=code)
    if kind:
        return Failure(kind, code, native_code=code)
    if error.code >= 500:
        return Failure("unavailable", code, unknown, "same_token", native_code=code)
    return Failure("invalid", code, native_code=code)


def node(id, driver):
    return Node(id, id, NodeState.UNKNOWN, [], [], driver)


def refuse_other_fields(placement):
    for field, value in placement.items():
        if field != "zone" and (field, value) != ("market", "on-demand"):
            raise Failure("invalid", f"{field} is not offered",
                          invalid={"field": f"placement.{field}", "problem": {"not_offered": {"instead": "leave it unset"}}})


def encoded(data):
    """Returns bytes, which the emulator's oracle has as a list of numbers, in base64."""
    return base64.b64encode(bytes(data)).decode() if data else None


def plain(tags):
    """Hides the name that the driver gave."""
    return {key: value for key, value in tags.items() if (key, value) != ("Name", UNNAMED)}


def status(node):
    # The driver's own state is unknown for stopping, stopped and shutting-down instances; it keeps the native one beside it.
    native = node.extra["status"]
    return {"id": node.id, "state": STATES.get(native, "pending"), "native_state": native,
            "state_reason": (node.extra.get("reason") or None), "private_ip": next(iter(node.private_ips), None),
            "public_ip": next(iter(node.public_ips), None)}


def info(node):
    return {**status(node), "launch_time": node.created_at.isoformat() if node.created_at else None,
            "tags": plain(node.extra["tags"]), "image": node.extra["image_id"], "instance_type": node.extra["instance_type"],
            "placement": {"zone": node.extra["availability"]}}


def die_with_parent():
    """Lets the kernel kill the emulator if this process is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    serve(Account, concurrent=True)
