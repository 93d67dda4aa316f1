"""The house rules as pure functions from facts to problems.

A rule never runs a command or opens a file, so that house_self_test.py can test it. A problem is one line: what is wrong, where, and what to do.
"""

import re

CORE = "fleetwright"
ANYTHING = None

# The workspace crates that a crate may have in [dependencies] and [build-dependencies]. Dev-dependencies are not restricted.
ARROWS = {
    "fleetwright": set(),
    "fleetwright-chaos": set(),
    "fleetwright-memory": {"fleetwright", "fleetwright-chaos", "fleetwright-provider-support"},
    "fleetwright-provider-support": {"fleetwright"},
    "fleetwright-ec2": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-gcp": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-azure": {"fleetwright", "fleetwright-provider-support"},
    "fleetwright-clause-engine": set(),
    "fleetwright-contract-tests": {"fleetwright", "fleetwright-clause-engine"},
    "fleetwright-contract-run": {"fleetwright", "fleetwright-contract-tests"},
    "fleetwright-memory-harness": {"fleetwright", "fleetwright-contract-tests", "fleetwright-memory"},
    "fleetwright-contract-zoo": {
        "fleetwright", "fleetwright-contract-tests", "fleetwright-memory", "fleetwright-memory-harness", "fleetwright-provider-support",
    },
    "fleetwright-emulators": {"fleetwright-chaos"},
    "fleetwright-provider-testkit": {
        "fleetwright", "fleetwright-contract-tests", "fleetwright-emulators", "fleetwright-provider-support",
    },
    "fleetwright-store": set(),
    "fleetwright-store-contract": {"fleetwright-clause-engine", "fleetwright-store"},
    "fleetwright-store-zoo": {"fleetwright-store", "fleetwright-store-contract"},
    "fleetwright-store-sqlite": {"fleetwright-store"},
    "fleetwright-identity": {"fleetwright-store", "fleetwright-runtime"},
    "fleetwright-runtime": {"fleetwright-store"},
    "fleetwright-cloud-init": set(),
    "fleetwright-region": {
        "fleetwright", "fleetwright-store", "fleetwright-identity", "fleetwright-runtime", "fleetwright-cloud-init",
    },
    "fleetwright-compute": {
        "fleetwright", "fleetwright-store", "fleetwright-identity", "fleetwright-runtime", "fleetwright-region",
    },
    "fleetwright-api": set(),
    "fleetwright-client": {"fleetwright-api"},
    "fleetwright-cli": {"fleetwright-api", "fleetwright-client"},
    "fleetwright-server": {
        "fleetwright", "fleetwright-api", "fleetwright-azure", "fleetwright-compute", "fleetwright-ec2", "fleetwright-gcp",
        "fleetwright-identity", "fleetwright-memory", "fleetwright-region", "fleetwright-runtime", "fleetwright-store",
        "fleetwright-store-sqlite",
    },
    "fleetwright-examples": {
        "fleetwright", "fleetwright-memory", "fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure",
    },
    "fleetwright-bench": ANYTHING,
    "layers": ANYTHING,
    "persistent": {"fleetwright"},
    "compute": ANYTHING,
    "fleetwright-simulation": ANYTHING,
    "fleetwright-facade-testkit": ANYTHING,
    "region-e2e": ANYTHING,
    "server-e2e": ANYTHING,
    "garm-provider-fleetwright": {
        "fleetwright", "fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure", "persistent",
    },
}

