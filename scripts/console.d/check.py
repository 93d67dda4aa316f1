"""Runs the cases: check.py PROGRAM WORK [case...]

The last line is `console: N passed, N failed`; the exit code is 0 only if nothing failed. Pictures are written to WORK/pictures.
"""

import pathlib
import shutil
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from playwright.sync_api import sync_playwright

import day
import hostile
import keyboard
import looks
import reconnect
import session
from browser import launch
from service import Installation, Sample

# Two groups run at the same time, because the cases mostly wait for machines. Each has a browser and services of its own. In a group, the day
# begins with an empty sample, and a case that restarts the service comes last.
GROUPS = [
    [*day.CASES, *hostile.CASES, *session.CASES, *reconnect.CASES],
    [*keyboard.CASES, *looks.CASES],
]


class Environment:
    """What the cases of a group share: the sample, a service with several users, and a folder for pictures."""

    def __init__(self, program, work, folder):
        self.pictures = work / "pictures"
        self.program = program
        self.sample = Sample(program, ["--data", str(folder / "sample")])
        self.installation = Installation(program, folder / "installation")

    def stop(self):
        self.sample.stop()
        self.installation.stop()


def main():
    program, work, wanted = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    shutil.rmtree(work / "pictures", ignore_errors=True)
    (work / "pictures").mkdir(parents=True)
    names = [[case.__name__ for case in group if not wanted or case.__name__ in wanted] for group in GROUPS]
    unknown = set(wanted) - {name for group in names for name in group}
    if unknown:
        sys.exit(f"there is no case {', '.join(sorted(unknown))}; the modules beside {__file__} list them as CASES")
    with ProcessPoolExecutor(len(GROUPS)) as pool:
        groups = [pool.submit(run_group, number, cases, program, work) for number, cases in enumerate(names) if cases]
        results = [result for group in groups for result in group.result()]
    failed = results.count(False)
    print(f"console: {len(results) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not results else 0)


def run_group(number, names, program, work):
    """Runs cases of one group, and returns for each whether it passed."""
    cases = [case for case in GROUPS[number] if case.__name__ in names]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = Environment(program, work, pathlib.Path(folder))
        browser = launch(playwright)
        print(f"group {number}: Chromium {browser.version}", flush=True)
        try:
            return [passes(case, browser, environment) for case in cases]
        finally:
            browser.close()
            environment.stop()


def passes(case, browser, environment):
    started = time.monotonic()
    try:
        case(browser, environment)
    except Exception:
        print(f"FAILED {case.__name__}\n{traceback.format_exc()}", end="", flush=True)
        return False
    print(f"ok {case.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
    return True


if __name__ == "__main__":
    main()
