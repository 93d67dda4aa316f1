#!/usr/bin/env python3
"""Runs a test program until a test fails: fail_fast.py PROGRAM [ARGUMENT]...

A runner for cargo, as CARGO_TARGET_<TRIPLE>_RUNNER. libtest runs all tests after the first failure, which takes most of the time if
only the fact of a failure matters. The first test that fails is run once more, alone. If it fails again, the program is stopped and this
one exits with 101. If it passes, the load of the machine was the reason, and the program goes on.
"""

import re
import subprocess
import sys

FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$")


def main(program, *arguments):
    running = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
    passed_alone = 0
    for line in running.stdout:
        print(line, end="", flush=True)
        failed = FAILED.match(line)
        if not failed:
            continue
        if fails_alone(program, failed[1]):
            running.kill()
            running.wait()
            print(f"stopped at the first failure: {failed[1]}", flush=True)
            return 101
        passed_alone += 1
        print(f"passed alone, so it does not count: {failed[1]}", flush=True)
    code = running.wait()
    # With 101, libtest reports failed tests, and each of them has passed alone. Any other code is a crash.
    return 0 if code == 101 and passed_alone else code


def fails_alone(program, name):
    """Returns whether the test fails on its own, and prints why."""
    alone = subprocess.run([program, name, "--exact"], stdout=subprocess.PIPE, text=True, check=False)
    if alone.returncode != 0:
        print(alone.stdout, flush=True)
    return alone.returncode != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
