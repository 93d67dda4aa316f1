//! The proof of the kit: the reference passes, every mutant fails the clause that it violates, every
//! clause has a mutant, and every benign backend passes everything. Every message about a mutant is in
//! plain words.
//!
//! Writes `zoo.json` next to the reports, and prints its numbers last. `scripts/mutants --kit` and
//! `scripts/zoo-seeds` run this repeatedly and set `FLEETWRIGHT_ZOO=quick`, which leaves out the
//! longest part: which mutants are detected by one clause only.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod parallel;
mod plain;
mod unique;

use std::{collections::BTreeSet, fs, sync::Arc};

use fleetwright_contract_tests::{
    CLAUSES, CONTRACT, Clause, DetectedBy, Factory, Status, clause, report, run_clause,
};
use fleetwright_contract_zoo::{MemoryHarness, benign, mutants};
use parallel::run_in_parallel;
use plain::debug_output;

/// Returns the message of a clause that the backend called `name` fails; empty if it passes.
fn failure(name: &str, clause: &Clause, factory: &Factory) -> String {
    let verdict = run_clause(clause, factory);
    let kept = [Status::Pass, Status::Refused, Status::NotApplicable];
    if kept.contains(&verdict.status) {
        String::new()
    } else {
        format!("{name}: {}", CONTRACT.message(&verdict))
    }
}

#[test]
fn zoo_proves_the_kit() {
    let reference: Factory = Arc::new(|| Arc::new(MemoryHarness::new()));
    let failures = run_in_parallel(CLAUSES, |c| failure("the reference", c, &reference)).concat();
    assert!(failures.is_empty(), "{failures}");

    let mutants = mutants::all();
    let results = run_in_parallel(&mutants, |mutant| {
        let own_clause = clause(mutant.violates).unwrap();
        let verdict = run_clause(own_clause, &(mutant.make)());
        let detected = verdict.status == Status::Fail && verdict.detected_by == DetectedBy::Body;
        let message = CONTRACT.message(&verdict);
        let dump = debug_output(&message).map(|dump| format!("{}: {dump}", mutant.name));
        let survivor = (!detected).then(|| format!("{mutant:?}: {message}"));
        (survivor, dump)
    });
    let (survivors, dumps): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let survivors: Vec<_> = survivors.into_iter().flatten().collect();
    assert!(
        survivors.is_empty(),
        "mutants that are not detected:\n{}",
        survivors.join("\n")
    );
    let dumps: Vec<_> = dumps.into_iter().flatten().collect();
    assert!(
        dumps.is_empty(),
        "messages with debug output:\n{}",
        dumps.join("\n")
    );

    let with_mutant: BTreeSet<_> = mutants.iter().map(|mutant| mutant.violates).collect();
    let without: Vec<_> = CLAUSES
        .iter()
        .filter(|c| !with_mutant.contains(c.id))
        .collect();
    assert!(without.is_empty(), "clauses without a mutant: {without:?}");

    let quick = std::env::var_os("FLEETWRIGHT_ZOO").is_some_and(|how| how == "quick");
    if !quick {
        unique::require_as_listed(&mutants);
    }

    let passed = run_in_parallel(benign::all(), |benign| {
        let factory = (benign.make)();
        let message = |clause| failure(benign.name, clause, &factory);
        CLAUSES.iter().map(message).collect::<String>()
    });
    let failures = passed.concat();
    assert!(
        failures.is_empty(),
        "benign backends that fail:\n{failures}"
    );

    let numbers = serde_json::json!({
        "mutants": mutants.len(),
        "killed": mutants.len() - survivors.len(),
        "clauses": CLAUSES.len(),
        "clauses_with_mutant": with_mutant.len(),
        // As `unique.rs` has measured.
        "clauses_with_unique_mutant": unique::with_own_mutants().count() - mutants::SHARED.len(),
        "benign": benign::all().len(),
        "benign_passed": passed.iter().filter(|failures| failures.is_empty()).count(),
    });
    fs::create_dir_all(report::directory()).unwrap();
    fs::write(report::directory().join("zoo.json"), numbers.to_string()).unwrap();
    println!("{numbers}");
}
