//! The comparison of a contract's registry, which is its list of clauses, with the documents that
//! people read.
//!
//! Owns the rules that a document must keep so that it states the same promises as the tests. Each function returns the
//! problems that it finds, one line each, so that a test can show all of them:
//!
//! ```
//! # use fleetwright_clause_engine::{Body, Clause, Contract, Pass, document};
//! # static CLAUSES: &[Clause<(), ()>] = &[Clause {
//! #     id: "ADD-01",
//! #     name: "add_01_adds",
//! #     promise: "return the sum of two numbers",
//! #     needs: "",
//! #     body: Body::Sync(|()| Ok(Pass::Held)),
//! # }];
//! # let contract = Contract { subject: "adder", document: "docs/adders.md", version: "1.0", clauses: CLAUSES };
//! let text = "The text is version 1.0; it has one clause.\n\
//!             | ADD-01 | return the sum of two numbers | Sums are useful. |\n";
//! assert_eq!(document::compare_text(&contract, text), [""; 0]);
//! assert_eq!(document::check_names(&contract), [""; 0]);
//! assert_eq!(document::check_citations(&contract, "/// Adds (ADD-01)."), [""; 0]);
//! ```

use std::collections::BTreeSet;

use crate::{Clause, Contract};

/// Compares the tables of the document with the registry.
///
/// A row is `| id | promise | reason |`, or `| id | promise | reason | needs |` for a clause with
/// needs. The rows must be the clauses in their order and in the same words, each reason must be a
/// sentence, and the document must contain `The text is version <version>;`.
///
/// ```
/// # use fleetwright_clause_engine::{Contract, document::compare_text};
/// # let contract: Contract<(), ()> = Contract { subject: "adder", document: "docs/adders.md", version: "1.0", clauses: &[] };
/// let text = "The text is version 0.9; it has no clause.";
/// assert_eq!(compare_text(&contract, text), [r#"the document does not say "The text is version 1.0;""#]);
/// ```
pub fn compare_text<C, E>(contract: &Contract<C, E>, text: &str) -> Vec<String> {
    let rows: Vec<_> = text.lines().filter_map(row).collect();
    let mut problems = Vec::new();
    for (cells, clause) in rows.iter().zip(contract.clauses) {
        problems.extend(compare_row(cells, clause));
    }
    if rows.len() != contract.clauses.len() {
        problems.push(format!(
            "the document has {} clauses, the registry {}",
            rows.len(),
            contract.clauses.len()
        ));
    }
    let version = format!("The text is version {};", contract.version);
    if !text.contains(&version) {
        problems.push(format!("the document does not say {version:?}"));
    }
    problems
}

/// Checks that ids are unique and that the name of each test begins with its id.
///
/// ```
/// # use fleetwright_clause_engine::{Body, Clause, Contract, Pass, document::check_names};
/// static CLAUSES: &[Clause<(), ()>] = &[Clause {
///     id: "ADD-01",
///     name: "adds",
///     promise: "return the sum of two numbers",
///     needs: "",
///     body: Body::Sync(|()| Ok(Pass::Held)),
/// }];
/// # let contract = Contract { subject: "adder", document: "docs/adders.md", version: "1.0", clauses: CLAUSES };
/// assert_eq!(check_names(&contract), ["adds must have a name that begins with add_01_"]);
/// ```
pub fn check_names<C, E>(contract: &Contract<C, E>) -> Vec<String> {
    let mut ids = BTreeSet::new();
    let mut problems = Vec::new();
    for clause in contract.clauses {
        if !ids.insert(clause.id) {
            problems.push(format!("{} is the id of two clauses", clause.id));
        }
        let prefix = clause.id.to_lowercase().replace('-', "_");
        if !clause.name.starts_with(&format!("{prefix}_")) {
            problems.push(format!(
                "{} must have a name that begins with {prefix}_",
                clause.name
            ));
        }
    }
    problems
}

