//! The least of a scenario that still breaks a rule.

use crate::{journal::Outcome, mistake::Mistake, scenario::Scenario, world::run};

/// Leaves out operations and faults, one by one, as long as some rule is broken. Answers what is left and what it comes to.
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

/// The scenario without one of its parts, the later ones first.
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
    without_fault.chain(without_op).collect()
}
