"""Runs the foreign clients against the emulator and says what they found: judge.py <emulator> <work directory>

One line for each case, then the table of actions and clients, then the differences from moto.
"""

import pathlib
import sys
import time
import traceback

import differential
import model
import with_awscli
import with_boto3
import with_libcloud
from program import Emulator, Moto, free_port
from tap import Tap

CLIENTS = ["boto3", "awscli", "libcloud"]
# What the emulator promises to speak, in the order of a life; its own list is checked against it.
ACTIONS = [
    "RunInstances", "DescribeInstances", "StopInstances", "StartInstances", "RebootInstances", "TerminateInstances",
    "ModifyInstanceAttribute", "CreateTags", "DeleteTags", "DescribeTags", "DescribeImages", "DescribeInstanceTypes",
    "DescribeVolumes", "DescribeNetworkInterfaces", "DescribeAvailabilityZones", "DescribeSubnets",
    "DescribeSecurityGroups", "GetConsoleOutput", "CreateImage", "DescribeInstanceStatus", "DescribeInstanceAttribute",
    "DescribeAddresses",
]


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


def main():
    sys.stdout.reconfigure(line_buffering=True)
    program, work = sys.argv[1], pathlib.Path(sys.argv[2])
    score = Score()
    score.check("the check against the model fires", model.self_test())
    emulator = Emulator(program)
    taps = {client: Tap(client, emulator.address) for client in CLIENTS}
    try:
        targets = {"boto3": with_boto3.client(taps["boto3"].url), "awscli": taps["awscli"].url,
                   "libcloud": with_libcloud.driver(taps["libcloud"].port)}
        for client, module in zip(CLIENTS, (with_boto3, with_awscli, with_libcloud)):
            for case in module.CASES:
                run_case(score, f"{client}: {case.__doc__.splitlines()[0]}", case, targets[client], emulator)
        for tap in taps.values():
            judge_replies(score, tap)
        table(score, taps, emulator.control("GET", "")["actions"])
        compare_with_moto(score, emulator, work)
    finally:
        for tap in taps.values():
            tap.close()
        emulator.stop()
    print(f"peers: {score.passed} passed, {score.failed} failed")
    sys.exit(1 if score.failed or not score.passed else 0)


def run_case(score, name, case, target, emulator):
    emulator.control("POST", "reset")
    started = time.monotonic()
    try:
        case(target, emulator)
        problems = []
    except Exception:
        problems = traceback.format_exc().splitlines()[-12:]
    score.check(f"{name} ({time.monotonic() - started:.1f}s)", problems)


def judge_replies(score, tap):
    problems = sorted({problem for exchange in tap.exchanges for problem in exchange.problems})
    if not tap.exchanges:
        problems = ["nothing passed the tap"]
    score.check(f"{tap.client}: {len(tap.exchanges)} replies are as the service model says", problems)


def table(score, taps, spoken):
    """Every action with its success and its errors, by client. Built from what passed the taps."""
    problems = []
    print(f"\n{'action':<26}" + "".join(f"{client:<46}" for client in CLIENTS))
    for action in ACTIONS:
        row = f"{action:<26}"
        for client in CLIENTS:
            seen = [exchange for exchange in taps[client].exchanges if exchange.action == action]
            success = "ok" if any(exchange.status == 200 for exchange in seen) else ""
            codes = sorted({exchange.code for exchange in seen if exchange.code})
            error = codes[0] + (f" +{len(codes) - 1}" if codes[1:] else "") if codes else ""
            if client == "libcloud" and action in with_libcloud.NO_CALL:
                success = error = "–"
            for cell, what in ((success, "success"), (error, "error")):
                if not cell:
                    problems.append(f"{action}: {client} has no {what}")
            row += f"{success + ' / ' + error:<46}"
        print(row.rstrip())
    print("–: the client has no call for it\n")
    problems += [f"{action}: spoken and not in the table" for action in sorted(set(spoken) - set(ACTIONS))]
    score.check(f"every action has a success and an error from every client that has a call for it ({len(ACTIONS)} actions)",
                problems)


def compare_with_moto(score, emulator, work):
    try:
        moto = Moto(sys.executable, free_port(), work / "moto.log")
    except RuntimeError as error:
        score.check("moto starts", [str(error)])
        return
    tap = Tap("differential", emulator.address)
    try:
        emulator.control("POST", "reset")
        differential.run(score, tap.url, moto.url)
        judge_replies(score, tap)
    finally:
        tap.close()
        moto.stop()


if __name__ == "__main__":
    main()
