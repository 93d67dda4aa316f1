//! The store contract, tested: the memory store passes, every mutant fails its clause, and every
//! clause has a mutant.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use fleetwright_store_contract::{
    CLAUSES, CONTRACT, MemoryHarness, Status, clause, run_clause, run_store_contract_tests,
};
use fleetwright_store_zoo::{OverrideHarness, SkippedRevisions, mutants};

/// The clause about processes, which the memory store does not outlive. Its mutants are in the
/// tests of the SQLite store.
const TESTED_WITH_SQLITE: &str = "CRASH-01";

#[test]
fn reference_passes() {
    let report = run_store_contract_tests(MemoryHarness::new);
    assert!(report.is_conformant(), "{report}");
    let last = report.to_string().lines().last().unwrap().to_owned();
    assert_eq!(
        last,
        format!(
            "memory: conformant: {} pass, 1 not claimed",
            CLAUSES.len() - 1
        )
    );
}

#[test]
fn skipped_revisions_pass() {
    let factory = OverrideHarness::factory::<SkippedRevisions>();
    for clause in CLAUSES {
        let verdict = run_clause(clause, &factory, None);
        assert!(
            verdict.status.is_conformant(),
            "{}",
            CONTRACT.message(&verdict)
        );
    }
}

#[test]
fn every_mutant_fails_its_clause() {
    let survived = mutants::all().into_iter().map(|mutant| {
        let violated = clause(mutant.violates).unwrap();
        // Some mutants break only sometimes, so each gets twenty attempts.
        let verdicts = (0..20).map(|_| run_clause(violated, &(mutant.make)(), None));
        let mut failures = verdicts.filter(|verdict| !verdict.status.is_conformant());
        match failures.next() {
            Some(verdict) if verdict.status == Status::Fail => String::new(),
            other => format!("{mutant:?}: {other:?}\n"),
        }
    });
    let survivors: String = survived.collect();
    assert!(survivors.is_empty(), "mutants that survive:\n{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    let with_mutant: BTreeSet<_> = mutants::all()
        .iter()
        .map(|mutant| mutant.violates)
        .collect();
    let without = CLAUSES
        .iter()
        .filter(|clause| !with_mutant.contains(clause.id));
    let without: Vec<_> = without.map(|clause| clause.id).collect();
    assert_eq!(without, [TESTED_WITH_SQLITE]);
}

#[test]
fn violation_states_promise_and_observation() {
    let mutant = mutants::all()[0];
    let violated = clause(mutant.violates).unwrap();
    let verdict = run_clause(violated, &(mutant.make)(), None);
    assert_eq!(
        CONTRACT.message(&verdict),
        "RECORD-01: violated\n  \
         promised: a store must return nothing for a record that does not exist, whatever other records exist\n  \
         observed: get of thing/a, which does not exist, returned Some(Record { id: thing/ab, revision: Revision(1), \
         value: Object {} })\n  \
         text:     docs/store-contract.md, RECORD-01\n"
    );
}
