"""A simulated cloud: instances with states, client tokens, pages, capacity and faults, and a journal that survives the process.

It stands for the cloud and its network, and knows nothing of the contract. Its clock is that of the requests. Every change is
appended to the journal before the call returns, so that a process that is killed at any point loses nothing that it did.
"""

import json
import os
import signal
from contextlib import contextmanager

BOOT_MS, SWITCH_MS = 2_000, 1_000
# State after a transition -> the state that it ends in.
ENDS = {"pending": "running", "stopping": "stopped", "terminating": "terminated"}
PAGE_SIZE = 5
ZONES = ["zone-a", "zone-b"]
IMAGES = {"image-1", "image-2"}
TYPES = {"small", "large"}


class Refused(Exception):
    """The cloud refuses a call. Nothing was changed."""

    def __init__(self, code, **details):
        super().__init__(code)
        self.code, self.details = code, details


class NoAnswer(Exception):
    """There is no answer that can be used. `why` is lost, server_error or malformed."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


class NeverReturns(Exception):
    """The connection is open, and nothing comes."""


class Cloud:
    def __init__(self, directory):
        self.instances, self.tokens, self.now = {}, {}, 0
        self.rules, self.calls, self.capacity, self.disconnected = [], 0, None, set()
        path = os.path.join(directory, "journal") if directory else os.devnull
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as journal:
                for line in journal:
                    table, key, record = json.loads(line)
                    getattr(self, table)[key] = record
        self.journal = open(path, "a", encoding="utf-8")

    def save(self, table, key, record):
        getattr(self, table)[key] = record
        self.journal.write(json.dumps([table, key, record]) + "\n")
        self.journal.flush()

    # Faults.

    def fault(self, operation):
        """Counts a call and returns the fault of its first matching rule, or None."""
        self.calls += 1
        struck = None
        for rule in self.rules:
            if rule["operation"] in ("any", operation):
                rule["seen"] += 1
                if struck is None and rule["nth"] in (None, rule["seen"]):
                    rule["injected"], struck = True, rule["fault"]
        return struck

    @contextmanager
    def call(self, operation):
        """Surrounds the effect of one native call with the fault that hits it."""
        fault = self.fault(operation) or {"kind": None}
        kind = fault["kind"]
        if kind in ("throttled", "bad_credentials", "forbidden", "capacity", "quota"):
            raise Refused(kind, **{key: value for key, value in fault.items() if key != "kind"})
        if kind in ("request_lost", "server_error_before"):
            raise NoAnswer("lost" if kind == "request_lost" else "server_error")
        if kind == "hang":
            raise NeverReturns
        if kind == "crash_before":
            os.kill(os.getpid(), signal.SIGKILL)
        yield fault
        if kind == "crash_after":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind in ("response_lost", "server_error_after", "malformed"):
            raise NoAnswer({"response_lost": "lost", "server_error_after": "server_error"}.get(kind, kind))

    # States.

    def state(self, instance):
        """Returns the state now: a transition ends by itself."""
        over = self.now >= instance["until"]
        if over and instance["late_failure"] and instance["state"] == "pending":
            return "terminated"
        return ENDS.get(instance["state"], instance["state"]) if over else instance["state"]

    def view(self, instance, fault=None):
        """Returns what the cloud says of an instance."""
        state = self.state(instance)
        shown = {**instance, "state": state, "native_state": state, "public_ip": None}
        if fault and fault["kind"] == "unknown_state":
            shown["native_state"] = fault["state"]
        if state in ("pending", "running", "stopping"):
            shown["public_ip"] = f"198.51.100.{(instance['number'] * 7 + instance['starts']) % 250 + 1}"
        return shown

    def change(self, instance, state=None, **fields):
        changed = {**instance, "state": self.state(instance), "until": self.now, **fields}
        if state:
            changed.update(state=state, until=self.now + (BOOT_MS if state == "pending" else SWITCH_MS))
        self.save("instances", instance["id"], changed)

    def find(self, id, fault=None):
        if id not in self.instances:
            raise Refused("not_found", id=id)
        return self.view(self.instances[id], fault)

    def use_machines(self, count):
        if self.capacity is not None:
            if count > self.capacity:
                raise Refused("capacity")
            self.capacity -= count

    # Native calls.

    def launch(self, config, token, parameters, count):
        """Launches `count` instances, or returns those that the token has launched with the same parameters."""
        with self.call("launch") as fault:
            known = self.tokens.get(token) if token else None
            if known and known["parameters"] != parameters:
                raise Refused("token_conflict")
            if known:
                found = [self.find(id, fault) for id in known["ids"]]
                if all(one["state"] in ("terminating", "terminated") for one in found):
                    raise Refused("token_spent")
                return found
            if config["image"] not in IMAGES:
                raise Refused("no_such_image")
            if config["instance_type"] not in TYPES:
                raise Refused("no_such_type")
            self.use_machines(count)
            return self.create(config, count, token, parameters, fault)

    def create(self, config, count, token=None, parameters=None, fault=None):
        """Creates instances. The journal has their token in the same entries, so a crash cannot separate them."""
        late = fault["code"] if fault and fault["kind"] == "fails_late" else None
        ids = []
        for _ in range(count):
            number = len(self.instances) + 1
            ids.append(f"i-{number:08}")
            self.save("instances", ids[-1], {
                "id": ids[-1], "number": number, "state": "pending", "until": self.now + BOOT_MS, "boots": 1, "starts": 1,
                "config": config,
                "tags": config["tags"], "type": config["instance_type"], "zone": config["zone"], "launched": self.now,
                "private_ip": f"10.0.{number // 250}.{number % 250 + 1}", "late_failure": late})
        if token:
            self.save("tokens", token, {"parameters": parameters, "ids": ids})
        return [self.find(id, fault) for id in ids]

    def describe(self, ids):
        """Returns the instances that exist, by id."""
        with self.call("describe") as fault:
            return {id: self.find(id, fault) for id in ids if id in self.instances}

    def list_page(self, zone, after):
        """Returns a page of a zone, and the number to continue after, None at the end."""
        with self.call("list") as fault:
            if zone in self.disconnected:
                raise NoAnswer("lost")
            rest = [one for one in self.instances.values() if one["zone"] == zone and one["number"] > after]
            page = rest[:PAGE_SIZE]
            return [self.view(one, fault) for one in page], page[-1]["number"] if len(rest) > PAGE_SIZE else None

    def look_up(self, token):
        with self.call("find_launch") as fault:
            return [self.find(id, fault) for id in self.tokens.get(token, {"ids": []})["ids"]]

    def terminate(self, id):
        with self.call("terminate"):
            if self.find(id)["state"] not in ("terminating", "terminated"):
                self.change(self.instances[id], "terminating")

    def stop(self, id):
        with self.call("stop"):
            state = self.find(id)["state"]
            if state in ("terminating", "terminated"):
                raise Refused("wrong_state", id=id, state=state)
            if state in ("pending", "running"):
                self.change(self.instances[id], "stopping")

    def start(self, id):
        with self.call("start") as fault:
            state = self.find(id)["state"]
            if state == "stopping":
                raise Refused("still_stopping", delay_ms=self.instances[id]["until"] - self.now)
            if state in ("terminating", "terminated"):
                raise Refused("wrong_state", id=id, state=state)
            if state == "stopped":
                self.use_machines(1)
                before = self.instances[id]
                self.change(before, "pending", boots=before["boots"] + 1, starts=before["starts"] + 1)
            return self.find(id, fault)

    def set_tags(self, id, tags):
        with self.call("update_tags"):
            self.require(id, ("pending", "running", "stopping", "stopped"))
            self.change_in_place(id, tags=tags)

    def reboot(self, id):
        with self.call("reboot"):
            self.require(id, ("running",))
            self.change_in_place(id, boots=self.instances[id]["boots"] + 1)

    def resize(self, id, to):
        with self.call("resize"):
            self.require(id, ("stopped",))
            self.change_in_place(id, type=to)

    def require(self, id, states):
        state = self.find(id)["state"]
        if state not in states:
            raise Refused("wrong_state", id=id, state=state)

    def change_in_place(self, id, **fields):
        """Changes fields without touching a transition."""
        self.save("instances", id, {**self.instances[id], **fields})
