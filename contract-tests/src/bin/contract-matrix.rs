//! Merges all contract reports into one page: `contract-matrix [folder]`.
//!
//! It reads every `<provider>.json` in the folder (default: cargo's `target/contract`), writes
//! `matrix.html` and `matrix.json` there, and prints one line of counts for each report. Results of
//! later runs that have reached fewer clauses, `<provider>.partial.json`, are only printed.

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use fleetwright_contract_tests::report::{Report, directory, matrix};

fn main() -> ExitCode {
    match merge() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("contract-matrix: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Merges the reports of the folder that the first argument names.
fn merge() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(directory, PathBuf::from);
    let mut reports: Vec<Report> = Vec::new();
    let mut partial: Vec<Report> = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            // The folder has other JSON files too: the zoo's numbers, and this program's own output.
            let report = serde_json::from_str::<Report>(&fs::read_to_string(&path)?).ok();
            if path.to_string_lossy().ends_with(".partial.json") {
                partial.extend(report);
            } else {
                reports.extend(report);
            }
        }
    }
    if reports.is_empty() {
        return Err(format!(
            "no report in {}: run a contract suite first",
            folder.display()
        )
        .into());
    }
    reports.sort_by(|one, other| one.name.cmp(&other.name));
    fs::write(folder.join("matrix.html"), matrix(&reports))?;
    fs::write(
        folder.join("matrix.json"),
        serde_json::to_string_pretty(&reports)?,
    )?;
    for report in &reports {
        println!("{}: {}", report.name, report.summary());
    }
    for report in &partial {
        let (name, summary) = (&report.name, report.summary());
        println!("{name}, a later run of some clauses: {summary}");
    }
    println!("{}", folder.join("matrix.html").display());
    Ok(())
}