/// Checks the ids that the documentation in `source` cites: every one must be a clause, and every
/// family must be cited at least once.
///
/// ```
/// # use fleetwright_clause_engine::{Contract, document::check_citations};
/// # let contract: Contract<(), ()> = Contract { subject: "adder", document: "docs/adders.md", version: "1.0", clauses: &[] };
/// assert_eq!(check_citations(&contract, "/// Adds (ADD-07)."), ["ADD-07 is cited and is no clause"]);
/// ```
pub fn check_citations<C, E>(contract: &Contract<C, E>, source: &str) -> Vec<String> {
    let words = source.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'));
    let cited: BTreeSet<_> = words
        .filter(|word| word.contains('-') && word.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    let unknown = cited.iter().filter(|id| contract.clause(id).is_none());
    let mut problems: Vec<_> = unknown
        .map(|id| format!("{id} is cited and is no clause"))
        .collect();
    let families: BTreeSet<_> = contract.clauses.iter().map(Clause::family).collect();
    let uncited = families
        .iter()
        .filter(|family| !cited.iter().any(|id| family_of(id) == **family));
    problems.extend(uncited.map(|family| format!("no clause of {family} is cited")));
    problems
}

fn family_of(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// Returns the cells of a line that is the row of a clause, and `None` for any other line.
fn row(line: &str) -> Option<Vec<&str>> {
    let cells: Vec<_> = line
        .strip_prefix("| ")?
        .strip_suffix(" |")?
        .split(" | ")
        .collect();
    let (family, number) = cells.first()?.split_once('-')?;
    let is_clause = !family.is_empty() && number.len() == 2 && number.parse::<u8>().is_ok();
    is_clause.then_some(cells)
}

fn compare_row<C, E>(cells: &[&str], clause: &Clause<C, E>) -> Vec<String> {
    let Clause {
        id, promise, needs, ..
    } = clause;
    let (reason, same) = match cells {
        [a, b, reason] => (*reason, (a, b) == (id, promise) && needs.is_empty()),
        [a, b, reason, c] => (*reason, (a, b, c) == (id, promise, needs)),
        _ => ("", false),
    };
    let mut problems = Vec::new();
    if !same {
        problems.push(format!(
            "the document says {cells:?}, the registry {id} {promise:?} {needs:?}"
        ));
    }
    if reason.len() <= 10 || !reason.ends_with('.') {
        problems.push(format!("{id} has no sentence as its reason: {reason:?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Pass};

    const fn clause(id: &'static str, name: &'static str, needs: &'static str) -> Clause<(), ()> {
        Clause {
            id,
            name,
            promise: "add",
            needs,
            body: Body::Sync(|()| Ok(Pass::Held)),
        }
    }

    fn contract(clauses: &'static [Clause<(), ()>]) -> Contract<(), ()> {
        Contract {
            subject: "adder",
            document: "docs/adders.md",
            version: "1.0",
            clauses,
        }
    }

    static GOOD: &[Clause<(), ()>] = &[
        clause("ADD-01", "add_01_a", "nothing"),
        clause("SUB-01", "sub_01_b", "nothing"),
    ];

    #[test]
    fn every_difference_of_the_text_is_named() {
        let good = "The text is version 1.0; good.\n\
                    | ADD-01 | add | Because of sums. | nothing |\n\
                    | SUB-01 | add | Because of sums. | nothing |\n";
        let problems = |text: &str| compare_text(&contract(GOOD), text).len();
        assert_eq!(problems(good), 0);
        assert_eq!(problems(&good.replace("1.0;", "1.1;")), 1);
        assert_eq!(problems(&good.replacen("| add |", "| sum |", 1)), 1);
        assert_eq!(problems(&good.replacen("| nothing |", "| much |", 1)), 1);
        assert_eq!(problems(&good.replacen(" | nothing |", " |", 1)), 1);
        assert_eq!(problems(&good.replacen("Because of sums.", "So.", 1)), 1);
        assert_eq!(problems(&good.replacen("sums.", "sums", 1)), 1);
        assert_eq!(problems(&good.replace("| SUB-01", "| SUB-1")), 1);
        assert_eq!(
            problems(
                &good
                    .replace("ADD", "X")
                    .replace("SUB", "ADD")
                    .replace("X-", "SUB-")
            ),
            2
        );
    }

    #[test]
    fn bad_names_and_ids_are_named() {
        static BAD: &[Clause<(), ()>] = &[
            clause("ADD-01", "add_01_a", ""),
            clause("ADD-01", "add_02_b", ""),
        ];
        assert_eq!(check_names(&contract(GOOD)), [""; 0]);
        assert_eq!(check_names(&contract(BAD)).len(), 2);
    }

    #[test]
    fn unknown_and_missing_citations_are_named() {
        let problems = |text: &str| check_citations(&contract(GOOD), text);
        assert_eq!(problems("ADD-01, SUB-01"), [""; 0]);
        assert_eq!(problems("ADD-01"), ["no clause of SUB is cited"]);
        assert_eq!(
            problems("ADD-01 SUB-01 ADD-09"),
            ["ADD-09 is cited and is no clause"]
        );
    }
}
