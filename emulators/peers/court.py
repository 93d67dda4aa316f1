"""What the judges of all clouds share: the score, the cases of each client, and the table of actions and clients."""

import sys
import time
import traceback

from program import Emulator
from tap import Tap


class Score:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, problems):
        """Counts one check, and prints what is wrong with it."""
        problems = list(problems)
        if problems:
            self.failed += 1
        else:
            self.passed += 1
        print(f"{'FAILED' if problems else 'ok    '} {name}")
        for problem in problems[:400]:
            print(f"       {problem}")


def hold(cloud, model, clients, no_call, actions=None, excused=None, watch=None, more=None, notes=()):
    """Lets the clients of one cloud judge its emulator, the program of the first argument, and ends by the score.

    `clients`: name -> (module with CASES, what makes its target of a tap). `actions`: the rows of the table, the emulator's
    own list without it; `no_call`, `excused`: see `table`. `watch` finds problems in what passed the tap in a case. `more` is
    asked at the end, with the score and the emulator. `notes` go behind the counts, in the last line.
    """
    sys.stdout.reconfigure(line_buffering=True)
    score = Score()
    score.check("the check against the model fires", model.self_test())
    emulator = Emulator(sys.argv[1], cloud)
    taps = {client: Tap(client, emulator.address, model.judge) for client in clients}
    try:
        for client, (module, make) in clients.items():
            target = make(taps[client])
            for case in module.CASES:
                name = f"{client}: {case.__doc__.splitlines()[0]}"
                run_case(score, name, case, target, emulator, watch and watched(watch, taps[client]))
        for tap in taps.values():
            judge_replies(score, tap)
        about = emulator.control("GET", "")
        spoken = next(about[key] for key in ("actions", "methods", "operations") if key in about)
        table(score, taps, spoken, actions or spoken, no_call, excused)
        if more:
            more(score, emulator)
    finally:
        for tap in taps.values():
            tap.close()
        emulator.stop()
    print("; ".join([f"{cloud}: {score.passed} passed, {score.failed} failed", *notes]))
    sys.exit(1 if score.failed or not score.passed else 0)


def watched(watch, tap):
    """`watch` for what passes the tap from now on."""
    since = len(tap.exchanges)
    return lambda target, emulator: watch(tap.exchanges[since:], target, emulator)


def run_case(score, name, case, target, emulator, watch=None):
    emulator.control("POST", "reset")
    started = time.monotonic()
    try:
        case(target, emulator)
        problems = []
    except Exception:
        problems = traceback.format_exc().splitlines()[-12:]
    problems += watch(target, emulator) if watch else []
    score.check(f"{name} ({time.monotonic() - started:.1f}s)", problems)


def judge_replies(score, tap):
    problems = sorted({problem for exchange in tap.exchanges for problem in exchange.problems})
    if not tap.exchanges:
        problems = ["nothing passed the tap"]
    score.check(f"{tap.client}: {len(tap.exchanges)} replies are as the service model says", problems)


def table(score, taps, spoken, actions, no_call, excused=None):
    """Every action with its success and its errors, by client. Built from what passed the taps.

    `no_call`: client -> what it has no call for, or None if nothing is expected of it. `excused`: action -> why it can
    not succeed. Nobody at all asking for an action is a problem, whatever the rest says.
    """
    excused, problems = excused or {}, []
    rows = [["action", *taps]]
    for action in actions:
        rows.append([action])
        for client, tap in taps.items():
            seen = [exchange for exchange in tap.exchanges if exchange.action == action]
            success, error = cells(seen)
            rows[-1].append(" ".join(filter(None, [success, error])) or "–")
            none = no_call.get(client, ())
            if none is None or action in none and not seen:
                continue
            problems += [f"{action}: {client} is said to have no call for it, and called it"] if action in none else []
            problems += [f"{action}: {client} has no {what}; add a case"
                         for what, cell in (("success", success or excused.get(action)), ("error", error)) if not cell]
        if not any(cell.startswith("✓") for cell in rows[-1][1:]) and action not in excused:
            problems.append(f"{action}: no client succeeds with it; add a case, or excuse it with a reason")
    show(rows)
    print("✓: it succeeds, and what else it was refused with. –: the client does not call it")
    print("".join(f"no ✓ for {action}: {why}\n" for action, why in excused.items()))
    problems += [f"{action}: spoken and not in the table" for action in sorted(set(spoken) - set(actions))]
    score.check(f"every action has a success and an error from every client that has a call for it ({len(actions)} actions)",
                problems)


def cells(seen):
    """The success and the errors of some exchanges, in a few letters."""
    codes = sorted({exchange.code for exchange in seen if exchange.code})
    error = codes[0] + (f" +{len(codes) - 1}" if codes[1:] else "") if codes else ""
    return "✓" if any(exchange.status < 300 for exchange in seen) else "", error


def show(rows):
    wide = [max(map(len, column)) + 2 for column in zip(*rows)]
    print()
    for row in rows:
        print("".join(f"{cell:<{width}}" for cell, width in zip(row, wide)).rstrip())
