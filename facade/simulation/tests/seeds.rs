//! A hundred seeds break no rule, and every mistake at a seam is found: what the program does, with
//! fewer seeds.

use fleetwright_simulation::{
    fault::{PAIRS, seeds_targeting},
    mistake::Mistake,
    scenario::Scenario,
    seeds::{Settings, StopAfter, run_seeds},
    shrink::shrink,
    world::run,
};

#[test]
fn hundred_seeds_break_no_rule() {
    let summary = run_seeds(0..100, &Settings::default());
    for seed in &summary.violations {
        let outcome = run(&Scenario::from_seed(*seed), None);
        println!("seed {seed}: {:?}\n{:#?}", outcome.violation, outcome.trace);
    }
    assert!(summary.violations.is_empty(), "{summary}");
    assert_eq!(summary.seeds, 100);
    // Seeds without crashes and faults would prove nothing.
    assert!(
        summary.crashes >= 50 && summary.fault_count() >= 100,
        "{summary}"
    );
    // The thousand seeds of the program reach all pairs.
    assert!(
        summary.missed().len() <= PAIRS * 3 / 5,
        "{summary}: {:?}",
        summary.missed()
    );
}

fn with(mistake: Mistake) -> Settings {
    Settings {
        mistake: Some(mistake),
        stop_after: StopAfter::FirstViolation,
        ..Settings::default()
    }
}

#[test]
fn every_mistake_is_found() {
    let found = |mistake: &Mistake| {
        let first = mistake.target().into_iter();
        let first = first.flat_map(|point| seeds_targeting(point).take(30));
        let seeds = first.chain(0..150);
        let summary = run_seeds(seeds, &with(*mistake));
        let seed = summary.violations.first().copied();
        let rule = seed.and_then(|seed| run(&Scenario::from_seed(seed), Some(*mistake)).violation);
        println!(
            "{}: after {} seeds: {seed:?} {rule:?}",
            mistake.as_str(),
            summary.seeds
        );
        !summary.violations.is_empty()
    };
    let all = Mistake::ALL.iter();
    let survivors: Vec<_> = all.filter(|mistake| !found(mistake)).collect();
    assert!(survivors.is_empty(), "not found: {survivors:?}");
    assert!(Mistake::ALL.len() >= 23);
}

#[test]
fn same_seed_gives_same_run() {
    for seed in [3, 17, 58] {
        let [one, two] = [(); 2].map(|()| run(&Scenario::from_seed(seed), None));
        assert_eq!(
            (one.steps, one.crashes, &one.occurred, &one.trace),
            (two.steps, two.crashes, &two.occurred, &two.trace)
        );
    }
}

#[test]
fn failing_scenario_is_shrunk() {
    let mistake = Some(Mistake::TokenNotStored);
    let summary = run_seeds(0..20, &with(Mistake::TokenNotStored));
    let scenario = Scenario::from_seed(*summary.violations.first().unwrap());
    let outcome = run(&scenario, mistake);
    let (smallest, outcome) = shrink(scenario.clone(), mistake, outcome);
    assert!(outcome.violation.is_some());
    assert!(smallest.ops.len() < scenario.ops.len(), "{smallest}");
    assert!(smallest.ops.len() <= 3, "{smallest}");
}
