//! What every clause is worth: the mutants that die of it and pass all others are its own, and a
//! clause without one has a written reason.
//!
//! Runs every mutant under every clause, with the seed of every day: another one lets the model see
//! more or less.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_contract_tests::{CLAUSES, Status, run_clause};
use fleetwright_contract_zoo::mutants;

use crate::hands;

/// Demands that the list of clauses without a mutant of their own is what is measured.
pub(crate) fn is_as_listed(mutants: &[&'static mutants::Mutant]) {
    let unique = clauses_with_a_mutant_of_their_own(mutants);
    let shared: BTreeMap<_, _> = mutants::SHARED.iter().copied().collect();
    let mut wrong = String::new();
    for clause in CLAUSES {
        wrong += &match (unique.contains(clause.id), shared.contains_key(clause.id)) {
            (false, false) => format!(
                "{}: no mutant dies of it alone; say why it is kept\n",
                clause.id
            ),
            (true, true) => format!(
                "{}: a mutant dies of it alone; take its reason away\n",
                clause.id
            ),
            (true, false) | (false, true) => String::new(),
        };
    }
    assert!(
        wrong.is_empty(),
        "shared.rs is not what was measured:\n{wrong}"
    );
    assert_eq!(unique.len() + mutants::SHARED.len(), CLAUSES.len());
}

/// The clauses that some mutant dies of while it passes all others.
fn clauses_with_a_mutant_of_their_own(
    mutants: &[&'static mutants::Mutant],
) -> BTreeSet<&'static str> {
    let alone = hands::side_by_side(mutants, |mutant| {
        let factory = (mutant.make)();
        let others = CLAUSES.iter().filter(|clause| clause.id != mutant.dies_of);
        let mut others = others.map(|clause| run_clause(clause, &factory).status);
        (mutant.dies_of, !others.any(|status| status == Status::Fail))
    });
    alone
        .into_iter()
        .filter(|(_, alone)| *alone)
        .map(|(id, _)| id)
        .collect()
}
