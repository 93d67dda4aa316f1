#!/usr/bin/env python3
"""Prints how many mutants of each file the contract tests find: mutants_by_contract.py REASONS OUTCOMES...

REASONS is a TOML file with a table [[survivor]] for each mutant that no contract test can find: `mutant`, a regular expression for its
whole name without line numbers, and `reason`. OUTCOMES is outcomes.json of cargo-mutants. Several are combined, for instance those of
one run for each file; the last outcome of a mutant counts, so a repeated run comes after the first.

The first rate counts every mutant that could be built; the second leaves out those with a reason. A mutant that hangs counts as found,
and is listed. Exits with 1 if a mutant survived without a reason, or if a reason fits no survivor of a file that was mutated.
"""

import collections
import json
import pathlib
import re
import sys
import tomllib


def main(reasons_path, *outcomes_paths):
    reasons = tomllib.loads(pathlib.Path(reasons_path).read_text())["survivor"]
    files = collections.defaultdict(lambda: {"found": 0, "survived": [], "excused": 0})
    used = set()
    last = {}
    for path in outcomes_paths:
        last.update(mutants(json.loads(pathlib.Path(path).read_text())))
    for full_name, (file, summary) in last.items():
        name = re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", full_name)
        fitting = [index for index, entry in enumerate(reasons) if re.fullmatch(entry["mutant"], name)]
        if summary == "Timeout":
            print(f"hung, counted as found: {full_name}")
        if summary != "MissedMutant":
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
    """Yields the name, and the file and the outcome, of each mutant that could be built."""
    for outcome in outcomes["outcomes"]:
        mutant = outcome["scenario"]
        if isinstance(mutant, dict) and outcome["summary"] in ("CaughtMutant", "MissedMutant", "Timeout"):
            yield mutant["Mutant"]["name"], (mutant["Mutant"]["file"], outcome["summary"])


def print_table(files):
    width = max((len(file) for file in files), default=4)
    rows = [(file, counts["found"], len(counts["survived"]), counts["excused"]) for file, counts in sorted(files.items())]
    rows.append(("all", *(sum(row[column] for row in rows) for column in (1, 2, 3))))
    print(f"{'file':{width}}  found  survived  with a reason  rate of all  rate without those with a reason")
    for file, found, survived, excused in rows:
        of_all, of_others = rate(found, survived + excused), rate(found, survived)
        print(f"{file:{width}}  {found:5}  {survived:8}  {excused:13}  {of_all:>11}  {of_others:>32}")


def rate(found, others):
    return f"{100 * found / (found + others):.1f} %" if found + others else "-"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
