//! Where reports are, and how several processes write one.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use fs4::fs_std::FileExt as _;

use super::{Report, junit};

/// The folder of all reports: `FLEETWRIGHT_CONTRACT_DIR` if that is set, else `contract` in cargo's
/// target folder.
pub fn directory() -> PathBuf {
    env::var_os("FLEETWRIGHT_CONTRACT_DIR").map_or_else(in_target, PathBuf::from)
}

/// Cargo's target folder: where it is told to be, else where this program lies. Tests lie in
/// `<target>/debug/deps`, programs in `<target>/debug`.
fn in_target() -> PathBuf {
    let told = env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let target = told.or_else(|| {
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

/// What tells this run from others: all processes of a nextest run share one, `cargo test` has one
/// process for all clauses of a test binary.
pub(super) fn run_key() -> String {
    let given = ["FLEETWRIGHT_CONTRACT_RUN", "NEXTEST_RUN_ID"];
    let found = given.iter().find_map(|name| env::var(name).ok());
    found.unwrap_or_else(|| format!("process-{}", std::process::id()))
}

/// Changes a provider's report under a lock, and writes its JSON and JUnit files anew.
pub(super) fn update(
    provider: &str,
    change: impl FnOnce(Option<Report>) -> Report,
) -> Result<PathBuf, String> {
    let folder = directory();
    let name: String = provider
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    let told = |error: io::Error| {
        format!(
            "the report in {} cannot be written: {error}",
            folder.display()
        )
    };
    fs::create_dir_all(&folder).map_err(told)?;
    let lock = fs::File::create(folder.join(format!("{name}.lock"))).map_err(told)?;
    lock.lock_exclusive().map_err(told)?;
    let json = folder.join(format!("{name}.json"));
    let before = fs::read_to_string(&json).ok();
    let report = change(before.and_then(|text| serde_json::from_str(&text).ok()));
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    replace(&json, &text).map_err(told)?;
    replace(
        &folder.join(format!("{name}.xml")),
        &junit::document(&report)?,
    )
    .map_err(told)?;
    Ok(json)
}

/// Writes a file so that a reader sees the old one or the new one, never a part.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(&draft, path)
}
