//! The traps of a cloud: pitfalls that a backend's README lists and its tests cover.
//!
//! Owns the comparison of the two, for backends that keep such a list: rows
//! `| 7 | what the cloud does | tested |` in the README, and functions `trap_07_…` in `tests/traps`.

use std::{collections::BTreeSet, fs, path::Path};

/// Checks that the README in the folder `manifest` lists every trap from 1 to `last` once, and says
/// `tested` exactly for the traps that have a test with their number: the body of a `#[test]`.
///
/// ```no_run
/// fleetwright_contract_tests::check_traps(env!("CARGO_MANIFEST_DIR"), 42);
/// ```
///
/// # Panics
/// If the two differ, or cannot be read.
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn check_traps(manifest: &str, last: u32) {
    let root = Path::new(manifest);
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    let problems = differences(&readme, &tested_traps(&root.join("tests/traps")), last);
    if !problems.is_empty() {
        panic!("{}", problems.join("\n"));
    }
}

/// Returns the numbers of the traps that are tested in a folder.
fn tested_traps(folder: &Path) -> BTreeSet<u32> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let number = |rest: &str| rest.get(..2)?.parse().ok();
    texts
        .flat_map(|text| {
            text.split("fn trap_")
                .skip(1)
                .filter_map(number)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn differences(readme: &str, tested: &BTreeSet<u32>, last: u32) -> Vec<String> {
    let rows = readme.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((number.parse::<u32>().ok()?, rest))
    });
    let (mut listed, mut problems) = (BTreeSet::new(), Vec::new());
    for (number, rest) in rows {
        if !listed.insert(number) {
            problems.push(format!("trap {number} is listed twice"));
        }
        let says_tested = rest.ends_with("| tested |");
        if says_tested != tested.contains(&number) {
            problems.push(format!(
                "trap {number} says {rest:?}, which does not match its tests"
            ));
        }
    }
    let all: BTreeSet<_> = (1..=last).collect();
    problems.extend(
        all.difference(&listed)
            .map(|number| format!("trap {number} is not listed")),
    );
    problems.extend(
        listed
            .difference(&all)
            .map(|number| format!("there is no trap {number}")),
    );
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named() {
        let readme =
            "| trap | what | |\n| --- | --- | --- |\n| 1 | a | tested |\n| 2 | b | not here |\n";
        assert_eq!(differences(readme, &[1].into(), 2), [""; 0]);
        assert_eq!(
            differences(readme, &[].into(), 2).len(),
            1,
            "1 says that it is tested"
        );
        assert_eq!(
            differences(readme, &[1, 2].into(), 2).len(),
            1,
            "2 is tested"
        );
        assert_eq!(
            differences(readme, &[1].into(), 3),
            ["trap 3 is not listed"]
        );
        assert_eq!(differences(readme, &[1].into(), 1), ["there is no trap 2"]);
        let twice = format!("{readme}| 2 | b | not here |\n");
        assert_eq!(
            differences(&twice, &[1].into(), 2),
            ["trap 2 is listed twice"]
        );
    }
}
