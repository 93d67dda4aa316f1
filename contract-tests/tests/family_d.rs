//! The families errors, time, cancellation, crash and concurrency: they hold on every legal memory
//! cloud, and each of their mutants dies of its clause.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{BatchLaunch, OptionalVerb, PlacementField};
use fleetwright_contract_tests::{
    CLAUSES, Clause, Factory, Status, clause, run_clause,
    zoo::{MemoryHarness, mutants},
};

const FAMILIES: [&str; 5] = [
    "ERRORS-",
    "TIME-",
    "CANCELLATION-",
    "CRASH-",
    "CONCURRENCY-",
];

fn ours(id: &str) -> bool {
    FAMILIES.iter().any(|family| id.starts_with(family))
}

fn clauses() -> impl Iterator<Item = &'static Clause> {
    CLAUSES.iter().filter(|clause| ours(clause.id))
}

/// A legal cloud, and what is special about it.
type Variant = (&'static str, fn() -> MemoryHarness);

fn variants() -> Vec<Variant> {
    vec![
        ("the reference", MemoryHarness::new),
        ("a read lag of 5 s", || {
            MemoryHarness::with(|cloud| cloud.read_lag(Duration::from_secs(5)))
        }),
        ("pages of one", || {
            MemoryHarness::with(|cloud| cloud.page_size(NonZeroUsize::MIN))
        }),
        ("batches of one", || {
            MemoryHarness::with(|cloud| cloud.batch_size(NonZeroUsize::MIN))
        }),
        ("partial batches", || {
            MemoryHarness::with(|cloud| cloud.batch_launch(BatchLaunch::Partial))
        }),
        ("tokens forgotten at once", || {
            MemoryHarness::with(|cloud| cloud.token_after_terminate(Duration::ZERO))
        }),
        ("terminated instances forgotten at once", || {
            MemoryHarness::with(|cloud| cloud.terminated_visible(Duration::ZERO))
        }),
        ("no optional verbs", || {
            MemoryHarness::with(|cloud| {
                OptionalVerb::ALL
                    .into_iter()
                    .fold(cloud, |cloud, verb| cloud.without(verb))
            })
        }),
        ("no placement", || {
            MemoryHarness::with(|cloud| {
                PlacementField::ALL
                    .into_iter()
                    .fold(cloud, |cloud, field| cloud.without_placement(field))
            })
        }),
        ("everything at its weakest", || {
            MemoryHarness::with(|cloud| {
                cloud
                    .read_lag(Duration::from_secs(5))
                    .page_size(NonZeroUsize::MIN)
                    .batch_size(NonZeroUsize::MIN)
                    .batch_launch(BatchLaunch::Partial)
                    .token_after_terminate(Duration::ZERO)
                    .terminated_visible(Duration::ZERO)
            })
        }),
    ]
}

#[test]
fn the_clauses_hold_on_every_legal_cloud() {
    let mut failures = String::new();
    for (name, make) in variants() {
        let factory: Factory = Arc::new(move || Arc::new(make()));
        for clause in clauses() {
            let verdict = run_clause(clause, &factory);
            if !matches!(verdict.status, Status::Pass | Status::Refused) {
                failures += &format!("on {name}: {}", verdict.message(clause));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_mutant_dies_of_its_clause() {
    let mut survivors = String::new();
    for mutant in mutants::all() {
        if !ours(mutant.dies_of) {
            continue;
        }
        let clause = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(clause, &(mutant.make)());
        if verdict.status != Status::Fail {
            survivors += &format!("{mutant:?} survives:\n{}", verdict.message(clause));
        }
    }
    assert!(survivors.is_empty(), "{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    for clause in clauses() {
        let named = mutants::all()
            .iter()
            .any(|mutant| mutant.dies_of == clause.id);
        assert!(named, "{clause:?} has no mutant");
    }
}
