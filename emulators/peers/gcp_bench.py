"""What the clients of Compute Engine share: names, what a case expects to be refused, and the watch over a case."""

import collections
import types

from tap import Exchange

# A part of the path as a project's name would confuse libcloud, which takes it out of links.
PROJECT, ZONE, OTHER, REGION = "demo", "us-central1-a", "europe-west1-b", "us-central1"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"


class Bench:
    """A client and what it was told. A subclass knows how its client tells a refusal."""

    def __init__(self):
        self.refusals = []

    def reason(self, error):
        """The status and the reason of a refusal, as this client's own error has them; None if it is another error."""
        raise NotImplementedError

    def refused(self, status, reason, call, *arguments, **named):
        """The call must be refused in just this way, and the client must say so."""
        try:
            call(*arguments, **named)
        except Exception as error:
            found = self.reason(error)
            if found is None:
                raise
            assert found == (status, reason), f"refused with {found}, not {(status, reason)}: {error}"
            self.expect(status, reason)
        else:
            raise AssertionError(f"not refused with {(status, reason)}: {arguments} {named}")

    def expect(self, status, reason):
        """A refusal that the client keeps to itself is on the way."""
        self.refusals.append((status, reason))


def watch(exchanges, bench, emulator):
    """What was refused and not expected, or expected and not refused; and what the emulator took for another method."""
    refused = collections.Counter((exchange.status, exchange.code) for exchange in exchanges if exchange.code)
    expected, bench.refusals = collections.Counter(bench.refusals), []
    problems = [f"refused {count} times, and not expected: {what}" for what, count in (refused - expected).items()]
    problems += [f"expected {count} times, and not refused: {what}" for what, count in (expected - refused).items()]
    asked = collections.Counter((exchange.action, exchange.status, exchange.code) for exchange in exchanges)
    record = emulator.control("GET", "calls")
    taken = collections.Counter((call["operation"], call["status"], call["code"]) for call in record)
    problems += [f"asked {count} times, and not in the emulator's record: {what}"
                 for what, count in (asked - taken).items()]
    return problems + [f"in the emulator's record {count} times, and not asked: {what}"
                       for what, count in (taken - asked).items()]


def self_test():
    """Proves that the watch fires: what passed a tap, what was expected, and the emulator's record, which do not fit."""
    missing = Exchange("instances.get", 404, "notFound", [])
    record = {"operation": "instances.get", "status": 404, "code": "notFound"}
    fits = ([missing], [(404, "notFound")], [record])
    wrong = [([missing], [], [record]), ([], [(404, "notFound")], []), ([missing], [(403, "forbidden")], [record]),
             ([missing], [(404, "notFound")], []), ([], [], [record]),
             ([missing], [(404, "notFound")], [record | {"operation": "disks.get"}])]

    def problems(exchanges, expected, calls):
        bench, emulator = Bench(), types.SimpleNamespace(control=lambda *_: calls)
        bench.refusals = expected
        return watch(exchanges, bench, emulator)

    return [f"should pass: {fits}"] * bool(problems(*fits)) + [f"should fail: {case}" for case in wrong if not problems(*case)]
