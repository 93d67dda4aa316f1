//! All reports on one HTML page: a table of clauses by providers, each cell with its reason.
//!
//! Owns the page, which needs no other file. Every text of a report is escaped, because reasons
//! contain what backends returned.

use std::fmt::Write as _;

use super::Report;
use crate::{CLAUSES, CONTRACT_VERSION};

/// Returns a self-contained HTML page with one column for each report and one row for each clause. Below
/// the table are the reasons of all entries that have one, linked from their cells.
///
/// ```
/// use fleetwright_contract_tests::{CONTRACT, report::{Report, matrix}};
///
/// let report = Report::new(&CONTRACT, "my-backend", "virtual", "run-1");
/// let page = matrix(&[report]);
/// assert!(page.contains("my-backend") && page.contains("LAUNCH-01"));
/// ```
pub fn matrix(reports: &[Report]) -> String {
    let mut page = String::from(HEAD);
    let _ = write!(
        page,
        "<h1>fleetwright contract {CONTRACT_VERSION}</h1>\n<table>\n<tr><th>clause<th>a backend must"
    );
    for report in reports {
        let _ = write!(
            page,
            "<th>{}<br><small>{}</small>",
            escape(&report.name),
            escape(&report.summary())
        );
    }
    page.push('\n');
    for clause in CLAUSES {
        let _ = write!(
            page,
            "<tr id=\"{0}\"><td>{0}<td>{1}",
            clause.id,
            escape(clause.promise)
        );
        for report in reports {
            page.push_str(&cell(report, clause.id));
        }
        page.push('\n');
    }
    page.push_str("</table>\n<h2>Reasons</h2>\n<dl>\n");
    for report in reports {
        for entry in report.clauses.iter().filter(|entry| entry.reason.is_some()) {
            let reason = escape(entry.reason.as_deref().unwrap_or_default());
            let anchor = anchor(&report.name, &entry.id);
            let _ = writeln!(
                page,
                "<dt id=\"{anchor}\">{} {}<dd><pre>{reason}</pre>",
                escape(&report.name),
                entry.id
            );
        }
    }
    page.push_str("</dl>\n");
    page
}

/// Returns the cell of a clause. A report of an older version of the contract may lack the clause.
fn cell(report: &Report, id: &str) -> String {
    let Some(entry) = report.clauses.iter().find(|entry| entry.id == id) else {
        return "<td class=not_run>not in this run".to_owned();
    };
    let word = entry.status.word();
    let class = word.replace(' ', "_");
    match entry.reason {
        Some(_) => format!(
            "<td class={class}><a href=\"#{}\">{word}</a>",
            anchor(&report.name, id)
        ),
        None => format!("<td class={class}>{word}"),
    }
}

/// Returns the anchor of a reason.
fn anchor(provider: &str, id: &str) -> String {
    let plain: String = provider
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    format!("{plain}-{id}")
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html>
<html lang=en>
<meta charset=utf-8>
<title>fleetwright contract</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; }
td, th { border: 1px solid #ccc; padding: .2em .6em; text-align: left; vertical-align: top; }
.pass { background: #e3f4e3; } .refused, .not_claimed, .not_applicable { background: #eef4e3; } .fail, .kit_error { background: #f7d9d9; }
.waived { background: #fbf0d0; } .not_run { background: #eee; }
pre { white-space: pre-wrap; margin: 0 0 1em; }
</style>
";
