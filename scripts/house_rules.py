"""The house rules as plain functions: facts in, problems out.

A rule never runs a command and never opens a file, so that house_self_test.py can prove on made-up facts that it fires.
A problem is one line: what is wrong, where, and what to do.
"""

import re

CORE = "fleetwright"
ANYTHING = None

# Which workspace crates a crate may name in [dependencies] and [build-dependencies]. Dev-dependencies are free.
ARROWS = {
    "fleetwright": set(),
    "fleetwright-chaos": set(),
    "fleetwright-memory": {"fleetwright", "fleetwright-chaos"},
    "fleetwright-provider-support": {"fleetwright"},
    "fleetwright-ec2": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-gcp": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-azure": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-clause-engine": set(),
    "fleetwright-contract-tests": {"fleetwright", "fleetwright-clause-engine"},
    "fleetwright-contract-zoo": {"fleetwright", "fleetwright-contract-tests", "fleetwright-memory"},
    "fleetwright-emulators": {"fleetwright-chaos"},
    "fleetwright-provider-testkit": {"fleetwright", "fleetwright-contract-tests", "fleetwright-emulators"},
    "fleetwright-store": {"fleetwright-clause-engine"},
    "fleetwright-store-sqlite": {"fleetwright-store"},
    "fleetwright-store-etcd": {"fleetwright-store"},
    "fleetwright-identity": {"fleetwright-store"},
    "fleetwright-runtime": {"fleetwright-store"},
    "fleetwright-cloud-init": set(),
    "fleetwright-region": {
        "fleetwright", "fleetwright-store", "fleetwright-identity", "fleetwright-runtime", "fleetwright-cloud-init",
    },
    "fleetwright-compute": {
        "fleetwright", "fleetwright-store", "fleetwright-identity", "fleetwright-runtime", "fleetwright-region",
    },
    "fleetwright-examples": {
        "fleetwright", "fleetwright-memory", "fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure",
    },
    "layers": ANYTHING,
    "compute": ANYTHING,
    "conformance": ANYTHING,
    "fleetwright-simulation": ANYTHING,
    "fleetwright-facade-testkit": ANYTHING,
    "region-e2e": ANYTHING,
    "fleetwright-bench": ANYTHING,
}

# Arrows that must be optional: the light examples build no vendor SDK unless a feature asks for it.
OPTIONAL_ARROWS = {
    "fleetwright-examples": {"fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure"},
}

VENDOR_SDK = re.compile(r"aws|google|azure", re.IGNORECASE)
SOCKETS = re.compile(r"^(hyper|reqwest|h2|rustls|native-tls|socket2|mio)$")

PROVIDER_FILES = [
    "README.md",
    "src/lib.rs",
    "src/config.rs",
    "src/client.rs",
    "src/convert.rs",
    "src/state.rs",
    "src/error.rs",
    "src/provisioner.rs",
    "tests/contract.rs",
    "tests/live.rs",
]
# Folders of providers/ that are not a provider: what providers share, and what their tests share.
NOT_PROVIDERS = {"support", "testkit"}
# Provider -> common file -> the file it has instead, or None for none at all.
PROVIDER_EXCEPTIONS = {
    # A simulated cloud is its own engine: there is no remote to call, and nothing live to run against.
    "memory": {"src/client.rs": "src/engine/mod.rs", "tests/live.rs": None},
}

# Written in pieces, so that this file does not name what it forbids.
REGISTRY_HOSTS = [
    "crates" + ".io",
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry.npmjs" + ".org",
    "deb.debian" + ".org",
    "security.debian" + ".org",
]
# An absolute path starts with its slash: a longer path or a variable in front makes it another path.
MACHINE_PATHS = re.compile(r"(?<![\w.~*)}>-])/(?:work|root|tmp/bash\w*)" + "/")

