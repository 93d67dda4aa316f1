//! Which clauses have a mutant of their own: one that violates that clause and passes all others. A
//! clause without one must have a written reason.
//!
//! Runs every mutant under every clause, with the default seed: with another one, the model detects
//! more or less.
//!
//! The family MATRIX is left out. It repeats the promises of all other families with every fault at every native
//! call, so it detects most mutants, and few of its own break nothing else. It also takes longer than the rest
//! of the contract, and there are several hundred mutants.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_contract_tests::{CLAUSES, CONTRACT, Clause, Status, run_clause};
use fleetwright_contract_zoo::mutants;

use crate::{parallel::run_in_parallel, plain::debug_output};

/// Requires that `mutants::SHARED` lists exactly the clauses without a mutant of their own.
pub(crate) fn require_as_listed(mutants: &[&'static mutants::Mutant]) {
    let unique = clauses_with_a_mutant_of_their_own(mutants);
    let shared: BTreeMap<_, _> = mutants::SHARED.iter().copied().collect();
    let mut wrong = String::new();
    for clause in with_own_mutants() {
        wrong += &match (unique.contains(clause.id), shared.contains_key(clause.id)) {
            (false, false) => format!(
                "{}: no mutant violates it alone; add the reason why it is kept\n",
                clause.id
            ),
            (true, true) => format!(
                "{}: a mutant violates it alone; remove its reason\n",
                clause.id
            ),
            (true, false) | (false, true) => String::new(),
        };
    }
    assert!(
        wrong.is_empty(),
        "shared.rs does not match the measurement:\n{wrong}"
    );
    assert_eq!(
        unique.len() + mutants::SHARED.len(),
        with_own_mutants().count()
    );
}

/// Returns the clauses that should have mutants of their own.
pub(crate) fn with_own_mutants() -> impl Iterator<Item = &'static Clause> {
    CLAUSES.iter().filter(|clause| clause.family() != "MATRIX")
}

/// Returns the clauses that some mutant violates while it passes all others.
fn clauses_with_a_mutant_of_their_own(
    mutants: &[&'static mutants::Mutant],
) -> BTreeSet<&'static str> {
    let other_families = mutants.iter().copied();
    let other_families = other_families.filter(|mutant| !mutant.violates.starts_with("MATRIX-"));
    let other_families: Vec<_> = other_families.collect();
    let alone = run_in_parallel(&other_families, |mutant| {
        let factory = (mutant.make)();
        let others = with_own_mutants().filter(|clause| clause.id != mutant.violates);
        let mut others = others.map(|clause| run_clause(clause, &factory));
        let other = others.find(|verdict| verdict.status == Status::Fail);
        if let Some(verdict) = &other {
            let message = CONTRACT.message(verdict);
            let dump = debug_output(&message);
            assert!(dump.is_none(), "{}: debug output in {message}", mutant.name);
        }
        (mutant.violates, other.is_none())
    });
    alone
        .into_iter()
        .filter(|(_, alone)| *alone)
        .map(|(id, _)| id)
        .collect()
}
