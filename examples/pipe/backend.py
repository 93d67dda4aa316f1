"""A small backend in Python, for contract-run: `contract-run --exec "python3 examples/pipe/backend.py"`.

It translates the contract's calls to those of the simulated cloud in cloud.py, as a real one does with an SDK: it checks
configs, passes tokens on, and turns every refusal and every lost answer into an error with its effect and its advice.
"""

import base64
import json
from datetime import datetime, timedelta, timezone

from cloud import PAGE_SIZE, ZONES, Cloud, NeverReturns, NoAnswer, Refused
from contract_pipe import Failure, Hangs, duration, serve

HOUR_MS = 3_600_000
LIMITS = {"max_tags": 20, "max_key_chars": 64, "max_value_chars": 128, "reserved_prefixes": ["rack:"]}
MAX_USER_DATA = 4096
FAULTS = ["throttled", "bad_credentials", "forbidden", "capacity", "quota", "request_lost", "response_lost",
          "server_error_before", "server_error_after", "malformed", "stale_read", "unknown_state", "fails_late", "hang",
          "crash_before", "crash_after"]
# The cloud's refusals -> kind and message. None of them has an effect.
REFUSALS = {
    "bad_credentials": ("unauthenticated", "the credentials have expired"), "forbidden": ("forbidden", "not allowed"),
    "quota": ("quota", "the account's limit is reached"), "no_such_image": ("invalid", "there is no such image"),
    "no_such_type": ("invalid", "there is no such type"),
    "token_conflict": ("token_conflict", "the token was used with another config"),
    "token_spent": ("token_spent", "the token's instances are terminating or terminated"),
}
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Account:
    def __init__(self, protocol, contract, directory, restarted):
        self.cloud = Cloud(directory)
        self.default_zones = {}

    def hello(self):
        return {
            "protocol": 1, "name": "python-rack", "time": "virtual", "budget_ms": 600_000, "restart": True,
            "capabilities": {
                "provider": "rack", "tags": LIMITS, "max_user_data_bytes": MAX_USER_DATA, "page_size": PAGE_SIZE,
                "batch_size": 10, "batch_launch": "all-or-nothing", "poll_interval": duration(500),
                "token_after_terminate": duration(HOUR_MS), "terminated_visible": duration(HOUR_MS), "terminated_listed": True,
                "placement": ["zone"], "verbs": ["update_tags", "reboot_instance", "resize_instance"],
            },
            "methods": ["launch_instances", "describe_instances", "stream_instances", "account_id"],
            "config": {"image": "image-1", "instance_type": "small"}, "unknown_id": "i-99999999",
            "unknown_image": "image-404", "unknown_type": "type-404", "other_type": "large", "zone": "zone-b",
            "oracle": True, "faults": FAULTS, "external_actor": True,
        }

    def open(self, call, session, options):
        """Handles differ in the zone of launches that name none."""
        self.default_zones[session] = ZONES[0] if options == "default" else ZONES[1]

    def close(self, call):
        del self.default_zones[call.session]

    # The calls of the contract.

    def launch_instance(self, call, config):
        return self.launch(call, config, 1, {})[0]

    def launch_instances(self, call, config, count):
        return self.launch(call, config, count, {"count": count})

    def launch(self, call, config, count, unit):
        check(config)
        # The token is compared with everything that the caller gave, and not with what this handle adds to it.
        parameters = json.dumps({**config, "launch_token": None, **unit}, sort_keys=True)
        zone = config.get("placement", {}).get("zone", self.default_zones[call.session])
        request = {"tags": {}, **config, "zone": zone}
        with self.native(call, reads=False):
            launched = self.cloud.launch(request, config.get("launch_token"), parameters, count)
        return [info(one) for one in launched]

    def terminate_instance(self, call, id):
        with self.native(call, reads=False):
            self.cloud.terminate(id)

    def stop_instance(self, call, id):
        with self.native(call, reads=False):
            self.cloud.stop(id)

    def start_instance(self, call, id):
        with self.native(call, reads=False):
            return info(self.cloud.start(id))

    def describe_instance(self, call, id):
        return self.describe_instances(call, [id])[0].get("ok") or not_found(id)

    def describe_instances(self, call, ids):
        found = {}
        for begin in range(0, len(ids), 10):
            with self.native(call, reads=True):
                found |= self.cloud.describe(ids[begin:begin + 10])
        return [{"ok": status(found[id])} if id in found else {"error": missing(id).form} for id in ids]

    def list_instances(self, call, filter):
        listed, gaps = [], []
        for page in self.stream_instances(call, filter):
            listed += [item["instance"] for item in page if "instance" in item]
            gaps += [item["gap"]["scope"] for item in page if "gap" in item]
        if gaps:
            raise Failure("incomplete", "some zones could not be read", retry="same_token", scopes=gaps)
        return listed

    def stream_instances(self, call, filter):
        for zone in ZONES:
            after = 0
            while after is not None:
                if zone in self.cloud.disconnected:
                    error = Failure("unavailable", f"{zone} is not reachable", retry="same_token")
                    yield [{"gap": {"scope": zone_scope(zone), "error": error.form}}]
                    break
                with self.native(call, reads=True):
                    page, after = self.cloud.list_page(zone, after)
                yield [{"instance": info(one)} for one in page if selects(filter, info(one))]

    def find_launch(self, call, token):
        with self.native(call, reads=True):
            found = [info(one) for one in self.cloud.look_up(token)]
        if not found:
            return "not_found"
        ending = all(one["state"] in ("terminating", "terminated") for one in found)
        return {"terminated" if ending else "found": found}

    def account_id(self, call):
        with self.native(call, reads=True), self.cloud.call("account"):
            return "rack-1"

    def update_tags(self, call, id, change):
        with self.native(call, reads=True):
            before = self.cloud.describe([id])
        if id not in before:
            raise missing(id)
        tags = {key: value for key, value in before[id]["tags"].items() if key not in change["remove"]} | change["set"]
        check_tags(tags)
        with self.native(call, reads=False):
            self.cloud.set_tags(id, tags)

    def reboot_instance(self, call, id, how):
        with self.native(call, reads=False):
            self.cloud.reboot(id)

    def resize_instance(self, call, id, to):
        with self.native(call, reads=False):
            self.cloud.resize(id, to)

    def native(self, call, reads):
        self.cloud.now = call.now_ms
        return NativeCall(reads)

    # The test environment: the truth, faults, and somebody else.

    def oracle_instances(self, call, tags):
        self.cloud.now = call.now_ms
        views = [self.cloud.view(one) for one in self.cloud.instances.values()]
        return [truth(one) for one in views if tags.items() <= one["tags"].items()]

    def oracle_leftovers(self, call, tags):
        return [f"instance {one['info']['id']} with its disk" for one in self.oracle_instances(call, tags)
                if one["info"]["state"] != "terminated"]

    def oracle_images(self, call, tags):
        return None

    def oracle_calls(self, call):
        return self.cloud.calls

    def faults_inject(self, call, operation, nth, fault):
        self.cloud.rules.append({"operation": operation, "nth": nth, "fault": fault, "seen": 0, "injected": False})

    def faults_all_injected(self, call):
        return all(rule["injected"] for rule in self.cloud.rules)

    def faults_clear(self, call):
        injected = self.faults_all_injected(call)
        self.cloud.rules = []
        return injected

    def actor_launch(self, call, tags):
        self.cloud.now = call.now_ms
        config = {"image": "image-2", "instance_type": "large", "zone": ZONES[1], "tags": tags}
        return self.cloud.create(config, 1)[0]["id"]

    def actor_stop(self, call, id):
        self.cloud.now = call.now_ms
        if self.cloud.find(id)["state"] in ("pending", "running"):
            self.cloud.change(self.cloud.instances[id], "stopping")

    def actor_terminate(self, call, id):
        self.cloud.now = call.now_ms
        if self.cloud.find(id)["state"] not in ("terminating", "terminated"):
            self.cloud.change(self.cloud.instances[id], "terminating")

    def actor_disconnect(self, call, id):
        zone = self.cloud.instances[id]["zone"]
        self.cloud.disconnected.add(zone)
        return zone_scope(zone)

    def actor_reconnect(self, call):
        self.cloud.disconnected, self.cloud.capacity = set(), None

    def actor_limit_capacity(self, call, count):
        self.cloud.capacity = count
        return True