# The known failings of systems like the façade: defects and caveats. docs/facade.md has a row for each.
FACADE_ITEMS = [f"B{number}" for number in range(1, 27)] + [f"C{number}" for number in range(1, 26)]

MAX_CODE_LINES = 500
# Path -> why this file is better long than split.
LONG_FILES = {}


def crate_is_known(name):
    if name in ARROWS:
        return []
    return [f"{name}: a workspace crate without a row in ARROWS of scripts/house_rules.py; "
            "add the row with the crates it may depend on, and the crate to ARCHITECTURE.md"]


def arrows_are_allowed(name, dependencies):
    """`dependencies`: (workspace crate, kind, optional) of every normal and build dependency."""
    allowed = ARROWS.get(name, ANYTHING)
    if allowed is ANYTHING:
        return []
    problems = []
    for target, kind, optional in dependencies:
        if target not in allowed:
            permitted = ", ".join(sorted(allowed)) or "no workspace crate"
            problems.append(f"{name} -> {target}: a {kind} dependency against the house's arrows; "
                            f"{name} may depend on: {permitted}; move the code, or make it a dev-dependency")
        elif not optional and target in OPTIONAL_ARROWS.get(name, set()):
            problems.append(f"{name} -> {target}: must be `optional = true` behind a feature, "
                            "so that a plain build has no vendor SDK")
    return problems


def tree_is_free_of(what, pattern, crates):
    """`crates`: the (name, version) pairs that `what` builds."""
    return [f"{what}: builds {name} {version}, which matches `{pattern.pattern}`; "
            f"find who brings it with `cargo tree -e normal -i {name}` and put it behind a feature or in another crate"
            for name, version in sorted(crates) if pattern.search(name)]


def readme_states_core_count(readme, count):
    found = re.findall(r"<!-- core-deps -->\s*(\d+)\s*<!-- /core-deps -->", readme)
    if not found:
        return ["README.md: has no core dependency count; "
                f"write `<!-- core-deps -->{count}<!-- /core-deps -->` where it states the number"]
    return [f"README.md: says that core has {stated} dependencies, cargo tree counts {count}; correct the number"
            for stated in found if int(stated) != count]


def readme_states_clause_count(readme, clause_list):
    """`clause_list`: the source of the list of clauses."""
    count = len(re.findall(r'"[A-Z]+-\d\d" "', clause_list))
    found = re.findall(r"<!-- clauses -->\s*(\d+)\s*<!-- /clauses -->", readme)
    if not found:
        return [f"README.md: does not state the number of clauses; write `<!-- clauses -->{count}<!-- /clauses -->`"]
    return [f"README.md: says that the contract has {stated} clauses, the list has {count}; correct the number"
            for stated in found if int(stated) != count]


def provider_has_common_files(provider, files):
    """`files`: the paths inside the provider's directory."""
    exceptions = PROVIDER_EXCEPTIONS.get(provider, {})
    needed = [exceptions.get(path, path) for path in PROVIDER_FILES]
    return [f"providers/{provider}/{path}: missing; every provider has the common files, add it"
            for path in needed if path is not None and path not in files]


def manifest_inherits_lints(path, manifest):
    if manifest.get("lints", {}).get("workspace") is True:
        return []
    return [f"{path}: does not inherit the workspace's lints; add `[lints]` with `workspace = true`"]


def text_names_no_registry(path, text):
    return [f"{path}:{line}: names the package registry host {host}; say it without the host"
            for host in REGISTRY_HOSTS for line in lines_with(re.compile(re.escape(host)), text)]


def text_names_no_machine_path(path, text):
    return [f"{path}:{line}: names an absolute path of one machine; make it relative to the repository"
            for line in lines_with(MACHINE_PATHS, text)]