# Dependencies that must be optional: the examples and the measurements build no vendor SDK unless a feature enables it, and GARM's provider is built
# for one cloud.
OPTIONAL_ARROWS = {
    "fleetwright-bench": {"fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure"},
    "fleetwright-examples": {"fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure"},
    "fleetwright-server": {"fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure", "fleetwright-memory"},
    "garm-provider-fleetwright": {"fleetwright-ec2", "fleetwright-gcp", "fleetwright-azure", "persistent"},
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
# Folders of providers/ that are not providers.
NOT_PROVIDERS = {"support", "testkit"}
# Provider -> common file -> the file it has instead, or None.
PROVIDER_EXCEPTIONS = {
    # The simulated cloud has an engine instead of a client, and no live tests.
    "memory": {"src/client.rs": "src/engine/mod.rs", "tests/live.rs": None},
}

# In pieces, so that this file does not contain what it forbids.
REGISTRY_HOSTS = [
    "crates" + ".io",
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry.npmjs" + ".org",
    "deb.debian" + ".org",
    "security.debian" + ".org",
]
# Only absolute paths: a longer path or a variable before the slash makes it another path.
MACHINE_PATHS = re.compile(r"(?<![\w.~*)}>-])/(?:work|root|tmp/bash\w*)" + "/")

# The known problems of systems like the façade: defects, caveats, and what people do wrong. Each has a page in docs/facade.
FACADE_ITEMS = [f"B{number}" for number in range(1, 27)] + [f"C{number}" for number in range(1, 26)]
# What people do wrong. One line for each item.
FACADE_ITEMS += [
    "S1",
    "S2",
    "S3",
    "S4",
    "S5",
    "S6",
    "S7",
    "S8",
    "S9",
    "S10",
    "S11",
    "S12",
    "S13",
    "S14",
    "S15",
    "S16",
    "S17",
    "S18",
    "S19",
    "S20",
    "S21",
    "S22",
]

# Crates that can be replaced because few files name them: what names them, the sources that this is about, and the files and folders
# that may. docs/decisions/0012-azure.md has the reason.
SEAMS = [
    (re.compile(r"\bazure_(?:mgmt_compute|core)\b"), "providers/azure/src/",
     ("client.rs", "client/"), ("client/identity.rs", "client/identity/")),
    (re.compile(r"\b(?:azure_identity|azure_core_v1)\b"), "providers/azure/src/",
     ("client/identity.rs", "client/identity/"), ()),
]

SHARED_DIRECTORIES = re.compile(r"\bCARGO_TARGET_TMPDIR\b|\btemp_dir\(\)")

MAX_CODE_LINES = 500
# Path -> why this file is not split.
LONG_FILES = {}


def crate_is_known(name):
    if name in ARROWS:
        return []
    return [f"{name}: a workspace crate without a row in ARROWS of scripts/house_rules.py; "
            "add the row with its allowed dependencies, and the crate to ARCHITECTURE.md"]


def every_row_has_its_crate(members):
    """`members`: the names of the workspace's crates."""
    return [f"{name}: a row of ARROWS in scripts/house_rules.py, and no crate of the workspace; remove the row"
            for name in ARROWS if name not in members]


def arrows_are_allowed(name, dependencies):
    """`dependencies`: (workspace crate, kind, optional) of every normal and build dependency."""
    allowed = ARROWS.get(name, ANYTHING)
    if allowed is ANYTHING:
        return []
    problems = []
    for target, kind, optional in dependencies:
        if target not in allowed:
            permitted = ", ".join(sorted(allowed)) or "no workspace crate"
            problems.append(f"{name} -> {target}: a {kind} dependency that ARROWS does not allow; "
                            f"{name} may depend on: {permitted}; move the code, or make it a dev-dependency")
        elif not optional and target in OPTIONAL_ARROWS.get(name, set()):
            problems.append(f"{name} -> {target}: must be `optional = true` behind a feature, "
                            "so that a plain build has no vendor SDK")
    return problems


def tree_is_free_of(what, pattern, crates):
    """`crates`: the (name, version) pairs that `what` builds."""
    return [f"{what}: builds {name} {version}, which matches `{pattern.pattern}`; "
            f"find out why with `cargo tree -e normal -i {name}` and put it behind a feature or in another crate"
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


def readme_links_work_in_rustdoc(path, text, files, repository):
    """A README that a crate includes as its front page is read in the repository and in rustdoc, where a relative link leads nowhere.
    `files`: the paths of the repository. `repository`: the URL of its files."""
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", line):
            target = target[0] or target[1]
            if target.startswith(repository):
                file = target.removeprefix(repository).partition("#")[0]
                if file not in files:
                    problems.append(f"{path}:{number}: links to {file}, which does not exist; correct the path")
            elif not target.startswith(("https://", "#")):
                problems.append(f"{path}:{number}: links to {target}, which is broken in rustdoc; "
                                f"write {repository}<path>, or the name without a link")
    return problems


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
    return [f"{path}:{line}: names the package registry host {host}; remove the host"
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
        return [f"{path}: {count} code lines need no exception; remove it from LONG_FILES in scripts/house_rules.py"]
    return []


def tests_share_no_directory(path, text):
    """The test programs of the workspace run at the same time and have one directory for temporary files in common."""
    return [f"{path}:{line}: a fixed path that other test programs may use too; use `tempfile::TempDir`"
            for line in lines_with(SHARED_DIRECTORIES, text)]


def seam_is_respected(path, text, seams=None):
    """Code outside a seam must not name the crates behind it. Comments may."""
    problems = []
    for pattern, sources, allowed, excepted in SEAMS if seams is None else seams:
        inside = path.removeprefix(sources)
        if inside == path or inside.startswith(allowed) and not inside.startswith(excepted or ("/",)):
            continue
        code = "\n".join(line if is_code(line) else "" for line in text.splitlines())
        folders = " or ".join(sources + name for name in allowed)
        problems += [f"{path}:{line}: names a crate that matches `{pattern.pattern}`; move the code into {folders}"
                     for line in lines_with(pattern, code)]
    return problems


def every_item_has_its_page(index, pages, items=None):
    """`index`: the text of docs/facade/README.md, with one table row per item that links to the item's page.
    `pages`: the text of each page by its item."""
    items = FACADE_ITEMS if items is None else items
    linked = re.findall(r"^\| \[([A-Z]\d+)\]\(\1\.md\) \|", index, re.MULTILINE)
    problems = [f"docs/facade/{item}.md: missing; write the problem, what fleetwright does, and the tests"
                for item in items if item not in pages]
    problems += [f"docs/facade/{item}.md: not an item; correct the name, or add it to FACADE_ITEMS of scripts/house_rules.py"
                 for item in pages if item not in items]
    problems += [f"docs/facade/README.md: {linked.count(item)} rows link to {item}.md; write exactly one"
                 for item in items if linked.count(item) != 1]
    problems += [f"docs/facade/{item}.md: says that something is missing; finish it, or list it under known limits"
                 for item, text in pages.items() if re.search(r"\(in part\)|\bMissing: ", text)]
    return problems


def cited_tests_exist(path, text, sources):
    """`text`: a page whose section `## Tests` lists tests as "- `name` in `file`", optionally followed by ": `word`" for a string
    that some source must contain. A stage of scripts/stages.sh or a rule of this file can stand in the place of a test.
    `sources`: the text of each file by its path."""
    section = text.partition("## Tests\n")[2]
    first_line = text[:len(text) - len(section)].count("\n") + 1
    rows = [(number, line) for number, line in enumerate(section.splitlines(), first_line) if line.startswith("- ")]
    if not rows:
        return [f"{path}: names no test; add a section `## Tests` with lines such as \"- `name` in `file.rs`\""]
    problems = []
    for number, row in rows:
        found = re.fullmatch(r"- `(\w+)` in `([^`]+)`(?:: `([^`]+)`)?", row)
        if not found:
            problems.append(f"{path}:{number}: not a citation; write \"- `name` in `file.rs`\"")
            continue
        name, file, word = found.groups()
        files = [content for source, content in sources.items() if f"/{source}".endswith(f"/{file}")]
        if not files:
            problems.append(f"{path}:{number}: there is no file {file}; correct the path")
        elif not any(has_test(content, name) for content in files):
            problems.append(f"{path}:{number}: there is no test {name} in {file}; correct the name or write the test")
        if word and not any(f'"{word}"' in content for content in sources.values()):
            problems.append(f"{path}:{number}: no source contains \"{word}\"; correct the word")
    return problems


def has_test(text, name):
    """Returns whether a function of that name has a test attribute, or is a stage or a rule."""
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
    every_row_has_its_crate,
    arrows_are_allowed,
    tree_is_free_of,
    readme_states_core_count,
    readme_states_clause_count,
    readme_links_work_in_rustdoc,
    provider_has_common_files,
    manifest_inherits_lints,
    text_names_no_registry,
    text_names_no_machine_path,
    rust_file_is_small,
    tests_share_no_directory,
    seam_is_respected,
    every_item_has_its_page,
    cited_tests_exist,
]
