//! `cargo run -p fleetwright-simulation --release -- --seeds 1000` runs a thousand histories and prints one line.

use std::process::ExitCode;

use clap::Parser;
use fleetwright_simulation::{
    mistake::Mistake,
    scenario::Scenario,
    shrink::shrink,
    sweep::{Until, sweep},
    world::run,
};

/// Runs the whole façade under virtual time, with a crash, an error or a lost reply at every step.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run, from 0 on.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Runs this seed alone and prints its history.
    #[arg(long)]
    seed: Option<u64>,
    /// Makes a mistake on purpose.
    #[arg(long, value_parser = mistake)]
    mistake: Option<Mistake>,
    /// Makes every mistake there is, and prints which seed found it.
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
    let sum = sweep(0..arguments.seeds, arguments.mistake, Until::All);
    for seed in sum.violations.iter().take(3) {
        show(*seed, arguments.mistake);
    }
    for seed in sum.violations.iter().skip(3) {
        let outcome = run(&Scenario::of(*seed), arguments.mistake);
        let rule = outcome.violation.unwrap_or_default();
        println!("seed {seed} breaks a rule: {rule}");
    }
    for (site, kind) in sum.missed() {
        eprintln!("never hit: {kind:?} at {site:?}");
    }
    println!("{sum}");
    if sum.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one seed; what breaks a rule is shrunk and printed.
fn show(seed: u64, mistake: Option<Mistake>) -> ExitCode {
    let scenario = Scenario::of(seed);
    let outcome = run(&scenario, mistake);
    let Some(rule) = outcome.violation.clone() else {
        print!("{scenario}");
        println!("seed {seed}: {} steps, no rule is broken", outcome.steps);
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} breaks a rule: {rule}");
    let (least, outcome) = shrink(scenario, mistake, outcome);
    println!("the least of it: {}", outcome.violation.unwrap_or_default());
    print!("{least}");
    for line in outcome.trace {
        println!("  {line}");
    }
    ExitCode::FAILURE
}

fn all_mistakes(seeds: u64) -> ExitCode {
    let mut survivors = 0;
    for mistake in Mistake::ALL.iter().copied() {
        let found = sweep(0..seeds, Some(mistake), Until::Violation);
        match found.violations.first() {
            Some(seed) => {
                let rule = run(&Scenario::of(*seed), Some(mistake)).violation;
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
