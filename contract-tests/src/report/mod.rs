//! The results of a run, for machines: one JSON and one JUnit file for each provider.
//!
//! Owns the files and their formats; what a report contains is the engine's. libtest has no hook
//! after the last test, so every clause merges its own verdict into the files, under a lock. A key
//! distinguishes one run from the next. A clause that a run has not reached is recorded as not run,
//! and a backend with such a clause is not conformant.
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

use std::path::PathBuf;

use crate::{CONTRACT, CONTRACT_VERSION, Harness, Time, Verdict};
pub use file::directory;
pub use fleetwright_clause_engine::{Entry, Report};
pub use matrix::matrix;

/// Adds a verdict to the files of its provider, and returns the path of the JSON file.
pub(crate) fn add(harness: &dyn Harness, verdict: &Verdict) -> Result<PathBuf, String> {
    let run = file::run_key();
    file::update(&harness.name(), |before: Option<Report>| {
        let same_run = before
            .filter(|report| report.run == run && report.contract_version == CONTRACT_VERSION);
        let mut report = same_run.unwrap_or_else(|| new_report(harness, &run));
        report.record(verdict);
        report
    })
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
