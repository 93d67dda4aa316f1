//! Runs many seeds on all cores and adds up the results.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    fault::{FaultKind, FaultPoint, PAIRS},
    mistake::Mistake,
    scenario::{Disruption, Scenario},
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
    /// How many faults of each kind were injected.
    pub faults: BTreeMap<FaultKind, u64>,
    /// In how many runs each disruption happened.
    pub disruptions: BTreeMap<Disruption, u64>,
    /// The pairs of fault point and fault kind that occurred.
    pub occurred: BTreeSet<(FaultPoint, FaultKind)>,
    /// The seeds that broke a rule, in ascending order.
    pub violations: BTreeSet<u64>,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults.iter();
        let faults: Vec<_> = faults
            .map(|(kind, count)| format!("{}:{count}", kind.as_str()))
            .collect();
        let disruptions = self.disruptions.iter();
        let disruptions: Vec<_> = disruptions
            .map(|(kind, count)| format!("{}:{count}", kind.as_str()))
            .collect();
        write!(
            f,
            "simulate: seeds={} steps={} crashes={} faults={} ({}) disruptions={} pairs={}/{PAIRS} violations={} seeds/s={:.1}",
            self.seeds,
            self.steps,
            self.crashes,
            self.fault_count(),
            faults.join(" "),
            disruptions.join(","),
            self.occurred.len(),
            self.violations.len(),
            self.seeds as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE),
        )
    }
}

impl Summary {
    /// Returns how many faults were injected.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Returns the pairs that did not occur in any run.
    pub fn missed(&self) -> Vec<(FaultPoint, FaultKind)> {
        let all = FaultPoint::ALL.iter().copied();
        let all = all.flat_map(|point| FaultKind::ALL.map(|kind| (point, kind)));
        all.filter(|pair| !self.occurred.contains(pair)).collect()
    }
}

/// When to stop running seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopAfter {
    /// After the last seed.
    #[default]
    LastSeed,
    /// After the first seed that breaks a rule.
    FirstViolation,
}

/// What to run with the seeds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The mistake to make on purpose.
    pub mistake: Option<Mistake>,
    /// When to stop.
    pub stop_after: StopAfter,
    /// The disruptions that scenarios may have.
    pub disruptions: Vec<Disruption>,
    /// How many threads run seeds. Default: one for each core.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Settings {
    /// The default disruptions, no mistake, all seeds, on all cores.
    fn default() -> Self {
        Self {
            mistake: None,
            stop_after: StopAfter::LastSeed,
            disruptions: Disruption::DEFAULT.to_vec(),
            threads: None,
        }
    }
}

impl Settings {
    /// Returns the scenario of a seed.
    pub fn scenario(&self, seed: u64) -> Scenario {
        Scenario::with_disruptions(seed, &self.disruptions)
    }
}

/// Runs the seeds. The summary does not depend on the number of threads, unless the run stops early.
pub fn run_seeds(seeds: impl Iterator<Item = u64> + Send, settings: &Settings) -> Summary {
    let started = Instant::now();
    let summary = Mutex::new(Summary::default());
    let seeds = Mutex::new(seeds);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = settings.threads.map_or(cores, NonZeroUsize::get);
    let work = || {
        loop {
            let next = seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(seed) = next else {
                return;
            };
            let scenario = settings.scenario(seed);
            let outcome = run(&scenario, settings.mistake);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.seeds += 1;
            summary.steps += outcome.steps;
            summary.crashes += outcome.crashes;
            for (_, kind) in &outcome.occurred {
                *summary.faults.entry(*kind).or_default() += 1;
            }
            for disruption in scenario.disruptions {
                *summary.disruptions.entry(disruption).or_default() += 1;
            }
            summary.occurred.extend(outcome.occurred);
            if outcome.violation.is_some() {
                summary.violations.insert(seed);
            }
            if settings.stop_after == StopAfter::FirstViolation && !summary.violations.is_empty() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.took = started.elapsed();
    summary
}
