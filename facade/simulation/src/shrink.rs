//! Shrinks a scenario that breaks a rule.

use crate::{journal::Outcome, mistake::Mistake, scenario::Scenario, world::run};

/// Removes operations and faults one by one while some rule is still broken. Returns the smallest
/// scenario found and its outcome.
pub fn shrink(
    mut scenario: Scenario,
    mistake: Option<Mistake>,
    mut outcome: Outcome,
) -> (Scenario, Outcome) {
    loop {
        let mut smaller = false;
        for candidate in candidates(&scenario) {
            let result = run(&candidate, mistake);
            if result.violation.is_some() {
                (scenario, outcome, smaller) = (candidate, result, true);
                break;
            }
        }
        if !smaller {
            return (scenario, outcome);
        }
    }
}

/// Every scenario with one process, operation or fault less, later ones first.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let without_op = (0..scenario.ops.len()).rev().map(|index| {
        let mut smaller = scenario.clone();
        smaller.ops.remove(index);
        smaller
    });
    let without_fault = (0..scenario.faults.len()).rev().map(|index| {
        let mut smaller = scenario.clone();
        smaller.faults.remove(index);
        smaller
    });
    let one_process = (scenario.processes > 1).then(|| {
        let mut smaller = scenario.clone();
        smaller.processes = 1;
        smaller
    });
    let smaller = without_fault.chain(without_op);
    one_process.into_iter().chain(smaller).collect()
}
