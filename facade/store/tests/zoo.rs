//! The suite proven by its zoo: the reference passes, every mutant dies of its clause, every clause has a mutant.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::collections::BTreeSet;

use fleetwright_store::contract::{
    CLAUSES, MemoryHarness, Stop, Verdict, clause, run_clause, run_store_contract_tests,
    zoo::{Leaps, TwistedHarness, mutants},
};

/// About processes, which memory does not outlive; its mutants are in the tests of the SQLite store.
const ELSEWHERE: &str = "CRASH-01";

#[test]
fn the_reference_passes() {
    let report = run_store_contract_tests(MemoryHarness::new);
    assert!(report.is_conformant(), "{report}");
    let last = report.to_string().lines().last().unwrap().to_owned();
    assert_eq!(
        last,
        format!(
            "memory: {} of {} clauses held",
            CLAUSES.len() - 1,
            CLAUSES.len()
        )
    );
}

#[test]
fn revisions_that_leap_pass() {
    let factory = TwistedHarness::factory::<Leaps>();
    for clause in CLAUSES {
        let outcome = run_clause(clause, &factory, None);
        let verdict = Verdict { clause, outcome };
        assert!(verdict.outcome.is_ok(), "{verdict}");
    }
}

#[test]
fn every_mutant_dies_of_its_clause() {
    let died = mutants::all().into_iter().map(|mutant| {
        let its_own = clause(mutant.dies_of).unwrap();
        // Some break only now and then: those need not die at once.
        let outcomes = (0..20).map(|_| run_clause(its_own, &(mutant.make)(), None));
        let mut seen = outcomes.filter(|outcome| outcome.is_err());
        match seen.next() {
            Some(Err(Stop::Violated(_))) => String::new(),
            other => format!("{mutant:?}: {other:?}\n"),
        }
    });
    let survivors: String = died.collect();
    assert!(survivors.is_empty(), "mutants that survive:\n{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    let with_mutant: BTreeSet<_> = mutants::all().iter().map(|mutant| mutant.dies_of).collect();
    let without = CLAUSES
        .iter()
        .filter(|clause| !with_mutant.contains(clause.id));
    let without: Vec<_> = without.map(|clause| clause.id).collect();
    assert_eq!(without, [ELSEWHERE]);
}

#[test]
fn a_violation_says_what_was_promised_and_what_was_seen() {
    let mutant = mutants::all()[0];
    let its_own = clause(mutant.dies_of).unwrap();
    let outcome = run_clause(its_own, &(mutant.make)(), None);
    let verdict = Verdict {
        clause: its_own,
        outcome,
    };
    assert_eq!(
        verdict.to_string(),
        "RECORD-01 violated: a store must answer nothing for a record that is not there, whatever stands beside it; \
         seen: get of thing/a, which is not there: Some(Record { id: thing/ab, revision: Revision(1), \
         value: Object {} })"
    );
}
