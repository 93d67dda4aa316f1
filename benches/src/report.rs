//! The table and the JSON document.

use std::fmt::Write as _;

use serde::Serialize;

use crate::measure::{Amount, Row};

/// Where and how a run was made.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// The processor, as the system names it.
    pub machine: String,
    /// How many threads run at once.
    pub threads: usize,
    /// The commit, if the program runs in a repository.
    pub commit: String,
    /// The day, as the system's calendar has it.
    pub date: String,
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
        Self {
            machine: name.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned()),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            commit: output("git", &["rev-parse", "--short", "HEAD"]),
            date: output("date", &["+%Y-%m-%d"]),
            quick,
        }
    }
}

/// Returns what a program prints; nothing if it cannot be run.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_default()
}

/// The rows of one operation.
pub fn operations(rows: &[Row]) -> Vec<&[Row]> {
    let same =
        |one: &Row, other: &Row| (one.group, &one.operation) == (other.group, &other.operation);
    rows.chunk_by(same).collect()
}

/// Returns a table in Markdown for each operation. The first variant is what the others are compared with.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for rows in operations(rows) {
        let (group, operation) = (rows[0].group, &rows[0].operation);
        let _ = writeln!(text, "\n{group}: {operation}\n\n{}", operation_table(rows));
    }
    text
}

/// Returns the table of one operation. A column that no row has is left out.
pub fn operation_table(rows: &[Row]) -> String {
    let timed = rows.iter().any(|row| row.median_ns > 0.0);
    let counted = rows.iter().any(|row| row.allocations.is_some());
    let mut further: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.details) {
        if !further.contains(name) {
            further.push(name);
        }
    }
    let mut headings = vec![""];
    if timed {
        headings.extend(["time", "spread", "ratio"]);
    }
    if counted {
        headings.push("allocations");
    }
    headings.extend(&further);
    let mut text = format!("|{} |\n| ---", headings.join(" | "));
    text.push_str(&" | ---:".repeat(headings.len() - 1));
    text.push_str(" |\n");
    for row in rows {
        let mut cells = vec![row.variant.clone()];
        if timed {
            cells.extend(times(row, rows[0].median_ns));
        }
        if counted {
            cells.push(
                row.allocations
                    .map_or_else(String::new, |count| count.to_string()),
            );
        }
        for name in &further {
            let amount = row.details.iter().find(|(one, _)| one == name);
            cells.push(amount.map_or_else(String::new, |(_, amount)| shown(*amount)));
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// Returns the time, the spread, and the ratio to the first variant's time.
fn times(row: &Row, base: f64) -> [String; 3] {
    if row.median_ns == 0.0 {
        return [const { String::new() }; 3];
    }
    let (low, high) = row.spread_ns;
    let ratio = if base > 0.0 {
        format!("{:.2}", row.median_ns / base)
    } else {
        String::new()
    };
    [
        shown_time(row.median_ns),
        format!("{} to {}", shown_time(low), shown_time(high)),
        ratio,
    ]
}

/// Shows an amount in its unit.
pub fn shown(amount: Amount) -> String {
    match amount {
        Amount::Count(count) if count.fract() == 0.0 => format!("{count:.0}"),
        Amount::Count(count) => format!("{count:.2}"),
        Amount::Nanoseconds(time) => shown_time(time),
        Amount::Bytes(bytes) => {
            let tenths = bytes * 10 / (1 << 20);
            format!("{}.{} MiB", tenths / 10, tenths % 10)
        }
    }
}

/// Shows a time in its unit.
pub fn shown_time(nanoseconds: f64) -> String {
    match nanoseconds {
        time if time < 1e3 => format!("{time:.0} ns"),
        time if time < 1e6 => format!("{:.2} µs", time / 1e3),
        time if time < 1e9 => format!("{:.2} ms", time / 1e6),
        time => format!("{:.2} s", time / 1e9),
    }
}
