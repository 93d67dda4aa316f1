"""The story of one pool, with the real GARM, a provider, an emulator, and the stand-in of the forge."""

import time

import processes
from forge import Forge
from garm import Garm
from runner import Machines

SIZE = 3
PATIENCE = 180
EXEC_TIMEOUT = 15


class Story:
    """One cloud from an empty account to an empty account. A step that does not come true raises an error."""

    def __init__(self, programs, cloud, emulator, provider, home):
        self.cloud, self.emulator, self.home = cloud, emulator, home
        self.forge = Forge()
        self.garm = Garm(programs["garm"], home, provider, EXEC_TIMEOUT)
        self.machines = Machines(emulator, cloud, self.forge)
        self.pool, self.known = None, set()

    def run(self):
        try:
            self.come_up()
            self.replace()
            self.kill_garm()
            self.exceed_deadline()
            self.delete_pool()
        finally:
            self.machines.close()
            self.garm.kill()
            self.forge.close()

    def come_up(self):
        self.say("GARM starts, and an operator creates the endpoint, the repository and the pool")
        self.garm.start()
        self.pool = self.garm.add_pool(self.garm.set_up(self.forge), self.cloud, SIZE)
        self.known = self.settle(f"{SIZE} idle runners come up")

    def replace(self):
        name = sorted(self.known)[0]
        self.say(f"the operator deletes the runner {name}")
        self.garm.api("DELETE", f"instances/{name}")
        names = self.settle("the runner is replaced", {name})
        self.require(len(names - self.known) == 1, f"one runner is new, but these are: {sorted(names - self.known)}")
        self.known = names

    def kill_garm(self):
        """Kills GARM while a create is under way: the cloud has made the machine, and the provider waits for the response."""
        name = sorted(self.known)[0]
        self.say(f"the operator deletes the runner {name}; the response of the next create takes a minute")
        self.fault({"kind": "delay", "phase": "after", "millis": 60_000})
        self.garm.api("DELETE", f"instances/{name}")
        self.wait(lambda: self.in_flight(), "the machine exists, and its create is still under way")
        self.say("GARM and its provider are killed with SIGKILL; GARM starts again")
        self.garm.kill()
        interrupted = {machine.key for machine in self.alive()} - set(self.machines.played)
        self.garm.start()
        self.known = self.settle("the pool is complete again, and nothing is left of the interrupted create", {name}, interrupted)
        self.require_fault()

    def exceed_deadline(self):
        name = sorted(self.known)[0]
        self.say(f"the operator deletes the runner {name}; the cloud executes the next create and never answers")
        self.fault({"kind": "hang", "phase": "after"})
        self.garm.api("DELETE", f"instances/{name}")
        self.wait(lambda: self.killed_by_garm(), f"GARM kills the provider after {EXEC_TIMEOUT} s")
        self.known = self.settle("GARM's next attempt completes the pool", {name})
        self.require_fault()

    def delete_pool(self):
        self.say("the operator empties and deletes the pool")
        self.garm.api("PUT", f"pools/{self.pool}", {"enabled": False, "min_idle_runners": 0})
        for name in self.garm.runners(self.pool):
            self.garm.api("DELETE", f"instances/{name}")
        self.wait(lambda: not self.garm.runners(self.pool), "GARM knows no runner any more")
        self.garm.api("DELETE", f"pools/{self.pool}")
        self.wait(lambda: not self.alive() and not any(self.left().values()), "the oracle shows nothing: no machine, volume, card or address")

    def in_flight(self):
        """Whether a machine exists that GARM has no id of yet, because its create is under way."""
        runners = self.garm.runners(self.pool).values()
        creating = any(runner["status"] == "creating" for runner in runners)
        return creating and any(not any(machine.has(runner.get("provider_id")) for runner in runners) for machine in self.alive())

    def killed_by_garm(self):
        return "context deadline exceeded" in (self.home / "garm.log").read_text(errors="replace")

    def settle(self, what, gone=frozenset(), keys=frozenset()):
        """Waits until GARM's runners are idle and exactly their machines exist. Returns the names."""
        self.wait(lambda: self.complete(gone, keys), what)
        return set(self.garm.runners(self.pool))

    def complete(self, gone, keys):
        runners, machines = self.garm.runners(self.pool), self.alive()
        ids = [runner.get("provider_id") for runner in runners.values()]
        return (len(runners) == len(machines) == SIZE and not gone & set(runners) and not keys & {machine.key for machine in machines}
                and all(runner["status"] == "running" and runner["runner_status"] == "idle" for runner in runners.values())
                and all(sum(machine.has(number) for machine in machines) == 1 for number in ids)
                and self.one_of_each(machines))

    def one_of_each(self, machines):
        """Whether nothing is left beside the machines: no more volumes, cards or addresses than machines."""
        return all(count <= len(machines) for count in self.left().values())

    def alive(self):
        return self.cloud.machines(self.emulator.control("GET", "oracle"))

    def left(self):
        return self.cloud.left(self.emulator.control("GET", "oracle"))

    def fault(self, fault):
        self.emulator.fault(self.cloud.create, fault)

    def require_fault(self):
        unused = self.emulator.control("GET", "faults")
        self.require(not unused, f"the fault was never applied: {unused}")

    def wait(self, condition, what):
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > PATIENCE:
                self.require(False, f"not within {PATIENCE} s: {what}")
            time.sleep(0.5)
        self.say(f"  ok: {what} ({time.monotonic() - started:.0f} s)")

    def require(self, condition, what):
        if not condition:
            state = {"machines": [machine.key for machine in self.alive()], "left": self.left(), "problems": self.machines.problems[-3:],
                     "runners": {name: (item["status"], item["runner_status"]) for name, item in self.garm.runners(self.pool).items()}}
            raise RuntimeError(f"{self.cloud.name}: {what}\n       {state}\n       GARM's log: {self.home}/garm.log")

    def say(self, text):
        print(f"{self.cloud.name}: {text}")


def tell(programs, cloud, provider_for, home):
    """Tells the story on one cloud. `provider_for` creates the provider for an emulator. Returns whether it came true."""
    emulator = processes.Emulator(programs["emulators"], cloud.name)
    try:
        Story(programs, cloud, emulator, provider_for(cloud, emulator, home), home / "garm").run()
        return True
    except (RuntimeError, OSError) as error:
        print(f"FAILED {error}")
        return False
    finally:
        emulator.stop()
