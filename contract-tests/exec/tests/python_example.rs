//! The Python backend in `examples/pipe`, held to the whole contract.

mod command;

use std::collections::BTreeMap;

use command::{contract_run, python};
use fleetwright_contract_tests::{CLAUSES, Status, report::Report};

/// What the example declares not to do. It keeps everything else.
const NOT_OFFERED: [(&str, Status); 11] = [
    ("STATE-07", Status::NotClaimed),
    ("STATE-08", Status::NotClaimed),
    ("STOP-09", Status::Refused),
    ("VERBS-04", Status::Refused),
    ("VERBS-05", Status::Refused),
    ("VERBS-06", Status::Refused),
    ("VERBS-07", Status::Refused),
    ("VERBS-10", Status::Refused),
    ("VERBS-11", Status::Refused),
    ("VERBS-12", Status::Refused),
    ("VERBS-16", Status::Refused),
];

#[test]
fn example_keeps_the_contract() {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/pipe/backend.py"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let (python, file) = (python(), path.to_str().unwrap());
    let output = contract_run(&["--report", file, "--", &python, "-SB", script]);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    assert_eq!(output.stderr, "", "a bug of the example");

    let report: Report = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(report.is_conformant());
    let others: BTreeMap<_, _> = report
        .clauses
        .iter()
        .filter(|entry| entry.status != Status::Pass)
        .map(|entry| (entry.id.as_str(), entry.status))
        .collect();
    assert_eq!(others, BTreeMap::from(NOT_OFFERED));
    let passed = CLAUSES.len() - NOT_OFFERED.len();
    let counts = format!("python-rack: conformant: {passed} pass, 9 refused, 2 not claimed\n");
    assert!(output.stdout.ends_with(&counts), "{}", output.stdout);
}
