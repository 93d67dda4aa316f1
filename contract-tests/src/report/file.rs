//! Where report files are, and how several processes write one.
//!
//! Owns paths, the run key and the lock. It never interprets a report. A file is written under
//! another name and then renamed, so that a reader never sees half of it; the lock file stays,
//! since deleting it would let two processes hold different locks.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use fs4::fs_std::FileExt as _;

use super::{Report, junit};

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

/// Changes a provider's report under a lock, rewrites its JSON and JUnit files, and returns the path
/// of the JSON file.
pub(super) fn update(
    provider: &str,
    change: impl FnOnce(Option<Report>) -> Report,
) -> Result<PathBuf, String> {
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
    let json = folder.join(format!("{name}.json"));
    let before = fs::read_to_string(&json).ok();
    let report = change(before.and_then(|text| serde_json::from_str(&text).ok()));
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    replace(&json, &text).map_err(describe)?;
    replace(
        &folder.join(format!("{name}.xml")),
        &junit::document(&report)?,
    )
    .map_err(describe)?;
    Ok(json)
}

/// Replaces a file atomically: a reader sees the old content or the new one, never a part.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(&draft, path)
}
