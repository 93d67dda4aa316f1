//! The table and the JSON document.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;

use crate::measure::Row;

/// Where and how a run was made.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// The processor, as the system names it.
    pub machine: String,
    /// How many threads run at once.
    pub threads: usize,
    /// The commit, if the program runs in a repository.
    pub commit: String,
    /// Whether this is the short run.
    pub quick: bool,
}

impl Circumstances {
    /// Reads them from the system.
    pub fn read(quick: bool) -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let name = name.and_then(|line| line.split(':').nth(1));
        let commit = std::process::Command::new("git")
            .args(["rev-parse", "--short", "HEAD"])
            .output();
        let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self {
            machine: name.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned()),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            commit: commit.unwrap_or_default(),
            quick,
        }
    }
}

/// Returns a table in Markdown for each operation. The first variant is what the others are compared with.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut first: BTreeMap<(&str, &str), &Row> = BTreeMap::new();
    for row in rows {
        let key = (row.group, row.operation.as_str());
        let is_first = !first.contains_key(&key);
        let base = *first.entry(key).or_insert(row);
        if is_first {
            let _ = writeln!(
                text,
                "\n{}: {}\n\n| | time | spread | ratio | allocations |\n| --- | ---: | ---: | ---: | ---: |",
                row.group, row.operation
            );
        }
        let (low, high) = row.spread_ns;
        let _ = writeln!(
            text,
            "| {} | {} | {} to {} | {:.2} | {} |",
            row.variant,
            shown(row.median_ns),
            shown(low),
            shown(high),
            row.median_ns / base.median_ns,
            row.allocations
                .map_or_else(String::new, |count| count.to_string()),
        );
    }
    text
}

/// Shows a time in its unit.
fn shown(nanoseconds: f64) -> String {
    match nanoseconds {
        time if time < 1e3 => format!("{time:.0} ns"),
        time if time < 1e6 => format!("{:.2} µs", time / 1e3),
        time if time < 1e9 => format!("{:.2} ms", time / 1e6),
        time => format!("{:.2} s", time / 1e9),
    }
}
