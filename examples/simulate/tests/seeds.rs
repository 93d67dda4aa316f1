//! A hundred histories hold, and every mistake is found: the same as the program does, with fewer seeds.

use fleetwright_region::mutant as region;
use simulate::{
    fault::PAIRS,
    scenario::Scenario,
    shrink::shrink,
    sweep::{Until, sweep},
    world::run,
};

#[test]
fn a_hundred_histories_break_no_rule() {
    let sum = sweep(100, None, Until::All);
    for seed in &sum.violations {
        let outcome = run(&Scenario::of(*seed), None);
        println!("seed {seed}: {:?}\n{:#?}", outcome.violation, outcome.trace);
    }
    assert!(sum.violations.is_empty(), "{sum}");
    assert_eq!(sum.seeds, 100);
    // A sweep that meets no crash would prove nothing.
    assert!(sum.crashes >= 50 && sum.faults >= 100, "{sum}");
    // The program's thousand come to all pairs.
    assert!(sum.missed().len() <= PAIRS / 5, "{sum}: {:?}", sum.missed());
}

#[test]
fn every_mistake_is_found() {
    let found = |mutant: &Mutant| {
        let sum = sweep(100, Some(*mutant), Until::Violation);
        !sum.violations.is_empty()
    };
    let survivors: Vec<_> = Mutant::ALL
        .into_iter()
        .filter(|mutant| !found(mutant))
        .collect();
    assert!(survivors.is_empty(), "not found: {survivors:?}");
    assert!(Mutant::ALL.len() >= 8);
}

#[test]
fn a_seed_is_always_the_same_history() {
    for seed in [3, 17, 58] {
        let [one, two] = [(); 2].map(|()| run(&Scenario::of(seed), None));
        assert_eq!(
            (one.steps, one.crashes, &one.hit, &one.trace),
            (two.steps, two.crashes, &two.hit, &two.trace)
        );
    }
}

#[test]
fn what_breaks_a_rule_is_shrunk_to_what_is_needed() {
    let mutant = Some(Mutant::ReplaceBeforeEnd);
    let sum = sweep(20, mutant, Until::Violation);
    let scenario = Scenario::of(*sum.violations.first().unwrap());
    let outcome = run(&scenario, mutant);
    let (least, outcome) = shrink(scenario.clone(), mutant, outcome);
    assert!(outcome.violation.is_some());
    assert!(least.ops.len() < scenario.ops.len(), "{least}");
    assert!(least.ops.len() <= 3, "{least}");
}
