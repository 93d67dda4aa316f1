"""Kills a provider at every request of a create, does what GARM does next, and counts with the oracle.

The request takes effect before the kill, never, or half a second after it, when GARM's next call may already have looked.

What GARM does next (runner/pool/pool.go at the commit in docs/garm-comparison.md):
  deadline  GARM killed the provider: `addInstanceToProvider` deletes by name, `retryFailedInstancesForOnePool` deletes by name again
            and creates under the same name; the runner is later deleted by its provider id.
  restart   GARM itself was killed: `cleanupRunnersInterruptedInFlight` deletes by name and forgets the name, `ensureMinIdleRunners`
            creates under a new name; that runner is later deleted by its provider id.
A delete that fails is repeated, as GARM does; here at most five times.
"""

import time

from provider import bootstrap, finish, new_name
from proxy import Hold

PHASES = ("before", "after", "late")
PATHS = ("deadline", "restart")
SETTLE = 30


class Count:
    """What a sweep found: how many interrupted creates led to each kind of trouble."""

    def __init__(self):
        self.points = self.doubled = self.lost = self.left = self.failed = 0
        self.notes = []

    @property
    def trouble(self):
        return self.doubled + self.lost + self.left + self.failed

    def note(self, point, trouble):
        self.notes.append(f"{point}: {trouble}")


class Bench:
    """One provider, one emulator, and the proxy between them. `reset` empties the cloud; `left` counts what is left beside machines."""

    def __init__(self, cloud, emulator, proxy, provider, reset, left):
        self.cloud, self.emulator, self.proxy, self.provider = cloud, emulator, proxy, provider
        self.reset, self.left = reset, left

    def alive(self):
        return self.cloud.machines(self.emulator.control("GET", "oracle"))

    def delete(self, instance):
        """Deletes as GARM does. Returns the last error, or None."""
        for _ in range(5):
            call = self.provider.call("DeleteInstance", instance)
            if call.ok or call.code == 30:
                return None
        return call.error or f"exit code {call.code}"

    def create(self, name):
        return self.provider.call("CreateInstance", None, bootstrap(self.cloud, name))

    def settle(self):
        """Waits until the cloud is empty, and returns what is left of machines and of everything else."""
        for _ in range(SETTLE * 10):
            machines, left = self.alive(), self.left()
            if not machines and not any(left.values()):
                break
            time.sleep(0.1)
        return machines, {kind: count for kind, count in left.items() if count}


def sweep(bench, say=lambda _: None):
    """Runs every point until a create is no longer interrupted. Returns the counts, and those of the late requests."""
    counts, number = {phase: Count() for phase in PHASES}, 1
    counts["after"] = counts["before"]
    while True:
        for phase in PHASES:
            for path in PATHS:
                hit = run_point(bench, counts[phase], number, phase, path)
                if hit is None:
                    return counts["before"], counts["late"]
                say(f"{bench.provider.name}: killed, {phase} request {number}, {hit}; then {path}")
        number += 1


def run_point(bench, count, number, phase, path):
    """Runs one point. Returns the request at which the provider was killed, or None if the create has fewer requests."""
    bench.reset()
    name = new_name()
    process = bench.provider.start("CreateInstance", None, bootstrap(bench.cloud, name))
    hold = Hold(number, phase, process.kill)
    bench.proxy.start_count(hold)
    result = finish(process)
    bench.proxy.start_count()  # without a hold
    if not hold.hit:
        if not result.ok:
            raise RuntimeError(f"{bench.provider.name}: the create that was not interrupted fails: {result.error}")
        return None
    count.points += 1
    judge(bench, count, f"{phase} request {number} ({hold.hit}), {path}", name, path, hold)
    return hold.hit


def judge(bench, count, point, name, path, hold):
    """Does what GARM does next, and counts the trouble."""
    errors = [bench.delete(name)]
    if path == "deadline":
        errors.append(bench.delete(name))
    else:
        name = new_name()
    again = bench.create(name)
    errors.append(None if again.ok else again.error)
    hold.over.wait(60)
    machines = bench.alive()
    if path == "deadline" and len(machines) > 1:
        count.doubled += 1
        count.note(point, f"{len(machines)} machines for one name")
    errors.append(bench.delete(again.document["provider_id"] if again.ok else name))
    machines, left = bench.settle()
    if machines:
        count.lost += 1
        count.note(point, f"nobody will ever delete {[machine.key for machine in machines]}")
    elif left:
        count.left += 1
        count.note(point, f"left behind: {left}")
    if any(errors):
        count.failed += 1
        count.note(point, f"GARM gets an error: {next(filter(None, errors))[:300]}")