def rust_file_is_small(path, text, exceptions=None):
    exceptions = LONG_FILES if exceptions is None else exceptions
    count = sum(1 for line in text.splitlines() if is_code(line))
    if count > MAX_CODE_LINES and not exceptions.get(path):
        return [f"{path}: {count} code lines, more than {MAX_CODE_LINES}; "
                "split it, or give LONG_FILES in scripts/house_rules.py a reason"]
    if count <= MAX_CODE_LINES and path in exceptions:
        return [f"{path}: {count} code lines need no exception; take it out of LONG_FILES in scripts/house_rules.py"]
    return []


def every_item_has_its_row(path, text, items=None):
    """`text`: a page with a table whose first column names each of the items once."""
    items = FACADE_ITEMS if items is None else items
    rows = [(number, line.split("|")[1].strip(), line) for number, line in numbered_rows(text)]
    found = [item.split()[0] for _, item, _ in rows]
    problems = [f"{path}: has no row for {item}; write what is done about it and the tests that prove it"
                for item in items if item not in found]
    problems += [f"{path}:{number}: {item} is no item of the table; correct it, or add it to FACADE_ITEMS of scripts/house_rules.py"
                 for number, item, _ in rows if item.split()[0] not in items]
    problems += [f"{path}:{number}: {item} has a row already; make one of the two"
                 for place, (number, item, _) in enumerate(rows) if item.split()[0] in found[:place]]
    problems += [f"{path}:{number}: {item} is resolved in part; do the rest and say so"
                 for number, item, line in rows if re.search(r"\(in part\)|\bMissing: ", line)]
    return problems


def numbered_rows(text):
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if re.match(r"\| [A-Z]\d+\b", line)]


def cited_tests_exist(path, text, sources):
    """`text`: a page with tables whose last column names tests as `name` in `file`, and may quote words of the sources. Where no test
    can be, a stage of scripts/stages.sh or a rule of this file is named in the same way.
    `sources`: the text of each such file by its path."""
    problems = []
    rows = numbered_rows(text)
    if not rows:
        return [f"{path}: has no row to check; write rows as `| B1 | ... | tests |`"]
    for number, row in rows:
        names, cited = [], 0
        for token in re.findall(r"`([^`]+)`", row.rstrip(" |").rsplit(" | ", 1)[-1]):
            if token.endswith((".rs", ".sh", ".py")):
                files = [text for file, text in sources.items() if f"/{file}".endswith(f"/{token}")]
                if not files:
                    problems.append(f"{path}:{number}: there is no file {token}; correct the path")
                problems += [f"{path}:{number}: there is no test {name} in {token}; correct the name or write the test"
                             for name in names if files and not any(has_test(text, name) for text in files)]
                cited += len(names)
                names = []
            elif re.fullmatch(r"\w+", token):
                names.append(token)
            elif not any(f'"{token}"' in text for text in sources.values()):
                problems.append(f"{path}:{number}: no source has \"{token}\"; correct the word")
        problems += [f"{path}:{number}: does not say which file test {name} is in; write `{name}` in `file.rs`"
                     for name in names]
        if cited + len(names) == 0:
            problems.append(f"{path}:{number}: names no test; name the one that would fail")
    return problems


def has_test(text, name):
    """Whether a function of that name has `#[test]` or its like among the attributes above it, or is a stage or a rule."""
    if re.search(r"^(" + re.escape(name) + r"\(\) \{|def " + re.escape(name) + r"\()", text, re.MULTILINE):
        return True
    return re.search(r"#\[(tokio::)?test\b[^\n]*\n(\s*(#\[|//)[^\n]*\n)*\s*(async )?fn " + re.escape(name) + r"\(", text) is not None


def is_code(line):
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("//")


def lines_with(pattern, text):
    return [number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


RULES = [
    crate_is_known,
    arrows_are_allowed,
    tree_is_free_of,
    readme_states_core_count,
    readme_states_clause_count,
    provider_has_common_files,
    manifest_inherits_lints,
    text_names_no_registry,
    text_names_no_machine_path,
    rust_file_is_small,
    every_item_has_its_row,
    cited_tests_exist,
]
