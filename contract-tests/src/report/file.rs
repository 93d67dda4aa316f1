//! Where report files are, and how several processes write one.
//!
//! Owns paths, the run key, the lock, and which run a file is about. It never interprets a result. A file is written under
//! another name and then renamed, so that a reader never sees half of it; the lock file stays,
//! since deleting it would let two processes hold different locks.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use fs4::fs_std::FileExt as _;

use super::{Report, junit};
use crate::CONTRACT_VERSION;

/// Returns the folder of all reports: `FLEETWRIGHT_CONTRACT_DIR` if that is set, else `contract` in
/// cargo's target folder.
///
/// ```
/// let report = fleetwright_contract_tests::report::directory().join("my-backend.json");
/// println!("the report of my-backend is {}", report.display());
/// ```
pub fn directory() -> PathBuf {
    env::var_os("FLEETWRIGHT_CONTRACT_DIR").map_or_else(in_target, PathBuf::from)
}

/// Returns `contract` in cargo's target folder: `CARGO_TARGET_DIR`, or derived from the path of this
/// program. Tests are in `<target>/debug/deps`, programs in `<target>/debug`.
fn in_target() -> PathBuf {
    let configured = env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let target = configured.or_else(|| {
        let program = env::current_exe().ok()?;
        let folder = program.parent()?;
        let profile = if folder.ends_with("deps") {
            folder.parent()?
        } else {
            folder
        };
        Some(profile.parent()?.to_owned())
    });
    target
        .unwrap_or_else(|| PathBuf::from("target"))
        .join("contract")
}

/// Returns the key of this run. All processes of a nextest run share one key; `cargo test` has one
/// process for all clauses of a test binary, so its process id is the key.
pub(super) fn run_key() -> String {
    let variables = ["FLEETWRIGHT_CONTRACT_RUN", "NEXTEST_RUN_ID"];
    let found = variables.iter().find_map(|name| env::var(name).ok());
    found.unwrap_or_else(|| format!("process-{}", std::process::id()))
}

/// The stored reports of a provider, of the current version of the contract.
pub(super) struct Stored {
    /// `<provider>.json`.
    pub(super) report: Option<Report>,
    /// `<provider>.partial.json`: of a later run that has reached less.
    pub(super) partial: Option<Report>,
}

impl Stored {
    /// Returns the report of this run, if it has one.
    pub(super) fn of_run(&self, run: &str) -> Option<Report> {
        let reports = [&self.report, &self.partial].into_iter().flatten();
        reports
            .into_iter()
            .find(|report| report.run == run)
            .cloned()
    }

    /// Whether a report replaces `<provider>.json`.
    pub(super) fn is_replaced_by(&self, report: &Report) -> bool {
        let current = self.report.as_ref();
        current.is_none_or(|current| current.run == report.run || report.covers(current))
    }
}

/// Changes the report of a run under a lock, and rewrites its JSON and JUnit files. `change` returns the
/// report, and whether the run is complete now. Returns the path of the JSON file, and the report of a
/// run that is complete now.
pub(super) fn update(
    provider: &str,
    change: impl FnOnce(&Stored) -> (Report, bool),
) -> Result<(PathBuf, Option<Report>), String> {
    let folder = directory();
    let name: String = provider
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    let describe =
        |error: io::Error| format!("cannot write the report in {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(describe)?;
    let lock = fs::File::create(folder.join(format!("{name}.lock"))).map_err(describe)?;
    lock.lock_exclusive().map_err(describe)?;
    let partial = format!("{name}.partial");
    let stored = Stored {
        report: read(&folder, &name),
        partial: read(&folder, &partial),
    };
    let (report, completed) = change(&stored);
    let replaces = stored.is_replaced_by(&report);
    let stem = if replaces { &name } else { &partial };
    let json = folder.join(format!("{stem}.json"));
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    replace(&json, &text).map_err(describe)?;
    let xml = folder.join(format!("{stem}.xml"));
    replace(&xml, &junit::document(&report)?).map_err(describe)?;
    if replaces {
        // They are of this run or of an earlier one. Usually there are none.
        let _ = fs::remove_file(folder.join(format!("{partial}.json")));
        let _ = fs::remove_file(folder.join(format!("{partial}.xml")));
    }
    Ok((json, completed.then_some(report)))
}

/// Reads a report. One that cannot be read or is of another version of the contract does not count.
fn read(folder: &Path, stem: &str) -> Option<Report> {
    let text = fs::read_to_string(folder.join(format!("{stem}.json"))).ok()?;
    let report: Report = serde_json::from_str(&text).ok()?;
    (report.contract_version == CONTRACT_VERSION).then_some(report)
}

/// Replaces a file atomically: a reader sees the old content or the new one, never a part.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(&draft, path)
}
