//! `cargo run -p fleetwright-simulation --release -- --seeds 1000` runs a thousand scenarios and
//! prints a summary line.
//!
//! The exit code is 1 if a scenario breaks a rule, or if `--mistakes` leaves a mistake unfound.

use std::{num::NonZeroUsize, process::ExitCode};

use clap::Parser;
use fleetwright_simulation::{
    fault::{FaultPoint, seeds_targeting},
    mistake::Mistake,
    scenario::Disruption,
    seeds::{Settings, StopAfter, run_seeds},
    shrink::shrink,
    world::run,
};

/// Seeds are run by the thousand, and a run copies many small records.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many scenarios are shrunk and printed: each takes many runs.
const PRINTED: usize = 3;

/// Runs the whole façade in virtual time and injects a crash, an error or a lost response at every
/// step.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many threads run seeds. Default: one for each core.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// The disruptions that scenarios may have, separated by commas; empty for none. Default: all.
    #[arg(long, value_parser = disruptions)]
    disruptions: Option<Disruptions>,
    /// Run only the seeds whose scenario has this many processes at once, 1 or 2. Default: all.
    #[arg(long)]
    processes: Option<usize>,
    /// Run only this seed and print its scenario.
    #[arg(long)]
    seed: Option<u64>,
    /// Run this many seeds first that inject a fault at the target.
    #[arg(long, default_value_t = 30, requires = "target")]
    target_seeds: usize,
    /// The fault point to inject faults at, e.g. `Launch`.
    #[arg(long, value_parser = fault_point)]
    target: Option<FaultPoint>,
    /// Stop at the first broken rule and print it, without shrinking the scenario.
    #[arg(long)]
    first_violation: bool,
    /// Make this mistake on purpose.
    #[arg(long, value_parser = mistake)]
    mistake: Option<Mistake>,
    /// Make every mistake, one after the other, and print which seed finds it.
    #[arg(long)]
    mistakes: bool,
}

/// A list of disruptions.
#[derive(Clone, Debug)]
struct Disruptions(Vec<Disruption>);

fn disruptions(names: &str) -> Result<Disruptions, String> {
    let names = names.split(',').filter(|name| !name.is_empty());
    let found = names.map(|name| {
        let mut all = Disruption::ALL.iter().copied();
        let names = || Disruption::ALL.iter().map(|each| each.as_str());
        all.find(|each| each.as_str() == name)
            .ok_or_else(|| one_of(names().map(str::to_owned)))
    });
    found.collect::<Result<_, _>>().map(Disruptions)
}

fn mistake(name: &str) -> Result<Mistake, String> {
    let mut all = Mistake::ALL.iter().copied();
    let names = || Mistake::ALL.iter().map(|each| each.as_str());
    all.find(|each| each.as_str() == name)
        .ok_or_else(|| one_of(names().map(str::to_owned)))
}

fn fault_point(name: &str) -> Result<FaultPoint, String> {
    let mut all = FaultPoint::ALL.iter().copied();
    let names = || FaultPoint::ALL.iter().map(|each| format!("{each:?}"));
    all.find(|each| format!("{each:?}") == name)
        .ok_or_else(|| one_of(names()))
}

fn one_of(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    format!("expected one of: {}", names.join(", "))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let default = Settings::default();
    let settings = Settings {
        mistake: arguments.mistake,
        stop_after: if arguments.first_violation {
            StopAfter::FirstViolation
        } else {
            StopAfter::LastSeed
        },
        disruptions: arguments
            .disruptions
            .map_or(default.disruptions, |given| given.0),
        threads: arguments.threads,
    };
    if arguments.mistakes {
        return find_all_mistakes(arguments.seeds, &settings);
    }
    if let Some(seed) = arguments.seed {
        return run_one(seed, &settings);
    }
    let targeted = arguments.target.into_iter();
    let targeted = targeted.flat_map(|point| seeds_targeting(point).take(arguments.target_seeds));
    let last = arguments.first.saturating_add(arguments.seeds);
    let seeds = targeted.chain(arguments.first..last);
    let seeds = seeds.filter(|seed| {
        let wanted = arguments.processes;
        wanted.is_none_or(|count| settings.scenario(*seed).processes == count)
    });
    let summary = run_seeds(seeds, &settings);
    let printed = if arguments.first_violation {
        0
    } else {
        PRINTED
    };
    for seed in summary.violations.iter().take(printed) {
        run_one(*seed, &settings);
    }
    for seed in summary.violations.iter().skip(printed) {
        let outcome = run(&settings.scenario(*seed), settings.mistake);
        let rule = outcome.violation.unwrap_or_default();
        println!("seed {seed} breaks a rule: {rule}");
    }
    if !arguments.first_violation {
        for (point, kind) in summary.missed() {
            eprintln!("never occurred: {kind:?} at {point:?}");
        }
    }
    println!("{summary}");
    if summary.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one seed. A scenario that breaks a rule is shrunk and printed.
fn run_one(seed: u64, settings: &Settings) -> ExitCode {
    let scenario = settings.scenario(seed);
    let outcome = run(&scenario, settings.mistake);
    let Some(rule) = outcome.violation.clone() else {
        print!("{scenario}");
        println!("seed {seed}: {} steps, no rule broken", outcome.steps);
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} breaks a rule: {rule}");
    let (smallest, outcome) = shrink(scenario, settings.mistake, outcome);
    println!("shrunk: {}", outcome.violation.unwrap_or_default());
    print!("{smallest}");
    for line in outcome.trace {
        println!("  {line}");
    }
    ExitCode::FAILURE
}

fn find_all_mistakes(seeds: u64, settings: &Settings) -> ExitCode {
    let mut not_found = 0;
    for mistake in Mistake::ALL.iter().copied() {
        let first = mistake.target().into_iter();
        let first = first.flat_map(|point| seeds_targeting(point).take(30));
        let settings = Settings {
            mistake: Some(mistake),
            stop_after: StopAfter::FirstViolation,
            ..settings.clone()
        };
        let summary = run_seeds(first.chain(0..seeds), &settings);
        match summary.violations.first() {
            Some(seed) => {
                let rule = run(&settings.scenario(*seed), Some(mistake)).violation;
                let rule = rule.unwrap_or_default();
                println!("{}: seed {seed}: {rule}", mistake.as_str());
            }
            None => {
                not_found += 1;
                println!("{}: NOT FOUND in {seeds} seeds", mistake.as_str());
            }
        }
    }
    println!(
        "mistakes: {} made, {not_found} not found",
        Mistake::ALL.len()
    );
    if not_found == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
