//! What the proofs of the project take: the contract suite of each backend, and the simulation.
//!
//! Both run as programs that cargo builds first, the suites as `scripts/test` runs them. A suite runs once, because it takes up to
//! minutes; the simulation runs several times with other seeds. The processor time is that of the program.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use serde::Deserialize;

use crate::measure::{Amount, Effort, Row, nanoseconds, summarize};

/// The packages with the contract as a test, and whether a short run includes them.
const SUITES: [(&str, bool); 4] = [
    ("fleetwright-memory", true),
    ("fleetwright-ec2", false),
    ("fleetwright-gcp", false),
    ("fleetwright-azure", false),
];

/// Measures the suites and the simulation.
pub fn run(effort: Effort) -> Vec<Row> {
    let quick = effort.fleet < 50_000;
    let suites = SUITES.into_iter().filter(|(_, short)| *short || !quick);
    let suites: Vec<_> = suites.map(|(package, _)| package).collect();
    let mut rows = match programs(&suites) {
        Ok(programs) => programs.iter().map(suite).collect(),
        Err(reason) => {
            eprintln!("not measured: the contract suites: {reason}");
            Vec::new()
        }
    };
    let (seeds, rounds) = if quick { (20, 3) } else { (100, 5) };
    match simulation(seeds, rounds) {
        Ok(row) => rows.push(row),
        Err(reason) => eprintln!("not measured: the simulation: {reason}"),
    }
    rows
}

/// A built test program.
#[derive(Debug, Deserialize)]
struct Built {
    executable: Option<String>,
    manifest_path: Option<String>,
}

/// Builds the suites. Returns the package and the program of each.
fn programs(packages: &[&'static str]) -> Result<Vec<(&'static str, String)>, String> {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--no-run", "--message-format=json"]);
    command.args(["--test", "contract"]);
    for package in packages {
        command.args(["-p", package]);
    }
    let output = command.stderr(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("they do not build".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let built = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let built = built.filter_map(|built: Built| Some((built.manifest_path?, built.executable?)));
    let built: Vec<(String, String)> = built.collect();
    let program = |package: &&'static str| {
        let folder = format!("/{}/Cargo.toml", package.trim_start_matches("fleetwright-"));
        let mut built = built.iter();
        let (_, program) = built.find(|(manifest, _)| manifest.ends_with(&folder))?;
        Some((*package, program.clone()))
    };
    Ok(packages.iter().filter_map(program).collect())
}

/// Runs a suite.
fn suite((package, program): &(&'static str, String)) -> Row {
    let mut command = Command::new(program);
    let (took, cpu, passed) = timed(command.env("RUST_TEST_THREADS", "16"));
    let variant = if passed { "passed" } else { "failed" };
    Row {
        group: "proof",
        operation: format!("contract suite of {package}, 16 threads"),
        variant: variant.to_owned(),
        median_ns: took,
        spread_ns: (took, took),
        details: vec![("CPU", Amount::Nanoseconds(cpu))],
        ..Row::default()
    }
}

/// Runs the simulation on one thread.
fn simulation(seeds: u32, rounds: u32) -> Result<Row, String> {
    let run = |first: u32, count: u32| {
        let mut command = Command::new("cargo");
        command.args(["run", "--release", "--locked", "--quiet"]);
        command.args(["-p", "fleetwright-simulation", "--", "--threads", "1"]);
        command.args(["--first", &first.to_string(), "--seeds", &count.to_string()]);
        timed(&mut command)
    };
    // Builds it.
    if !run(0, 1).2 {
        return Err("it does not build, or a rule is broken".to_owned());
    }
    let (mut times, mut cpus) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (took, cpu, passed) = run(round * seeds, seeds);
        if !passed {
            return Err("a rule is broken".to_owned());
        }
        times.push(took / f64::from(seeds));
        cpus.push(cpu / f64::from(seeds));
    }
    let (median_ns, spread_ns) = summarize(times);
    let (cpu, _) = summarize(cpus);
    Ok(Row {
        group: "proof",
        operation: "simulation, one thread".to_owned(),
        variant: "one seed".to_owned(),
        median_ns,
        spread_ns,
        details: vec![
            ("CPU", Amount::Nanoseconds(cpu)),
            ("seeds per CPU second", Amount::Count((1e9 / cpu).round())),
        ],
        ..Row::default()
    })
}

/// Runs a program. Returns its time and processor time in nanoseconds, and whether it succeeded.
fn timed(command: &mut Command) -> (f64, f64, bool) {
    let (began, cpu) = (Instant::now(), children_cpu());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let passed = command.status().is_ok_and(|status| status.success());
    (nanoseconds(began.elapsed()), children_cpu() - cpu, passed)
}

/// Returns the processor time of the programs that have ended, by the system's count of hundredths; zero where it does not say.
fn children_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses, the times of ended children in user and system mode are the 14th and 15th field.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(13).take(2);
    fields
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        * 1e7
}
