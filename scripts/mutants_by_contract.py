#!/usr/bin/env python3
"""Prints how many mutants of each file the contract tests find: mutants_by_contract.py OUTCOMES REASONS

OUTCOMES is outcomes.json of cargo-mutants. REASONS is a TOML file with a table [[survivor]] for each mutant that no contract test can find:
`mutant`, a regular expression for its whole name without line numbers, and `reason`. A mutant with a reason does not count; a mutant that
hangs counts as found. Exits with 1 if a mutant survived without a reason, or if a reason fits no survivor of a file that was mutated.
"""

import collections
import json
import pathlib
import re
import sys
import tomllib


def main(outcomes_path, reasons_path):
    reasons = tomllib.loads(pathlib.Path(reasons_path).read_text())["survivor"]
    files = collections.defaultdict(lambda: {"found": 0, "survived": [], "excused": 0})
    used = set()
    for file, name, found in mutants(json.loads(pathlib.Path(outcomes_path).read_text())):
        fitting = [index for index, entry in enumerate(reasons) if re.fullmatch(entry["mutant"], name)]
        if found:
            files[file]["found"] += 1
        elif fitting:
            used.update(fitting)
            files[file]["excused"] += 1
        else:
            files[file]["survived"].append(name)
    unused = [entry["mutant"] for index, entry in enumerate(reasons)
              if index not in used and any(re.search(re.escape(file), entry["mutant"].replace("\\", "")) for file in files)]
    print_table(files)
    for file in sorted(files):
        for name in files[file]["survived"]:
            print(f"survived: {name}")
    for mutant in unused:
        print(f"no survivor fits this reason; remove it: {mutant}")
    return 1 if unused or any(counts["survived"] for counts in files.values()) else 0


def mutants(outcomes):
    """Yields the file, the name without line numbers, and whether the mutant was found, of each mutant that could be built."""
    for outcome in outcomes["outcomes"]:
        mutant = outcome["scenario"]
        if not isinstance(mutant, dict) or outcome["summary"] not in ("CaughtMutant", "MissedMutant", "Timeout"):
            continue
        mutant = mutant["Mutant"]
        name = re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", mutant["name"])
        yield mutant["file"], name, outcome["summary"] != "MissedMutant"


def print_table(files):
    width = max((len(file) for file in files), default=4)
    rows = [(file, counts["found"], len(counts["survived"]), counts["excused"]) for file, counts in sorted(files.items())]
    rows.append(("all", *(sum(row[column] for row in rows) for column in (1, 2, 3))))
    print(f"{'file':{width}}  found  survived  with a reason  kill rate")
    for file, found, survived, excused in rows:
        judged = found + survived
        rate = f"{100 * found / judged:.1f} %" if judged else "-"
        print(f"{file:{width}}  {found:5}  {survived:8}  {excused:13}  {rate:>9}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
