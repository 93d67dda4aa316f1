//! A hundred histories hold, and every mistake is found: the same as the program does, with fewer seeds.

use fleetwright_simulation::{
    fault::{FaultPoint, PAIRS, seeds_targeting},
    mistake::Mistake,
    scenario::Scenario,
    seeds::{StopAfter, run_seeds},
    shrink::shrink,
    world::run,
};

#[test]
fn a_hundred_histories_break_no_rule() {
    let summary = run_seeds(0..100, None, StopAfter::LastSeed);
    for seed in &summary.violations {
        let outcome = run(&Scenario::from_seed(*seed), None);
        println!("seed {seed}: {:?}\n{:#?}", outcome.violation, outcome.trace);
    }
    assert!(summary.violations.is_empty(), "{summary}");
    assert_eq!(summary.seeds, 100);
    // A sweep that meets no crash would prove nothing.
    assert!(summary.crashes >= 50 && summary.faults >= 100, "{summary}");
    // The program's thousand come to all pairs.
    assert!(
        summary.missed().len() <= PAIRS * 3 / 5,
        "{summary}: {:?}",
        summary.missed()
    );
}

/// Where a mistake shows first: histories that are aimed there are run before the others.
fn shows_at(mistake: Mistake) -> Option<FaultPoint> {
    match mistake {
        Mistake::AdoptByTag => Some(FaultPoint::FindLaunch),
        Mistake::BackoffIgnored => Some(FaultPoint::RecordResult),
        Mistake::MissingInWindow => Some(FaultPoint::RecordMachine),
        Mistake::MissingOnIncompleteList
        | Mistake::SweepOnIncompleteList
        | Mistake::SweepForeign => Some(FaultPoint::Sweep),
        Mistake::SweepUnsettled => Some(FaultPoint::Launch),
        Mistake::ScanWithoutList => Some(FaultPoint::List),
        Mistake::ConsentKept | Mistake::ConsentAssumed => Some(FaultPoint::ApplyToServer),
        Mistake::RechargeForgotten => Some(FaultPoint::Recharge),
        Mistake::ReleaseForgotten => Some(FaultPoint::MarkDeleted),
        Mistake::NetworkNotChecked | Mistake::NetworkInstancesKept => {
            Some(FaultPoint::DeleteNetwork)
        }
        Mistake::StopNotStored => Some(FaultPoint::Stop),
        Mistake::MissingServerRecreated => Some(FaultPoint::OperatorWrite),
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
        let first = first.flat_map(|point| seeds_targeting(point).take(30));
        let summary = run_seeds(
            first.chain(0..150),
            Some(*mistake),
            StopAfter::FirstViolation,
        );
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
    assert!(Mistake::ALL.len() >= 22);
}

#[test]
fn a_seed_is_always_the_same_history() {
    for seed in [3, 17, 58] {
        let [one, two] = [(); 2].map(|()| run(&Scenario::from_seed(seed), None));
        assert_eq!(
            (one.steps, one.crashes, &one.occurred, &one.trace),
            (two.steps, two.crashes, &two.occurred, &two.trace)
        );
    }
}

#[test]
fn what_breaks_a_rule_is_shrunk_to_what_is_needed() {
    let mistake = Some(Mistake::TokenNotStored);
    let summary = run_seeds(0..20, mistake, StopAfter::FirstViolation);
    let scenario = Scenario::from_seed(*summary.violations.first().unwrap());
    let outcome = run(&scenario, mistake);
    let (least, outcome) = shrink(scenario.clone(), mistake, outcome);
    assert!(outcome.violation.is_some());
    assert!(least.ops.len() < scenario.ops.len(), "{least}");
    assert!(least.ops.len() <= 3, "{least}");
}
