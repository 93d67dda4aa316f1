//! The kit proven by its zoos: the reference passes, every mutant dies of its clause, every clause
//! has a mutant, and every benign oddity passes everything.
//!
//! Writes `zoo.json` beside the reports, and prints its numbers last. `scripts/mutants --kit` and
//! `scripts/zoo-seeds` run this over and over, and leave out what takes longest by
//! `FLEETWRIGHT_ZOO=quick`: which mutants die alone.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod alone;
mod hands;

use std::{collections::BTreeSet, fs, sync::Arc};

use fleetwright_contract_tests::{
    CLAUSES, CONTRACT, Clause, DetectedBy, Factory, Status, clause, report, run_clause,
};
use fleetwright_contract_zoo::{MemoryHarness, benign, mutants};
use hands::side_by_side;

/// What the backend called `name` does not pass of `clause`, in words.
fn failure(name: &str, clause: &Clause, factory: &Factory) -> String {
    let verdict = run_clause(clause, factory);
    let holds = matches!(verdict.status, Status::Pass | Status::Refused);
    if holds {
        String::new()
    } else {
        format!("{name}: {}", CONTRACT.message(&verdict))
    }
}

#[test]
fn the_zoo_proves_the_kit() {
    let reference: Factory = Arc::new(|| Arc::new(MemoryHarness::new()));
    let failures = side_by_side(CLAUSES, |c| failure("the reference", c, &reference)).concat();
    assert!(failures.is_empty(), "{failures}");

    let mutants = mutants::all();
    let survivors = side_by_side(&mutants, |mutant| {
        let its_own = clause(mutant.dies_of).unwrap();
        let verdict = run_clause(its_own, &(mutant.make)());
        let dies = verdict.status == Status::Fail && verdict.detected_by == DetectedBy::Body;
        (!dies).then(|| format!("{mutant:?}: {}", CONTRACT.message(&verdict)))
    });
    let survivors: Vec<_> = survivors.into_iter().flatten().collect();
    assert!(
        survivors.is_empty(),
        "mutants that survive:\n{}",
        survivors.join("\n")
    );

    let with_mutant: BTreeSet<_> = mutants.iter().map(|mutant| mutant.dies_of).collect();
    let without: Vec<_> = CLAUSES
        .iter()
        .filter(|c| !with_mutant.contains(c.id))
        .collect();
    assert!(without.is_empty(), "clauses without a mutant: {without:?}");

    let quick = std::env::var_os("FLEETWRIGHT_ZOO").is_some_and(|how| how == "quick");
    if !quick {
        alone::is_as_listed(&mutants);
    }

    let passed = side_by_side(benign::all(), |odd| {
        let factory = (odd.make)();
        let tell = |clause| failure(odd.name, clause, &factory);
        CLAUSES.iter().map(tell).collect::<String>()
    });
    let failures = passed.concat();
    assert!(
        failures.is_empty(),
        "benign oddities that fail:\n{failures}"
    );

    let numbers = serde_json::json!({
        "mutants": mutants.len(),
        "killed": mutants.len() - survivors.len(),
        "clauses": CLAUSES.len(),
        "clauses_with_mutant": with_mutant.len(),
        // As `alone.rs` has measured.
        "clauses_with_unique_mutant": CLAUSES.len() - mutants::SHARED.len(),
        "benign": benign::all().len(),
        "benign_passed": passed.iter().filter(|failures| failures.is_empty()).count(),
    });
    fs::create_dir_all(report::directory()).unwrap();
    fs::write(report::directory().join("zoo.json"), numbers.to_string()).unwrap();
    println!("{numbers}");
}
