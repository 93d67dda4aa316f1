"""Runs the contract on apache-libcloud's EC2 driver, and compares what it finds with docs/libcloud.md.

The checks of EC2 leave out the sweeps, which take minutes. `emulators/peers/run libcloud` runs them too: as a program,
ec2_libcloud_contract.py EMULATOR WORK, this also writes the page as it should be to WORK/libcloud.md, to be copied over docs/libcloud.md
after looking at what changed.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "libcloud.md"
# Name of the run -> page size of the emulator, and the clauses. EC2's pages have 1,000 instances; on small ones few instances show
# what happens to many.
RUNS = {"one page": (1000, []), "pages of 5": (5, ["LIST-"])}
# A fault or a crash at every native call of a lifecycle, and every fault at every native call of every operation.
SWEEPS = ["CRASH-03", "CRASH-04", *(f"MATRIX-{number:02}" for number in range(1, 9))]
ROW = re.compile(r"\| ([A-Z]+-\d+) \| ([a-z ]+) \|")


def run(results, program, work, skipped=SWEEPS):
    """Adds one check for each run to `results`. Returns the page with these results."""
    text = PAGE.read_text(encoding="utf-8")
    found = {name: contract(program, work, skipped, *how) for name, how in RUNS.items()}
    for name, clauses in found.items():
        published = {id: result for id, result in ROW.findall(section(text, name)) if id not in skipped}
        actual = {one["id"]: word(one["status"]) for one in clauses}
        problems = [f"{id}: docs/libcloud.md says {published.get(id)}, and the contract finds {actual.get(id)}"
                    for id in sorted(published.keys() | actual.keys()) if published.get(id) != actual.get(id)]
        if problems:
            problems.append("run emulators/peers/run libcloud, and see its page")
        results.check(f"docs/libcloud.md, {name}", problems)
    return updated(text, found)


def contract(program, work, skipped, page_size, families):
    """Returns the entries of the report of one run."""
    report = work / "libcloud-contract.json"
    report.unlink(missing_ok=True)
    command = [program.parent / "contract-run", "--jobs", "8", "--report", report]
    for family in families:
        command += ["--filter", family]
    for clause in skipped:
        command += ["--skip", clause]
    command += ["--", sys.executable, "-B", HERE / "libcloud_backend.py", program, str(page_size)]
    with open(work / "libcloud-contract.log", "w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=False)
    clauses = json.loads(report.read_text(encoding="utf-8"))["clauses"]
    selected = [one for one in clauses if not families or one["id"].startswith(tuple(families))]
    return [one for one in selected if one["id"] not in skipped]


def word(status):
    return {"fail": "violated"}.get(status, status.replace("_", " "))


def section(text, name):
    """Returns what is between the marks of a run, or nothing."""
    found = re.search(marks(name), text, re.DOTALL)
    return found[1] if found else ""


def marks(name):
    return rf"(?<=<!-- begin {re.escape(name)} -->\n)(.*?)(?=<!-- end {re.escape(name)} -->)"


def updated(text, found):
    """Returns the page with the tables of these results."""
    for name, clauses in found.items():
        counts = collections.Counter(word(one["status"]) for one in clauses)
        table = [", ".join(f"{count} {status}" for status, count in counts.most_common()) + ".", "",
                 "| clause | result | observed |", "| --- | --- | --- |"]
        table += [f"| {one['id']} | {word(one['status'])} | {reason(one)} |" for one in clauses]
        text = re.sub(marks(name), lambda _: "\n".join(table) + "\n", text, flags=re.DOTALL)
    return text


def reason(entry):
    """Returns the first line of a reason, without what differs from run to run."""
    if entry["status"] in ("pass", "refused", "not_claimed"):
        return ""
    text = next(iter((entry.get("reason") or "").splitlines()), "")
    text = re.sub(r"\bi-[0-9a-f]{17}\b", "i-…", text)
    text = re.sub(r"\b[0-9.]+(s|ms|µs)\b", "…", text)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{32}\b", "…", text)
    text = re.sub(r"(i-…, )+i-…", "i-…, …", text).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= 220 else text[:220].rsplit(" ", 1)[0] + " …"


class Printed:
    """Prints the checks and counts the failed ones."""

    failed = 0

    def check(self, name, problems):
        self.failed += bool(problems)
        print(f"{name}: {'differs' if problems else 'ok'}")
        for problem in problems:
            print(f"    {problem}")


def main():
    program, work, printed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), Printed()
    page = run(printed, program, work, skipped=[])
    (work / "libcloud.md").write_text(page, encoding="utf-8")
    print(f"the page as it should be: {work / 'libcloud.md'}")
    return 1 if printed.failed else 0


if __name__ == "__main__":
    sys.exit(main())
