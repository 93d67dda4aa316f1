"""Measures a provider in the same run: requests, time and size."""

import pathlib
import statistics
import time

from provider import new_name

LISTED = 1_000


def measure(bench):
    """Returns the requests of a create and of a list of a thousand, the time of a call, and the size of the program."""
    bench.reset()
    result = {"size": pathlib.Path(bench.provider.program).stat().st_size / 1e6}
    result["version"] = statistics.median(version(bench) for _ in range(21)) * 1000
    creates = []
    for _ in range(5):
        bench.reset()
        bench.proxy.start_count()
        call = bench.create(new_name())
        if not call.ok:
            raise RuntimeError(f"{bench.provider.name}: create fails: {call.error}")
        creates.append((call.seconds * 1000, len(bench.proxy.requests)))
    result["create"] = statistics.median(millis for millis, _ in creates)
    result["create_requests"] = statistics.median(requests for _, requests in creates)
    result["listed"], result["list_requests"] = list_thousand(bench)
    bench.reset()
    return result


def version(bench):
    started = time.monotonic()
    bench.provider.call("GetVersion")
    return time.monotonic() - started


def list_thousand(bench):
    """Adds copies of the machine that the provider created, with names of their own, and lists the pool."""
    oracle = bench.emulator.control("GET", "oracle")
    machine = bench.cloud.machines(oracle)[0]
    name = next((value for value in machine.tags.values() if value.startswith("ci-")), machine.name)
    for number in range(LISTED - 1):
        tags = {key: value.replace(name, f"ci-{number:012}") for key, value in machine.tags.items()}
        bench.emulator.control("POST", "external-actions", bench.cloud.external(tags, oracle))
    bench.proxy.start_count()
    call = bench.provider.call("ListInstances")
    if not call.ok:
        return f"error: {call.error[:200]}", len(bench.proxy.requests)
    return len(call.document), len(bench.proxy.requests)
