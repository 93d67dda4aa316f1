//! A hundred histories hold, and every mistake is found: the same as the program does, with fewer seeds.

use fleetwright_compute::mutant as compute;
use fleetwright_region::mutant as region;
use fleetwright_simulation::{
    fault::{PAIRS, Site, aimed_at},
    mutant::Mutant,
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
fn shows_at(mutant: Mutant) -> Option<Site> {
    match mutant {
        Mutant::Region(mutant) => match mutant {
            region::Mutant::AdoptByTag => Some(Site::FindLaunch),
            region::Mutant::AttemptAfterBoot => Some(Site::Order),
            region::Mutant::ForgetEarly => Some(Site::Terminate),
            region::Mutant::StopLostOnReplace => Some(Site::Start),
            region::Mutant::BackoffIgnored => Some(Site::Note),
            region::Mutant::MissingInWindow => Some(Site::Record),
            region::Mutant::MissingOnIncompleteList
            | region::Mutant::SweepOnIncompleteList
            | region::Mutant::SweepForeign => Some(Site::Sweep),
            region::Mutant::SweepUnsettled => Some(Site::Launch),
            region::Mutant::PulseWithoutLook => Some(Site::List),
            region::Mutant::TokenNotStored
            | region::Mutant::IncarnationNotRaised
            | region::Mutant::ReplaceBeforeEnd => None,
        },
        Mutant::Compute(mutant) => match mutant {
            compute::Mutant::ConsentSkipped => Some(Site::Update),
            compute::Mutant::ConsentKept | compute::Mutant::ConsentAssumed => Some(Site::PassOn),
            compute::Mutant::RechargeForgotten => Some(Site::Recharge),
            compute::Mutant::ReleasedTwice
            | compute::Mutant::ReleaseForgotten
            | compute::Mutant::DeleteOrderSwapped => Some(Site::Mark),
            compute::Mutant::DeleteGatedOnStatus => Some(Site::Status),
            compute::Mutant::VerbForReader | compute::Mutant::HiddenIsRefused => {
                Some(Site::ReadService)
            }
            compute::Mutant::GroundNotChecked | compute::Mutant::NetworkForgotten => {
                Some(Site::Condemn)
            }
            compute::Mutant::StopNotStored => Some(Site::Stop),
            compute::Mutant::MissingMadeAgain => Some(Site::Order),
            compute::Mutant::ChargeOutsideTransaction
            | compute::Mutant::EventLost
            | compute::Mutant::GenerationNotRaised
            | compute::Mutant::CreateOverwrites
            | compute::Mutant::WishNotPassedOn
            | compute::Mutant::SettledEarly => None,
        },
    }
}

#[test]
fn every_mistake_is_found() {
    let found = |mutant: &Mutant| {
        let first = shows_at(*mutant).into_iter();
        let first = first.flat_map(|site| aimed_at(site).take(30));
        let sum = sweep(first.chain(0..150), Some(*mutant), Until::Violation);
        let seed = sum.violations.first().copied();
        let rule = seed.and_then(|seed| run(&Scenario::of(seed), Some(*mutant)).violation);
        println!(
            "{}: after {} seeds: {seed:?} {rule:?}",
            mutant.as_str(),
            sum.seeds
        );
        !sum.violations.is_empty()
    };
    let survivors: Vec<_> = Mutant::all().filter(|mutant| !found(mutant)).collect();
    assert!(survivors.is_empty(), "not found: {survivors:?}");
    assert!(Mutant::all().count() >= 34);
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
    let mutant = Some(Mutant::Region(region::Mutant::ReplaceBeforeEnd));
    let sum = sweep(0..20, mutant, Until::Violation);
    let scenario = Scenario::of(*sum.violations.first().unwrap());
    let outcome = run(&scenario, mutant);
    let (least, outcome) = shrink(scenario.clone(), mutant, outcome);
    assert!(outcome.violation.is_some());
    assert!(least.ops.len() < scenario.ops.len(), "{least}");
    assert!(least.ops.len() <= 3, "{least}");
}
