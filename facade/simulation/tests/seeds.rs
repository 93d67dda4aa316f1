//! A hundred histories hold, and every mistake is found: the same as the program does, with fewer seeds.

use fleetwright_simulation::{
    fault::{PAIRS, Site, aimed_at},
    mistake::Mistake,
    scenario::Scenario,
    shrink::shrink,
    sweep::{Until, sweep},
    world::run,
};

#[test]
fn a_hundred_histories_break_no_rule() {
    let sum = sweep(0..100, None, Until::All);
    for seed in &sum.violations {
        let outcome = run(&Scenario::of(*seed), None);
        println!("seed {seed}: {:?}\n{:#?}", outcome.violation, outcome.trace);
    }
    assert!(sum.violations.is_empty(), "{sum}");
    assert_eq!(sum.seeds, 100);
    // A sweep that meets no crash would prove nothing.
    assert!(sum.crashes >= 50 && sum.faults >= 100, "{sum}");
    // The program's thousand come to all pairs.
    assert!(
        sum.missed().len() <= PAIRS * 3 / 5,
        "{sum}: {:?}",
        sum.missed()
    );
}

/// Where a mistake shows first: histories that are aimed there are run before the others.
fn shows_at(mistake: Mistake) -> Option<Site> {
    match mistake {
        Mistake::AdoptByTag => Some(Site::FindLaunch),
        Mistake::BackoffIgnored => Some(Site::Note),
        Mistake::MissingInWindow => Some(Site::Record),
        Mistake::MissingOnIncompleteList
        | Mistake::SweepOnIncompleteList
        | Mistake::SweepForeign => Some(Site::Sweep),
        Mistake::SweepUnsettled => Some(Site::Launch),
        Mistake::ScanWithoutList => Some(Site::List),
        Mistake::ConsentKept | Mistake::ConsentAssumed => Some(Site::PassOn),
        Mistake::RechargeForgotten => Some(Site::Recharge),
        Mistake::ReleaseForgotten => Some(Site::Mark),
        Mistake::NetworkNotChecked | Mistake::NetworkInstancesKept => Some(Site::Condemn),
        Mistake::StopNotStored => Some(Site::Stop),
        Mistake::MissingServerRecreated => Some(Site::Order),
        Mistake::TokenNotStored
        | Mistake::ChargeOutsideTransaction
        | Mistake::EventLost
        | Mistake::GenerationNotRaised
        | Mistake::DesiredStateNotApplied
        | Mistake::SettledEarly => None,
    }
}

#[test]
fn every_mistake_is_found() {
    let found = |mistake: &Mistake| {
        let first = shows_at(*mistake).into_iter();
        let first = first.flat_map(|site| aimed_at(site).take(30));
        let sum = sweep(first.chain(0..150), Some(*mistake), Until::Violation);
        let seed = sum.violations.first().copied();
        let rule = seed.and_then(|seed| run(&Scenario::of(seed), Some(*mistake)).violation);
        println!(
            "{}: after {} seeds: {seed:?} {rule:?}",
            mistake.as_str(),
            sum.seeds
        );
        !sum.violations.is_empty()
    };
    let all = Mistake::ALL.iter();
    let survivors: Vec<_> = all.filter(|mistake| !found(mistake)).collect();
    assert!(survivors.is_empty(), "not found: {survivors:?}");
    assert!(Mistake::ALL.len() >= 22);
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
    let mistake = Some(Mistake::TokenNotStored);
    let sum = sweep(0..20, mistake, Until::Violation);
    let scenario = Scenario::of(*sum.violations.first().unwrap());
    let outcome = run(&scenario, mistake);
    let (least, outcome) = shrink(scenario.clone(), mistake, outcome);
    assert!(outcome.violation.is_some());
    assert!(least.ops.len() < scenario.ops.len(), "{least}");
    assert!(least.ops.len() <= 3, "{least}");
}
