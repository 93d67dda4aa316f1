//! A sequence that broke a promise is stored and tried first in later runs.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::fs;

use fleetwright_contract_tests::{Status, clause, keep_regressions_in, run_clause};
use fleetwright_contract_zoo::mutants;
use tempfile::TempDir;

#[test]
fn failing_sequence_is_stored_and_retried() {
    let folder = TempDir::new().unwrap();
    keep_regressions_in(folder.path().to_str().unwrap().to_owned().leak());
    let model = clause("CRASH-06").unwrap();
    let mutants = mutants::all();
    let broken = mutants
        .iter()
        .find(|mutant| mutant.violates == "CRASH-06")
        .unwrap();

    let first = run_clause(model, &(broken.make)());
    assert_eq!(first.status, Status::Fail);
    let kept = fs::read_to_string(folder.path().join("contract-CRASH-06.txt")).unwrap();
    assert!(kept.lines().any(|line| line.starts_with("cc ")), "{kept}");

    let again = run_clause(model, &(broken.make)());
    assert_eq!(
        again.reason, first.reason,
        "the stored sequence is tried first"
    );
}
