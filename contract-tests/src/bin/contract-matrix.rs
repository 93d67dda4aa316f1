//! Merges all reports of the contract into one page: `contract-matrix [folder]`.
//!
//! Reads every `<provider>.json` in the folder (cargo's `target/contract` unless told otherwise) and
//! writes `matrix.html` and `matrix.json` beside them.

use std::{error::Error, fs, path::PathBuf};

use fleetwright_contract_tests::report::{Report, directory, matrix};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(directory, PathBuf::from);
    let mut reports: Vec<Report> = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            // Other JSON lies here too: the zoo's numbers, and what this program wrote before.
            reports.extend(serde_json::from_str::<Report>(&fs::read_to_string(&path)?).ok());
        }
    }
    if reports.is_empty() {
        return Err(format!(
            "no report in {}: run a contract suite first",
            folder.display()
        )
        .into());
    }
    reports.sort_by(|one, other| one.provider.cmp(&other.provider));
    fs::write(folder.join("matrix.html"), matrix(&reports))?;
    fs::write(
        folder.join("matrix.json"),
        serde_json::to_string_pretty(&reports)?,
    )?;
    for report in &reports {
        let word = if report.is_conformant() {
            "conformant"
        } else {
            "not conformant"
        };
        println!("{}: {word}, {:?}", report.provider, report.counts());
    }
    println!("{}", folder.join("matrix.html").display());
    Ok(())
}
