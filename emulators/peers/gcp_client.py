"""What the clients of Compute Engine share: names, the refusals that a case expects, and the check of a case."""

import collections
import types

from recording_proxy import Exchange

# libcloud removes the project's name from links, so the name must not be part of the path.
PROJECT, ZONE, OTHER, REGION = "demo", "us-central1-a", "europe-west1-b", "us-central1"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"


class CaseClient:
    """A client and the refusals that its case expects. A subclass knows how its client reports a refusal."""

    def __init__(self):
        self.refusals = []

    def reason(self, error):
        """Returns the status and the reason of a refusal from this client's error, or None for any other error."""
        raise NotImplementedError

    def refused(self, status, reason, call, *arguments, **named):
        """Checks that the call is refused with this status and reason, and that the client reports it."""
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
        """Announces a refusal that the client will not report."""
        self.refusals.append((status, reason))


def check_case(exchanges, client, emulator):
    """Returns the refusals that were not expected, the expected ones that did not happen, and the calls that the emulator
    recorded as another method."""
    refused = collections.Counter((exchange.status, exchange.code) for exchange in exchanges if exchange.code)
    expected, client.refusals = collections.Counter(client.refusals), []
    problems = [f"refused {count} times, and not expected: {what}" for what, count in (refused - expected).items()]
    problems += [f"expected {count} times, and not refused: {what}" for what, count in (expected - refused).items()]
    sent = collections.Counter((exchange.action, exchange.status, exchange.code) for exchange in exchanges)
    record = emulator.control("GET", "calls")
    recorded = collections.Counter((call["operation"], call["status"], call["code"]) for call in record)
    problems += [f"sent {count} times, and not in the emulator's record: {what}"
                 for what, count in (sent - recorded).items()]
    return problems + [f"in the emulator's record {count} times, and not sent: {what}"
                       for what, count in (recorded - sent).items()]


def self_test():
    """Proves that the check detects exchanges, expectations and emulator records that do not match."""
    missing = Exchange("instances.get", 404, "notFound", [])
    record = {"operation": "instances.get", "status": 404, "code": "notFound"}
    right = ([missing], [(404, "notFound")], [record])
    wrong = [([missing], [], [record]), ([], [(404, "notFound")], []), ([missing], [(403, "forbidden")], [record]),
             ([missing], [(404, "notFound")], []), ([], [], [record]),
             ([missing], [(404, "notFound")], [record | {"operation": "disks.get"}])]

    def problems(exchanges, expected, calls):
        client, emulator = CaseClient(), types.SimpleNamespace(control=lambda *_: calls)
        client.refusals = expected
        return check_case(exchanges, client, emulator)

    return [f"should pass: {right}"] * bool(problems(*right)) + [f"should fail: {case}" for case in wrong if not problems(*case)]
