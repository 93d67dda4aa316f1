"""Checks that every house rule reports a violation and accepts a valid case."""

import house_examples as examples
import house_rules as rules

COMMON = set(rules.PROVIDER_FILES)
MEMORY = COMMON - {"src/client.rs", "tests/live.rs"} | {"src/engine/mod.rs"}
SLASH = "/"
LONG = "let x = 1;\n" * (rules.MAX_CODE_LINES + 1)
SHORT = "let x = 1;\n" + "// a comment\n\n" * rules.MAX_CODE_LINES

INDEX = "| [B1](B1.md) | region | the problem |\n"
PAGE = "## Tests\n\n- `it_works` in `x/b.rs`"
TEST = "#[test]\n    #[ignore]\n    fn it_works() {}"

REPOSITORY = "https://example.org/blob/main/"
WITHOUT = "/// A thing.\n#[derive(Debug)]\npub struct Thing;\n\nimpl Thing {\n    pub fn new() -> Self {\n        Self\n    }\n}\n"
WITH = WITHOUT.replace("A thing.", "A thing.\n///\n/// ```\n/// Thing::new();\n/// ```")
SETTER = "/// A thing.\npub struct Thing;\n\nimpl Thing {\n    pub fn with(mut self, x: u8) -> Self {\n        self\n    }\n}\n"
DATA = "/// A thing.\npub struct Thing;\n\nimpl Thing {\n    pub fn id(&self) -> u8 {\n        0\n    }\n}\n"
OPTIONS = "pub struct WaitOptions {\n    /// The limit. Required.\n    pub limit: u8,\n    /// The time. Default: 5.\n    #[serde(default)]\n    pub time: u8,\n}\n"
TEST_ONLY = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n"

