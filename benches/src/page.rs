//! The results in `docs/benchmarks.md`.
//!
//! Each group has a part of the page between two comments. A run writes the parts of the groups that it measured, each with
//! its machine, day and commit, and keeps the rest of the page: other groups and everything that people wrote.

use std::fmt::Write as _;

use crate::{
    measure::Row,
    report::{Circumstances, operation_table, operations},
    svg::file_name,
};

/// Returns the page with the parts of the groups of `rows` replaced, or added at its end. `pictures` is the folder of the
/// pictures as the page names it.
pub fn update(page: &str, rows: &[Row], at: &Circumstances, pictures: Option<&str>) -> String {
    let mut page = page.to_owned();
    for rows in rows.chunk_by(|one, other| one.group == other.group) {
        let part = part(rows, at, pictures);
        let (begin, end) = marks(rows[0].group);
        let (from, to) = (page.find(&begin), page.find(&end));
        match (from, to) {
            (Some(from), Some(to)) if from < to => page.replace_range(from..to + end.len(), &part),
            _ => page = format!("{}\n\n{part}\n", page.trim_end()),
        }
    }
    page
}

/// Returns the comments around a group's part.
fn marks(group: &str) -> (String, String) {
    (format!("<!-- {group} -->"), format!("<!-- /{group} -->"))
}

/// Returns the part of one group.
fn part(rows: &[Row], at: &Circumstances, pictures: Option<&str>) -> String {
    let (begin, end) = marks(rows[0].group);
    let Circumstances {
        machine,
        threads,
        commit,
        date,
        quick,
    } = at;
    let short = if *quick { ", with `--quick`" } else { "" };
    let mut text = format!(
        "{begin}\nMeasured on {date} at commit `{commit}` with {threads} threads of {machine}{short}.\n"
    );
    for rows in operations(rows) {
        let _ = write!(
            text,
            "\n{}:\n\n{}",
            rows[0].operation,
            operation_table(rows)
        );
        if let Some(folder) = pictures {
            let _ = write!(
                text,
                "\n![{}]({folder}/{})\n",
                rows[0].operation,
                file_name(&rows[0])
            );
        }
    }
    text.push_str(&end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Circumstances {
        Circumstances {
            machine: "a processor".to_owned(),
            threads: 2,
            commit: "abc".to_owned(),
            date: "2026-11-18".to_owned(),
            quick: false,
        }
    }

    fn row(group: &'static str, median_ns: f64) -> Row {
        Row {
            group,
            operation: "describe".to_owned(),
            variant: "bare".to_owned(),
            median_ns,
            spread_ns: (median_ns, median_ns),
            ..Row::default()
        }
    }

    #[test]
    fn run_replaces_its_own_groups_and_nothing_else() {
        let first = update(
            "# Title\n\nText.\n",
            &[row("one", 5.0), row("two", 6.0)],
            &at(),
            None,
        );
        assert!(first.starts_with(
            "# Title\n\nText.\n\n<!-- one -->\nMeasured on 2026-11-18 at commit `abc`"
        ));
        let second = update(&first, &[row("one", 7.0)], &at(), Some("pictures"));
        assert!(
            second.contains("| bare | 7 ns | 7 ns to 7 ns | 1.00 |"),
            "{second}"
        );
        assert!(
            second.contains("![describe](pictures/one-describe.svg)"),
            "{second}"
        );
        assert!(
            !second.contains("5 ns") && second.contains("6 ns"),
            "{second}"
        );
        assert_eq!(second.matches("<!-- /one -->").count(), 1);
    }

    #[test]
    fn column_without_values_is_left_out() {
        let page = update("", &[row("one", 5.0)], &at(), None);
        assert!(
            page.contains("\n| | time | spread | ratio |\n| --- | ---: | ---: | ---: |\n"),
            "{page}"
        );
    }
}
