//! Runs the measurements: `cargo run --release -p fleetwright-bench -- --help`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, ValueEnum as _};
#[cfg(feature = "clouds")]
use fleetwright_bench::clouds;
use fleetwright_bench::{
    crowd, facade, layers,
    measure::{Effort, Row},
    memory, page, proof,
    report::{Circumstances, table},
    service, svg,
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
    /// Also writes a picture of every operation to this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Also writes the results into this page, in place of earlier ones of the same groups
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// The layers over a backend that does nothing
    Layers,
    /// The memory cloud with fleets of different sizes
    Memory,
    /// The façade: creates, events, and the way to a running instance
    Facade,
    /// The service over HTTP: reads, writes and open watches, beside the store alone
    Service,
    /// Calls through the providers beside the vendors' SDKs
    #[cfg(feature = "clouds")]
    Overhead,
    /// How many calls a fleet that comes and goes needs
    #[cfg(feature = "clouds")]
    Economy,
    /// Lists of large fleets
    #[cfg(feature = "clouds")]
    List,
    /// The emulators, beside moto
    #[cfg(feature = "clouds")]
    Emulators,
    /// The contract suites and the simulation, which run as programs
    Proof,
}

impl Group {
    fn run(self, effort: Effort) -> Vec<Row> {
        match self {
            Self::Layers => [layers::run(effort), crowd::run()].concat(),
            Self::Memory => memory::run(effort),
            Self::Facade => facade::run(effort),
            Self::Service => service::run(effort),
            #[cfg(feature = "clouds")]
            Self::Overhead => clouds::overhead::run(effort),
            #[cfg(feature = "clouds")]
            Self::Economy => clouds::economy::run(effort),
            #[cfg(feature = "clouds")]
            Self::List => clouds::list::run(effort),
            #[cfg(feature = "clouds")]
            Self::Emulators => clouds::emulators::run(effort),
            Self::Proof => proof::run(effort),
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
    let groups = Group::value_variants().iter().copied().filter(selected);
    let groups = groups.flat_map(|group| group.run(effort));
    let rows: Vec<Row> = groups.collect();
    let circumstances = Circumstances::read(arguments.quick);
    println!(
        "{}, {} threads, commit {}",
        circumstances.machine, circumstances.threads, circumstances.commit
    );
    println!("{}", table(&rows));
    match write(&arguments, &circumstances, &rows) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the results cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the files that the arguments name.
fn write(arguments: &Arguments, at: &Circumstances, rows: &[Row]) -> std::io::Result<()> {
    if let Some(path) = &arguments.json {
        let document = serde_json::json!({ "circumstances": at, "rows": rows });
        std::fs::write(path, format!("{document:#}\n"))?;
    }
    if let Some(folder) = &arguments.svg {
        svg::write(rows, folder)?;
    }
    if let Some(path) = &arguments.markdown {
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let folder = arguments.svg.as_ref().and_then(|folder| folder.file_name());
        let folder = folder.map(|name| name.to_string_lossy().into_owned());
        std::fs::write(path, page::update(&page, rows, at, folder.as_deref()))?;
    }
    Ok(())
}