class NativeCall:
    """Turns what a native call raises into the error of the contract."""

    def __init__(self, reads):
        self.unknown = "none" if reads else "unknown"

    def __enter__(self):
        return self

    def __exit__(self, kind, raised, trace):
        if isinstance(raised, NeverReturns):
            raise Hangs from raised
        if isinstance(raised, NoAnswer) and raised.why == "malformed":
            raise Failure("unexpected", "the answer cannot be parsed", self.unknown, "same_token") from raised
        if isinstance(raised, NoAnswer):
            raise Failure("unavailable", "no answer, or an internal error", self.unknown, "same_token") from raised
        if isinstance(raised, Refused):
            raise refusal(raised.code, raised.details) from raised


def refusal(code, details):
    if code == "throttled":
        return Failure("throttled", "too many calls", retry=details["delay_ms"])
    if code == "capacity":
        return Failure("capacity", "no machine is free", scopes=["region"])
    if code == "not_found":
        return missing(details["id"])
    if code == "wrong_state":
        return Failure("wrong_state", f"{details['id']} is {details['state']}", scopes=[{"instance": details["id"]}])
    if code == "still_stopping":
        return Failure("conflict", "it is still stopping", retry=details["delay_ms"])
    return Failure(*REFUSALS[code], **({"scopes": ["account"]} if code == "quota" else {}))


