//! The families token, state and describe: their clauses pass on the reference whatever its knobs,
//! and every one of their mutants dies of its clause.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{BatchLaunch, OptionalVerb, PlacementField};
use fleetwright_contract_tests::{
    CLAUSES, Clause, Factory, Status, clause, run_clause,
    zoo::{MemoryHarness, mutants},
};

/// Makes a legal cloud.
type Make = fn() -> MemoryHarness;

const FAMILIES: [&str; 3] = ["TOKEN-", "STATE-", "DESCRIBE-"];

fn of_the_families(id: &str) -> bool {
    FAMILIES.iter().any(|family| id.starts_with(family))
}

fn clauses() -> impl Iterator<Item = &'static Clause> {
    CLAUSES.iter().filter(|clause| of_the_families(clause.id))
}

/// Legal clouds, each with other knobs.
fn variants() -> Vec<(&'static str, Make)> {
    const ONE: NonZeroUsize = NonZeroUsize::MIN;
    const LAG: Duration = Duration::from_secs(5);
    vec![
        ("reference", MemoryHarness::new),
        ("read lag", || MemoryHarness::with(|c| c.read_lag(LAG))),
        ("read lag, other chances", || {
            MemoryHarness::with(|c| c.read_lag(LAG).seed(7))
        }),
        ("page of one", || MemoryHarness::with(|c| c.page_size(ONE))),
        ("batch of one", || {
            MemoryHarness::with(|c| c.batch_size(ONE))
        }),
        ("batches in parts", || {
            MemoryHarness::with(|c| c.batch_launch(BatchLaunch::Partial))
        }),
        ("tokens forgotten", || {
            MemoryHarness::with(|c| c.token_after_terminate(Duration::ZERO))
        }),
        ("terminated forgotten", || {
            MemoryHarness::with(|c| c.terminated_visible(Duration::ZERO))
        }),
        ("everything forgotten, read lag", || {
            MemoryHarness::with(|c| {
                c.token_after_terminate(Duration::ZERO)
                    .terminated_visible(Duration::ZERO)
                    .read_lag(LAG)
            })
        }),
        ("short memories", || {
            MemoryHarness::with(|c| {
                c.token_after_terminate(Duration::from_millis(1500))
                    .terminated_visible(Duration::from_millis(700))
            })
        }),
        ("lag longer than every memory and transition", || {
            MemoryHarness::with(|c| {
                c.token_after_terminate(Duration::from_secs(1))
                    .terminated_visible(Duration::from_secs(1))
                    .read_lag(LAG * 4)
            })
        }),
        ("no optional verb", || {
            MemoryHarness::with(|c| {
                OptionalVerb::ALL
                    .into_iter()
                    .fold(c, |c, verb| c.without(verb))
            })
        }),
        ("no placement", || {
            MemoryHarness::with(|c| {
                PlacementField::ALL
                    .into_iter()
                    .fold(c, |c, field| c.without_placement(field))
            })
        }),
    ]
}

#[test]
fn every_clause_passes_on_every_legal_variant() {
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
        if !of_the_families(mutant.dies_of) {
            continue;
        }
        let clause = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(clause, &(mutant.make)());
        // What the probe after a clause finds is no proof of the clause itself.
        let by_the_probe = |reason: &String| reason.contains("after the clause");
        if verdict.status != Status::Fail || verdict.reason.as_ref().is_some_and(by_the_probe) {
            survivors += &format!("{mutant:?} survives:\n{}", verdict.message(clause));
        }
    }
    assert!(survivors.is_empty(), "{survivors}");
}

#[test]
fn every_clause_has_a_mutant() {
    let without: Vec<_> = clauses()
        .filter(|clause| mutants::all().iter().all(|one| one.dies_of != clause.id))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

/// How a clause passes: by the promise itself, by a weaker one, or by refusing.
fn arm(id: &str, make: Make) -> (Status, Option<String>) {
    let factory: Factory = Arc::new(move || Arc::new(make()));
    let verdict = run_clause(clause(id).unwrap(), &factory);
    (verdict.status, verdict.reason)
}

#[test]
fn the_reference_holds_the_promises_themselves() {
    for clause in clauses() {
        let held = (Status::Pass, None);
        assert_eq!(arm(clause.id, MemoryHarness::new), held, "{}", clause.id);
    }
}

#[test]
fn weaker_declarations_are_held_to_the_weaker_promise() {
    let tokens = || MemoryHarness::with(|c| c.token_after_terminate(Duration::ZERO));
    let terminated = || MemoryHarness::with(|c| c.terminated_visible(Duration::ZERO));
    let weaker: [(&str, Make); 4] = [
        ("TOKEN-06", tokens),
        ("TOKEN-11", tokens),
        ("STATE-04", terminated),
        ("DESCRIBE-04", terminated),
    ];
    for (id, make) in weaker {
        let (status, reason) = arm(id, make);
        assert_eq!(status, Status::Pass, "{id}");
        assert!(reason.unwrap().contains("weaker"), "{id}");
    }
    let (status, _) = arm("TOKEN-15", || {
        MemoryHarness::with(|c| c.without_placement(PlacementField::Zone))
    });
    assert_eq!(status, Status::Refused);
}
