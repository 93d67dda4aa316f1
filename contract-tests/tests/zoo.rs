//! The kit proven by its zoos: the reference passes, every mutant dies of its clause, every clause
//! has a mutant, and every benign oddity passes everything.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::sync::Arc;

use fleetwright_contract_tests::{
    CLAUSES, Factory, Status, clause, run_clause,
    zoo::{MemoryHarness, mutants},
};

fn reference() -> Factory {
    Arc::new(|| Arc::new(MemoryHarness::new()))
}

#[test]
fn the_reference_passes_every_clause() {
    let mut failures = String::new();
    for clause in CLAUSES {
        let verdict = run_clause(clause, &reference());
        if !matches!(verdict.status, Status::Pass | Status::Refused) {
            failures += &verdict.message(clause);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_mutant_dies_of_its_clause() {
    let mut survivors = String::new();
    for mutant in mutants::all() {
        let clause = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(clause, &(mutant.make)());
        if verdict.status != Status::Fail {
            survivors += &format!("{mutant:?} survives:\n{}", verdict.message(clause));
        }
    }
    assert!(survivors.is_empty(), "{survivors}");
}
