//! Holds a backend in any language to the contract: `contract-run --exec ./my-backend`.
//!
//! The backend is a program that reads requests from its standard input and writes replies to its standard output, one
//! JSON object in a line. `docs/exec-protocol.md` describes them. This program starts it, makes the kit's calls through it,
//! and reports every clause of the contract.
//!
//! From the outside to the inside: `options` is the command line, `run` runs clauses, `harness` is an account as the kit
//! sees it, `handle` and `parts` translate the kit's calls to requests, `account` has the process of an account, `backend`
//! starts processes, `process` owns one with its pipes, `calls` and `pending_call` match replies to requests, and `message`,
//! `hello`, `fault` and `wire_error` are the forms on the wire.

mod account;
mod backend;
mod calls;
#[cfg(test)]
mod document;
mod fault;
mod handle;
mod harness;
mod hello;
mod message;
mod options;
mod parts;
mod pending_call;
mod problems;
mod process;
mod run;
mod wire_error;

use std::{fs, process::ExitCode, sync::Arc};

use fleetwright_contract_tests::{
    CLAUSES, CONTRACT, Status, Time, Verdict, report::Report, waiver,
};

use crate::{
    backend::Backend,
    options::{HELP, Options},
    run::run_clauses,
};

fn main() -> ExitCode {
    let result = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(|problem| {
        eprintln!("contract-run: {problem}");
        ExitCode::from(2)
    })
}

/// Runs the selected clauses, prints their results, and writes the report.
fn run(options: &Options) -> Result<ExitCode, String> {
    let selected: Vec<_> = CLAUSES
        .iter()
        .filter(|clause| options.selects(clause.id))
        .collect();
    if selected.is_empty() {
        return Err("no clause is selected; see --filter and --skip".to_owned());
    }
    let waivers = match &options.waivers {
        Some(path) => {
            let text = fs::read_to_string(path);
            waiver::parse(&text.map_err(|error| format!("{}: {error}", path.display()))?)?
        }
        None => Vec::new(),
    };
    let backend = Arc::new(Backend::new(options.command.clone(), options.limit)?);
    let mode = match backend.hello.time {
        Time::Real => "real",
        Time::Virtual => "virtual",
    };
    let run = format!("process-{}", std::process::id());
    let mut report = Report::new(&CONTRACT, &backend.hello.name, mode, &run);
    run_clauses(&backend, &selected, &waivers, options.jobs, |verdict| {
        print_verdict(&verdict);
        report.record(&verdict);
    });
    if let Some(path) = &options.report {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        let written = fs::write(path, text + "\n");
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    // The clauses that were not selected are in the report as not run, and are not counted here.
    report.clauses.retain(|entry| options.selects(&entry.id));
    println!("{}: {}", report.name, report.summary());
    Ok(exit_code(&report))
}

/// Prints one line for a clause that is kept, and everything that is known about one that is broken.
fn print_verdict(verdict: &Verdict) {
    match (verdict.status, &verdict.reason) {
        (Status::Fail | Status::KitError, _) => print!("{}", CONTRACT.message(verdict)),
        (status, Some(reason)) => println!("{}: {}: {reason}", verdict.id, status.word()),
        (status, None) => println!("{}: {}", verdict.id, status.word()),
    }
}

/// Returns the exit code that `--help` explains.
fn exit_code(report: &Report) -> ExitCode {
    let counts = report.counts();
    let count = |status| counts.get(&status).copied().unwrap_or_default();
    if count(Status::Fail) + count(Status::KitError) > 0 {
        ExitCode::from(1)
    } else if report.is_conformant() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    }
}
