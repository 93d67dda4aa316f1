//! The results of a run, for machines: one JSON and one JUnit file for each provider.
//!
//! Owns the files and their formats; what a report contains is the engine's. libtest has no hook
//! after the last test, so every clause merges its own verdict into the files, under a lock. A key
//! distinguishes one run from the next. A clause that a run has not reached is recorded as not run,
//! and a backend with such a clause is not conformant.
//!
//! A run replaces the report of an earlier one as soon as it has reached every clause that the earlier
//! run had reached. Until then its results are in `<provider>.partial.json`, so a filtered run
//! (`cargo test token_01`) leaves the report of a whole run as it is. The test that completes a run
//! prints one line with its counts.
//!
//! Reading a report:
//!
//! ```no_run
//! use fleetwright_contract_tests::report::{self, Report};
//!
//! let path = report::directory().join("my-backend.json");
//! let text = std::fs::read_to_string(path).unwrap();
//! let report: Report = serde_json::from_str(&text).unwrap();
//! println!("{}: {}", report.name, report.summary());
//! std::fs::write("matrix.html", report::matrix(&[report])).unwrap();
//! ```

mod file;
mod junit;
mod matrix;

use std::io::Write as _;

use crate::{CONTRACT, Harness, Time, Verdict};
pub use file::directory;
pub use fleetwright_clause_engine::{Entry, Report};
pub use matrix::matrix;

/// Adds a verdict to the files of its provider. If it is the last one that the run needs, prints the
/// counts of the run.
pub(crate) fn add(harness: &dyn Harness, verdict: &Verdict) -> Result<(), String> {
    let run = file::run_key();
    let (path, completed) = file::update(&harness.name(), |stored| {
        let mut report = stored
            .of_run(&run)
            .unwrap_or_else(|| new_report(harness, &run));
        let was_complete = report.is_complete();
        report.record(verdict);
        let completed = !was_complete && report.is_complete();
        (report, completed)
    })?;
    if let Some(report) = completed {
        // Not with `eprintln`, which libtest captures and shows for failed tests only.
        let line = format!(
            "\ncontract of {}: {} ({})\n",
            report.name,
            report.summary(),
            path.display()
        );
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    Ok(())
}

/// Creates the report of a run in which no clause has been run yet: every clause is in it as not run.
fn new_report(harness: &dyn Harness, run: &str) -> Report {
    let mode = match harness.time() {
        Time::Real => "real",
        Time::Virtual => "virtual",
    };
    Report::new(&CONTRACT, &harness.name(), mode, run)
}

#[cfg(test)]
mod tests;
