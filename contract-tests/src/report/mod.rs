//! What a run came to, for machines: one JSON file and one JUnit file for each provider.
//!
//! libtest has no hook after the last test, so every clause merges its own verdict into the files,
//! under a lock. A run is told from the one before it by a key; what a run has not reached yet stands
//! there as not run, and not run is not conformant.

mod file;
mod junit;
mod matrix;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{CLAUSES, CONTRACT_VERSION, Harness, Status, Time, Verdict};
pub use file::directory;
pub use matrix::matrix;

/// What a run of the contract against one provider came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The backend's name.
    pub provider: String,
    /// How time passed: `virtual` or `real`.
    pub mode: String,
    /// The version of the contract.
    pub contract_version: String,
    /// What tells this run from others.
    pub run: String,
    /// Every clause of the contract, in its order.
    pub clauses: Vec<Entry>,
}

/// What became of one clause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The clause.
    pub id: String,
    /// The name of its test.
    pub name: String,
    /// What became of it.
    pub status: Status,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Why, for everything but a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Report {
    /// A run in which nothing was run yet.
    pub fn new(harness: &dyn Harness, run: &str) -> Self {
        let entry = |clause: &crate::Clause| Entry {
            id: clause.id.to_owned(),
            name: clause.name.to_owned(),
            status: Status::NotRun,
            duration_ms: 0,
            reason: Some("not reached".to_owned()),
        };
        Self {
            provider: harness.name(),
            mode: match harness.time() {
                Time::Real => "real".to_owned(),
                Time::Virtual => "virtual".to_owned(),
            },
            contract_version: CONTRACT_VERSION.to_owned(),
            run: run.to_owned(),
            clauses: CLAUSES.iter().map(entry).collect(),
        }
    }

    /// Puts a verdict into its place.
    pub fn record(&mut self, verdict: &Verdict) {
        if let Some(entry) = self.clauses.iter_mut().find(|entry| entry.id == verdict.id) {
            entry.status = verdict.status;
            entry.duration_ms = millis(verdict.duration);
            entry.reason.clone_from(&verdict.reason);
        }
    }

    /// Whether the backend keeps the whole contract: every clause holds, or is refused because it
    /// is not declared.
    pub fn is_conformant(&self) -> bool {
        self.clauses
            .iter()
            .all(|entry| matches!(entry.status, Status::Pass | Status::Refused))
    }

    /// How many clauses have each status.
    pub fn counts(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.clauses {
            *counts.entry(entry.status).or_default() += 1;
        }
        counts
    }
}

/// Adds a verdict to the files of its provider, and tells where they are.
pub(crate) fn add(harness: &dyn Harness, verdict: &Verdict) -> Result<PathBuf, String> {
    let run = file::run_key();
    file::update(&harness.name(), |before: Option<Report>| {
        let same_run = before
            .filter(|report| report.run == run && report.contract_version == CONTRACT_VERSION);
        let mut report = same_run.unwrap_or_else(|| Report::new(harness, &run));
        report.record(verdict);
        report
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