def missing(id):
    return Failure("not_found", f"there is no instance {id}", scopes=[{"instance": id}])


def not_found(id):
    raise missing(id)


def check(config):
    """Refuses what the cloud would not store exactly."""
    check_tags(config.get("tags", {}))
    size = len(base64.b64decode(config.get("user_data", "")))
    if size > MAX_USER_DATA:
        raise too("too_long", "user data", size, MAX_USER_DATA, unit="bytes")
    for field, value in config.get("placement", {}).items():
        if field != "zone" and (field, value) != ("market", "on-demand"):
            raise invalid(f"placement.{field}", {"not_offered": {"instead": "leave it unset"}})
        if field == "zone" and value not in ZONES:
            raise invalid("placement.zone", {"not_offered": {"instead": f"choose one of {ZONES}"}})


def check_tags(tags):
    if len(tags) > LIMITS["max_tags"]:
        raise too("too_many", "tags", len(tags), LIMITS["max_tags"])
    for key, value in tags.items():
        for text, limit in [(key, LIMITS["max_key_chars"]), (value, LIMITS["max_value_chars"])]:
            if len(text) > limit:
                raise too("too_long", "tags", len(text), limit, unit="characters")
        for prefix in LIMITS["reserved_prefixes"]:
            if key.lower().startswith(prefix):
                raise invalid("tags", {"reserved": {"prefix": prefix}})


def too(problem, field, actual, limit, **unit):
    return invalid(field, {problem: {"actual": actual, "limit": limit, **unit}})


def invalid(field, problem):
    return Failure("invalid", f"{field}: {json.dumps(problem)}", invalid={"field": field, "problem": problem})


def selects(filter, one):
    states = filter["states"] or ["pending", "running", "stopping", "stopped", "terminating"]
    return one["state"] in states and filter["tags"].items() <= one["tags"].items()


def zone_scope(zone):
    return {"offering": {"instance_type": None, "zone": zone, "market": None}}


def status(one):
    """Returns an InstanceStatus. A state that nobody has heard of is pending, whatever it means."""
    known = one["native_state"] == one["state"]
    shown = {"id": one["id"], "state": one["state"] if known else "pending", "native_state": one["native_state"],
             "private_ip": one["private_ip"], "public_ip": one["public_ip"]}
    if one["late_failure"] and one["state"] == "terminated":
        shown["state_reason"] = one["late_failure"]
    return shown


def info(one):
    """Returns an InstanceInfo."""
    launched = (START + timedelta(milliseconds=one["launched"])).isoformat()
    return {**status(one), "launch_time": launched, "tags": one["tags"], "image": one["config"]["image"],
            "instance_type": one["type"], "placement": {"zone": one["zone"]}}


def truth(one):
    disk = one["config"].get("disk_size_gb", 8) if one["state"] != "terminated" else None
    return {"info": info(one), "user_data": one["config"].get("user_data"), "disk_size_gb": disk,
            "holds_machine": one["state"] in ("pending", "running", "stopping"), "boots": one["boots"]}


if __name__ == "__main__":
    serve(Account)
