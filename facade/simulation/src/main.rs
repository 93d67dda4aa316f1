//! `cargo run -p fleetwright-simulation --release -- --seeds 1000` runs a thousand scenarios and
//! prints a summary line.

use std::process::ExitCode;

use clap::Parser;
use fleetwright_simulation::{
    mistake::Mistake,
    scenario::Scenario,
    seeds::{StopAfter, run_seeds},
    shrink::shrink,
    world::run,
};

/// Runs the whole façade in virtual time and injects a crash, an error or a lost response at every
/// step.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run, starting at 0.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Run only this seed and print its scenario.
    #[arg(long)]
    seed: Option<u64>,
    /// Make this mistake on purpose.
    #[arg(long, value_parser = mistake)]
    mistake: Option<Mistake>,
    /// Make every mistake, one after the other, and print which seed finds it.
    #[arg(long)]
    mistakes: bool,
}

fn mistake(name: &str) -> Result<Mistake, String> {
    let names: Vec<_> = Mistake::ALL.iter().map(|each| each.as_str()).collect();
    let names = names.join(", ");
    let mut all = Mistake::ALL.iter().copied();
    all.find(|each| each.as_str() == name)
        .ok_or_else(|| format!("one of: {names}"))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.mistakes {
        return all_mistakes(arguments.seeds);
    }
    if let Some(seed) = arguments.seed {
        return show(seed, arguments.mistake);
    }
    let summary = run_seeds(0..arguments.seeds, arguments.mistake, StopAfter::LastSeed);
    for seed in summary.violations.iter().take(3) {
        show(*seed, arguments.mistake);
    }
    for seed in summary.violations.iter().skip(3) {
        let outcome = run(&Scenario::from_seed(*seed), arguments.mistake);
        let rule = outcome.violation.unwrap_or_default();
        println!("seed {seed} breaks a rule: {rule}");
    }
    for (point, kind) in summary.missed() {
        eprintln!("never occurred: {kind:?} at {point:?}");
    }
    println!("{summary}");
    if summary.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one seed. A scenario that breaks a rule is shrunk and printed.
fn show(seed: u64, mistake: Option<Mistake>) -> ExitCode {
    let scenario = Scenario::from_seed(seed);
    let outcome = run(&scenario, mistake);
    let Some(rule) = outcome.violation.clone() else {
        print!("{scenario}");
        println!("seed {seed}: {} steps, no rule broken", outcome.steps);
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} breaks a rule: {rule}");
    let (least, outcome) = shrink(scenario, mistake, outcome);
    println!("shrunk: {}", outcome.violation.unwrap_or_default());
    print!("{least}");
    for line in outcome.trace {
        println!("  {line}");
    }
    ExitCode::FAILURE
}

fn all_mistakes(seeds: u64) -> ExitCode {
    let mut survivors = 0;
    for mistake in Mistake::ALL.iter().copied() {
        let found = run_seeds(0..seeds, Some(mistake), StopAfter::FirstViolation);
        match found.violations.first() {
            Some(seed) => {
                let rule = run(&Scenario::from_seed(*seed), Some(mistake)).violation;
                let rule = rule.unwrap_or_default();
                println!("{}: seed {seed}: {rule}", mistake.as_str());
            }
            None => {
                survivors += 1;
                println!("{}: NOT FOUND in {seeds} seeds", mistake.as_str());
            }
        }
    }
    println!(
        "mistakes: {} made, {survivors} not found",
        Mistake::ALL.len()
    );
    if survivors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
