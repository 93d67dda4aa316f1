//! Many seeds, on all cores.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, PoisonError},
    thread,
};

use crate::{
    fault::{Kind, PAIRS, Site},
    mistake::Mistake,
    scenario::Scenario,
    world::run,
};

/// What many runs came to.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// How many seeds were run.
    pub seeds: u64,
    /// How many steps were made.
    pub steps: u64,
    /// How often a process died.
    pub crashes: u64,
    /// How many things went wrong in all.
    pub faults: u64,
    /// Which pairs of a step and a kind were hit.
    pub hit: BTreeSet<(Site, Kind)>,
    /// The seeds that broke a rule, in order.
    pub violations: BTreeSet<u64>,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "simulate: seeds={} steps={} crashes={} faults={} pairs={}/{PAIRS} violations={}",
            self.seeds,
            self.steps,
            self.crashes,
            self.faults,
            self.hit.len(),
            self.violations.len()
        )
    }
}

impl Sum {
    /// The pairs that no run came to.
    pub fn missed(&self) -> Vec<(Site, Kind)> {
        let all = Site::ALL.iter().copied();
        let all = all.flat_map(|site| Kind::ALL.map(|kind| (site, kind)));
        all.filter(|pair| !self.hit.contains(pair)).collect()
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When all seeds were run.
    All,
    /// When one broke a rule.
    Violation,
}

/// Runs these seeds. The sum does not depend on the number of cores, unless it stops early.
pub fn sweep(
    seeds: impl Iterator<Item = u64> + Send,
    mistake: Option<Mistake>,
    until: Until,
) -> Sum {
    let sum = Mutex::new(Sum::default());
    let seeds = Mutex::new(seeds);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(seed) = next else {
                return;
            };
            let outcome = run(&Scenario::of(seed), mistake);
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            sum.seeds += 1;
            sum.steps += outcome.steps;
            sum.crashes += outcome.crashes;
            sum.faults += outcome.faults;
            sum.hit.extend(outcome.hit);
            if outcome.violation.is_some() {
                sum.violations.insert(seed);
            }
            if until == Until::Violation && !sum.violations.is_empty() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}