# Rule, arguments, and a part of the single problem that it must report, or None.
CASES = [
    (rules.crate_is_known, ("fleetwright-surprise",), "fleetwright-surprise: a workspace crate without a row"),
    (rules.crate_is_known, ("fleetwright",), None),

    (rules.every_row_has_its_crate, ([name for name in rules.ARROWS if name != "layers"],), "layers: a row of ARROWS"),
    (rules.every_row_has_its_crate, ([*rules.ARROWS, "other"],), None),

    (rules.readme_links_work_in_rustdoc, ("README.md", "a\n[b](docs/b.md)", {"docs/b.md"}, REPOSITORY), "README.md:2: links to docs/b.md, which is broken"),
    (rules.readme_links_work_in_rustdoc, ("README.md", "[b]: ../b.md", {"b.md"}, REPOSITORY), "README.md:1: links to ../b.md"),
    (rules.readme_links_work_in_rustdoc, ("README.md", f"[b]: {REPOSITORY}c.md", {"b.md"}, REPOSITORY), "links to c.md, which does not exist"),
    (rules.readme_links_work_in_rustdoc, ("README.md", f"[b](#b) [c](https://c.org)\n[b]: {REPOSITORY}b.md#x", {"b.md"}, REPOSITORY), None),

    (examples.entry_points_have_examples, ({"a.rs": WITHOUT}, {}), "a.rs Thing: a struct that users call or create"),
    (examples.entry_points_have_examples, ({"a.rs": SETTER}, {}), "a.rs Thing: a struct"),
    (examples.entry_points_have_examples, ({"a.rs": "pub fn f() {}"}, {}), "a.rs f: a fn"),
    (examples.entry_points_have_examples, ({"a.rs": TEST_ONLY + "pub async fn f() {}"}, {}), "a.rs f: a fn"),
    (examples.entry_points_have_examples, ({"a.rs": "pub trait T {\n    fn f();\n}"}, {}), "a.rs T: a trait"),
    (examples.entry_points_have_examples, ({"a.rs": WITH}, {"a.rs Thing": "old"}), "has an example; remove it"),
    (examples.entry_points_have_examples, ({"a.rs": WITH, "b.rs": DATA + TEST_ONLY + "pub(crate) fn f() {}"}, {}), None),
    (examples.entry_points_have_examples, ({"a.rs": WITH.replace("derive(Debug)", "derive(\n    Debug,\n)")}, {}), None),
    (examples.entry_points_have_examples, ({"a.rs": "#[doc(hidden)]\npub fn f() {}"}, {}), None),
    (examples.entry_points_have_examples, ({"a.rs": "/// Adds. [`Sum`] has an example.\npub fn f() {}"}, {}), None),
    (examples.entry_points_have_examples, ({"a.rs": WITHOUT}, {"a.rs Thing": "a reason"}), None),
    (examples.options_state_defaults, ("a.rs", OPTIONS.replace(" Default: 5.", "")), "a.rs WaitOptions::time: an option without a default"),
    (examples.options_state_defaults, ("a.rs", OPTIONS), None),
    (examples.options_state_defaults, ("a.rs", OPTIONS.replace("WaitOptions", "Wait").replace(" Default: 5.", "")), None),
    (examples.exceptions_exist, ({"a.rs": WITHOUT}, {"b.rs Thing": "moved"}), "b.rs Thing: does not exist"),
    (examples.exceptions_exist, ({"a.rs": WITHOUT}, {"a.rs Thing": "a reason"}), None),

    (rules.arrows_are_allowed, ("fleetwright", [("fleetwright-memory", "normal", False)]),
     "fleetwright -> fleetwright-memory: a normal"),
    (rules.arrows_are_allowed, ("fleetwright-ec2", [("fleetwright-chaos", "build", False)]),
     "fleetwright-ec2 -> fleetwright-chaos: a build"),
    (rules.arrows_are_allowed, ("fleetwright-chaos", [("fleetwright", "normal", True)]),
     "may depend on: no workspace crate"),
    (rules.arrows_are_allowed, ("fleetwright-examples", [("fleetwright-ec2", "normal", False)]), "optional = true"),
    (rules.arrows_are_allowed, ("fleetwright-examples", [("fleetwright-ec2", "normal", True)]), None),
    (rules.arrows_are_allowed, ("fleetwright-memory", [("fleetwright", "normal", False)]), None),
    (rules.arrows_are_allowed, ("fleetwright-simulation", [("fleetwright-memory", "normal", False)]), None),

    (rules.tree_is_free_of, ("cargo run", rules.VENDOR_SDK, {("aws-sdk-ec2", "1.2.3")}), "builds aws-sdk-ec2 1.2.3"),
    (rules.tree_is_free_of, ("cargo run", rules.VENDOR_SDK, {("google-cloud-auth", "1.0.0")}), "google-cloud-auth"),
    (rules.tree_is_free_of, ("cargo run", rules.VENDOR_SDK, {("typespec_azure", "1.0.0")}), "typespec_azure"),
    (rules.tree_is_free_of, ("core", rules.SOCKETS, {("mio", "1.0.0")}), "builds mio 1.0.0"),
    (rules.tree_is_free_of, ("core", rules.SOCKETS, {("h2", "0.4.0"), ("tokio", "1.0.0")}), "builds h2 0.4.0"),
    (rules.tree_is_free_of, ("core", rules.SOCKETS, {("tokio", "1.0.0"), ("mior", "0.1.0")}), None),

    (rules.readme_states_core_count, ("no number here", 7), "core-deps -->7<!--"),
    (rules.readme_states_core_count, ("<!-- core-deps -->6<!-- /core-deps -->", 7), "says that core has 6"),
    (rules.readme_states_core_count, ("<!-- core-deps -->7<!-- /core-deps -->", 7), None),

    (rules.readme_states_clause_count, ("no number", '"LIST-01" "x"'), "clauses -->1<!--"),
    (rules.readme_states_clause_count, ("<!-- clauses -->2<!-- /clauses -->", '"LIST-01" "x"'), "has 2 clauses"),
    (rules.readme_states_clause_count, ("<!-- clauses -->1<!-- /clauses -->", '"LIST-01" "x"'), None),

    (rules.provider_has_common_files, ("ec2", COMMON - {"src/convert.rs"}), "providers/ec2/src/convert.rs: missing"),
    (rules.provider_has_common_files, ("gcp", MEMORY | {"tests/live.rs"}), "providers/gcp/src/client.rs: missing"),
    (rules.provider_has_common_files, ("memory", MEMORY - {"src/engine/mod.rs"}), "providers/memory/src/engine/mod.rs"),
    (rules.provider_has_common_files, ("memory", MEMORY), None),
    (rules.provider_has_common_files, ("azure", COMMON | {"src/lro.rs"}), None),

    (rules.manifest_inherits_lints, ("a/Cargo.toml", {"package": {}}), "a/Cargo.toml: does not inherit"),
    (rules.manifest_inherits_lints, ("a/Cargo.toml", {"lints": {"workspace": False}}), "does not inherit"),
    (rules.manifest_inherits_lints, ("a/Cargo.toml", {"lints": {"workspace": True}}), None),

    (rules.text_names_no_machine_path, ("notes.md", f"fine\nsee {SLASH}work{SLASH}main"), "notes.md:2: names an absolute"),
    (rules.text_names_no_machine_path, ("notes.md", f"`{SLASH}root{SLASH}.cargo`"), "notes.md:1"),
    (rules.text_names_no_machine_path, ("notes.md", f"{SLASH}tmp{SLASH}bash_jobs{SLASH}1"), "notes.md:1"),
    (rules.text_names_no_machine_path, ("notes.md", f"docs{SLASH}work{SLASH}a $dir{SLASH}root{SLASH}usr"), None),

    (rules.rust_file_is_small, ("src/a.rs", LONG), "src/a.rs: 501 code lines, more than 500"),
    (rules.rust_file_is_small, ("src/a.rs", LONG, {"src/a.rs": ""}), "src/a.rs: 501 code lines, more than 500"),
    (rules.rust_file_is_small, ("src/a.rs", SHORT, {"src/a.rs": "a table"}), "need no exception"),
    (rules.rust_file_is_small, ("src/a.rs", LONG, {"src/a.rs": "a table"}), None),
    (rules.rust_file_is_small, ("src/a.rs", SHORT), None),

    (rules.tests_share_no_directory, ("a.rs", 'fn a() {}\nenv!("CARGO_TARGET_TMPDIR")'), "a.rs:2: a fixed path"),
    (rules.tests_share_no_directory, ("a.rs", "let path = env::temp_dir().join(name);"), "a.rs:1: a fixed path"),
    (rules.tests_share_no_directory, ("a.rs", "let home = TempDir::new().unwrap();"), None),

    (rules.seam_is_respected, ("providers/azure/src/error.rs", "//! azure_core\nuse azure_core::Url;"), "error.rs:2: names a crate"),
    (rules.seam_is_respected, ("providers/azure/src/launch.rs", "let x: azure_mgmt_compute::Y;"), "azure/src/client.rs or"),
    (rules.seam_is_respected, ("providers/azure/src/client/identity/cache.rs", "use azure_core::Url;"), "cache.rs:1"),
    (rules.seam_is_respected, ("providers/azure/src/client/transport.rs", "use azure_core_v1::Url;"), "transport.rs:1"),
    (rules.seam_is_respected, ("providers/azure/src/credentials.rs", "use azure_identity::X;"), "credentials.rs:1"),
    (rules.seam_is_respected, ("providers/azure/src/client/identity.rs", "use azure_core_v1::{Url, azure_identity};"), None),
    (rules.seam_is_respected, ("providers/azure/src/client/transport.rs", "use azure_core::Url;"), None),
    (rules.seam_is_respected, ("providers/azure/tests/secrets.rs", "azure_core"), None),

    (rules.every_item_has_its_page, (INDEX, {"B1": PAGE}, ["B1"]), None),
    (rules.every_item_has_its_page, (INDEX, {}, ["B1"]), "docs/facade/B1.md: missing"),
    (rules.every_item_has_its_page, (INDEX, {"B1": PAGE, "B9": PAGE}, ["B1"]), "docs/facade/B9.md: not an item"),
    (rules.every_item_has_its_page, ("no row", {"B1": PAGE}, ["B1"]), "0 rows link to B1.md"),
    (rules.every_item_has_its_page, (INDEX + INDEX, {"B1": PAGE}, ["B1"]), "2 rows link to B1.md"),
    (rules.every_item_has_its_page, (INDEX, {"B1": "Missing: how"}, ["B1"]), "B1.md: says that something is missing"),

    (rules.cited_tests_exist, ("a.md", PAGE, {"facade/x/b.rs": TEST}), None),
    (rules.cited_tests_exist, ("a.md", "no tests", {}), "a.md: names no test"),
    (rules.cited_tests_exist, ("a.md", PAGE.replace("b.rs", "b.sh"), {"x/b.sh": "it_works() {\n}"}), None),
    (rules.cited_tests_exist, ("a.md", PAGE.replace("b.rs", "b.py"), {"x/b.py": "def it_works():"}), None),
    (rules.cited_tests_exist, ("a.md", PAGE.replace("b.rs", "b.sh"), {"x/b.sh": "  it_works"}), "a.md:3: there is no test it_works in x/b.sh"),
    (rules.cited_tests_exist, ("a.md", PAGE, {"x/b.rs": "fn it_works() {}"}), "a.md:3: there is no test it_works in x/b.rs"),
    (rules.cited_tests_exist, ("a.md", PAGE, {"y/b.rs": TEST}), "a.md:3: there is no file x/b.rs"),
    (rules.cited_tests_exist, ("a.md", PAGE.replace(" in ", " of "), {}), "a.md:3: not a citation"),
    (rules.cited_tests_exist, ("a.md", PAGE + ": `a-word`", {"x/b.rs": TEST}), 'no source contains "a-word"'),
    (rules.cited_tests_exist, ("a.md", PAGE + ": `a-word`", {"facade/x/b.rs": TEST + '"a-word"'}), None),
    (rules.cited_tests_exist, ("a.md", PAGE, {"x/b.rs": TEST.replace("test]", "tokio::test(flavor = \"x\")]")}), None),
] + [
    (rules.text_names_no_registry, ("a.md", f"fine\nhttps://{host}{SLASH}x"), f"a.md:2: names the package registry host {host}")
    for host in rules.REGISTRY_HOSTS
] + [
    (rules.text_names_no_registry, ("a.md", "see docs.rs"), None),
]


def run():
    """Prints every failed case and returns their number."""
    wrong = [message for case in CASES if (message := failure(*case))]
    all_rules = rules.RULES + examples.RULES
    for rule in all_rules:
        fires = any(case_rule is rule and expected for case_rule, _, expected in CASES)
        silent = any(case_rule is rule and expected is None for case_rule, _, expected in CASES)
        if not (fires and silent):
            wrong.append(f"{rule.__name__}: needs a case with a problem and one without")
    for message in wrong:
        print(message)
    print(f"check-house self-test: {len(all_rules)} rules, {len(CASES)} cases, {len(wrong)} wrong")
    return len(wrong)


def failure(rule, arguments, expected):
    problems = rule(*arguments)
    if expected is None:
        good = problems == []
    else:
        good = len(problems) == 1 and expected in problems[0]
    return None if good else f"{rule.__name__}{arguments!r}"[:200] + f": expected {expected!r}, got {problems!r}"
