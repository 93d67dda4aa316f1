"""What the checks of all clouds share: the result counter, running the cases, and the table of actions and clients."""

import sys
import time
import traceback

from processes import Emulator
from recording_proxy import RecordingProxy


class Results:
    """Counts and prints the results of checks."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, problems):
        """Counts one check, and prints its problems. It passed if there are none."""
        problems = list(problems)
        if problems:
            self.failed += 1
        else:
            self.passed += 1
        print(f"{'FAILED' if problems else 'ok    '} {name}")
        for problem in problems[:400]:
            print(f"       {problem}")


def run_checks(cloud, model, clients, no_call, actions=None, excused=None, check_case=None, more=None, notes=()):
    """Runs the cases of all clients of one cloud against the emulator program in the first argument, prints the table,
    and exits with the result.

    `clients`: name -> (module with CASES, function that creates the client from a proxy). `actions`: the rows of the
    table; by default the emulator's own list. `no_call`, `excused`: see `check_coverage`. `check_case` returns the problems
    in the exchanges of one case. `more` is called at the end with the results and the emulator. `notes` are appended to
    the last line.
    """
    sys.stdout.reconfigure(line_buffering=True)
    results = Results()
    results.check("the check against the model detects errors", model.self_test())
    emulator = Emulator(sys.argv[1], cloud)
    proxies = {client: RecordingProxy(client, emulator.address, model.check_exchange) for client in clients}
    try:
        for client, (module, create) in clients.items():
            target = create(proxies[client])
            for case in module.CASES:
                name = f"{client}: {case.__doc__.splitlines()[0]}"
                run_case(results, name, case, target, emulator, check_case and from_now_on(check_case, proxies[client]))
        for proxy in proxies.values():
            check_responses(results, proxy)
        about = emulator.control("GET", "")
        supported = next(about[key] for key in ("actions", "methods", "operations") if key in about)
        check_coverage(results, proxies, supported, actions or supported, no_call, excused)
        if more:
            more(results, emulator)
    finally:
        for proxy in proxies.values():
            proxy.close()
        emulator.stop()
    print("; ".join([f"{cloud}: {results.passed} passed, {results.failed} failed", *notes]))
    sys.exit(1 if results.failed or not results.passed else 0)


def from_now_on(check_case, proxy):
    """Returns `check_case` for the exchanges that the proxy records from now on."""
    start = len(proxy.exchanges)
    return lambda target, emulator: check_case(proxy.exchanges[start:], target, emulator)


def run_case(results, name, case, target, emulator, check_case=None):
    """Resets the emulator and runs one case."""
    emulator.control("POST", "reset")
    started = time.monotonic()
    try:
        case(target, emulator)
        problems = []
    except Exception:
        problems = traceback.format_exc().splitlines()[-12:]
    problems += check_case(target, emulator) if check_case else []
    results.check(f"{name} ({time.monotonic() - started:.1f}s)", problems)


def check_responses(results, proxy):
    """Checks that the proxy recorded exchanges and that every response conforms to the service model."""
    problems = sorted({problem for exchange in proxy.exchanges for problem in exchange.problems})
    if not proxy.exchanges:
        problems = ["the proxy recorded no exchange"]
    results.check(f"{proxy.client}: {len(proxy.exchanges)} responses conform to the service model", problems)


def check_coverage(results, proxies, supported, actions, no_call, excused=None):
    """Prints every action with its success and its errors, by client, from the recorded exchanges, and checks that the
    table is complete.

    `no_call`: client -> the actions that it has no call for, or None if it need not cover anything. `excused`: action ->
    the reason why it cannot succeed. An action that no client calls is always a problem.
    """
    excused, problems = excused or {}, []
    rows = [["action", *proxies]]
    for action in actions:
        rows.append([action])
        for client, proxy in proxies.items():
            exchanges = [exchange for exchange in proxy.exchanges if exchange.action == action]
            success, error = cells(exchanges)
            rows[-1].append(" ".join(filter(None, [success, error])) or "–")
            none = no_call.get(client, ())
            if none is None or action in none and not exchanges:
                continue
            problems += [f"{action}: {client} called it, but its list says that it has no call for it"] if action in none else []
            problems += [f"{action}: {client} has no {what}; add a case"
                         for what, cell in (("success", success or excused.get(action)), ("error", error)) if not cell]
        if not any(cell.startswith("✓") for cell in rows[-1][1:]) and action not in excused:
            problems.append(f"{action}: no client succeeds with it; add a case, or excuse it with a reason")
    print_table(rows)
    print("✓: it succeeds; then the error codes that the client got. –: the client does not call it")
    print("".join(f"no ✓ for {action}: {reason}\n" for action, reason in excused.items()))
    problems += [f"{action}: supported, but not in the table" for action in sorted(set(supported) - set(actions))]
    results.check(f"every action has a success and an error from every client that has a call for it ({len(actions)} actions)",
                  problems)


def cells(exchanges):
    """Returns the success mark and the error codes of some exchanges."""
    codes = sorted({exchange.code for exchange in exchanges if exchange.code})
    error = codes[0] + (f" +{len(codes) - 1}" if codes[1:] else "") if codes else ""
    return "✓" if any(exchange.status < 300 for exchange in exchanges) else "", error


def print_table(rows):
    widths = [max(map(len, column)) + 2 for column in zip(*rows)]
    print()
    for row in rows:
        print("".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())
