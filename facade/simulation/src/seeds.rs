//! Runs many seeds on all cores and adds up the results.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, PoisonError},
    thread,
};

use crate::{
    fault::{FaultKind, FaultPoint, PAIRS},
    mistake::Mistake,
    scenario::Scenario,
    world::run,
};

/// The results of many runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// Steps: store and cloud calls of all processes.
    pub steps: u64,
    /// Crashes of a process.
    pub crashes: u64,
    /// Injected faults.
    pub faults: u64,
    /// The pairs of fault point and fault kind that occurred.
    pub occurred: BTreeSet<(FaultPoint, FaultKind)>,
    /// The seeds that broke a rule, in ascending order.
    pub violations: BTreeSet<u64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "simulate: seeds={} steps={} crashes={} faults={} pairs={}/{PAIRS} violations={}",
            self.seeds,
            self.steps,
            self.crashes,
            self.faults,
            self.occurred.len(),
            self.violations.len()
        )
    }
}

impl Summary {
    /// Returns the pairs that did not occur in any run.
    pub fn missed(&self) -> Vec<(FaultPoint, FaultKind)> {
        let all = FaultPoint::ALL.iter().copied();
        let all = all.flat_map(|point| FaultKind::ALL.map(|kind| (point, kind)));
        all.filter(|pair| !self.occurred.contains(pair)).collect()
    }
}

/// When to stop running seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// After the last seed.
    LastSeed,
    /// After the first seed that breaks a rule.
    FirstViolation,
}

/// Runs the seeds. The summary does not depend on the number of cores, unless the run stops early.
pub fn run_seeds(
    seeds: impl Iterator<Item = u64> + Send,
    mistake: Option<Mistake>,
    stop_after: StopAfter,
) -> Summary {
    let summary = Mutex::new(Summary::default());
    let seeds = Mutex::new(seeds);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(seed) = next else {
                return;
            };
            let outcome = run(&Scenario::from_seed(seed), mistake);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.seeds += 1;
            summary.steps += outcome.steps;
            summary.crashes += outcome.crashes;
            summary.faults += outcome.faults;
            summary.occurred.extend(outcome.occurred);
            if outcome.violation.is_some() {
                summary.violations.insert(seed);
            }
            if stop_after == StopAfter::FirstViolation && !summary.violations.is_empty() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}
