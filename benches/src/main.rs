//! Runs the measurements: `cargo run --release -p fleetwright-bench -- --help`.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use fleetwright_bench::{
    layers,
    measure::{Effort, Row},
    memory,
    report::{Circumstances, table},
};

/// Measures what fleetwright costs, side by side, and prints a table.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// A short run with smaller fleets and fewer rounds
    #[arg(long)]
    quick: bool,
    /// Only these groups
    #[arg(long, value_enum)]
    only: Vec<Group>,
    /// Also writes the rows to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// The layers over a backend that does nothing
    Layers,
    /// The memory cloud with fleets of different sizes
    Memory,
}

impl Group {
    const ALL: [Self; 2] = [Self::Layers, Self::Memory];

    fn run(self, effort: Effort) -> Vec<Row> {
        match self {
            Self::Layers => layers::run(effort),
            Self::Memory => memory::run(effort),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if cfg!(debug_assertions) {
        eprintln!("warning: without --release, times say nothing");
    }
    let effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let selected = |group: &Group| arguments.only.is_empty() || arguments.only.contains(group);
    let groups = Group::ALL.into_iter().filter(selected);
    let rows: Vec<Row> = groups.flat_map(|group| group.run(effort)).collect();
    let circumstances = Circumstances::read(arguments.quick);
    println!(
        "{}, {} threads, commit {}",
        circumstances.machine, circumstances.threads, circumstances.commit
    );
    println!("{}", table(&rows));
    let Some(path) = arguments.json else {
        return ExitCode::SUCCESS;
    };
    let document = serde_json::json!({ "circumstances": circumstances, "rows": rows });
    match std::fs::write(&path, format!("{document:#}\n")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {} cannot be written: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
