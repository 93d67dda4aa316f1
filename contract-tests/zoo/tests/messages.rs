//! What the author of a backend reads when a clause fails: kept good by comparing all of it.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::Path};

use fleetwright_contract_tests::{CONTRACT, clause, run_clause};
use fleetwright_contract_zoo::mutants;

/// The message of the named mutant's death, with what differs from run to run masked.
fn death_of(name: &str) -> String {
    let mutant = *mutants::all()
        .iter()
        .find(|mutant| mutant.name == name)
        .unwrap();
    let clause = clause(mutant.violates).unwrap();
    let message = CONTRACT.message(&run_clause(clause, &(mutant.make)()));
    masked(&message)
}

/// Scopes and tokens differ from run to run: runs of 32 or 36 hexadecimal digits and hyphens.
fn masked(text: &str) -> String {
    let part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(part) {
        let length = rest[at..].find(|c| !part(c)).unwrap_or(rest.len() - at);
        out += &rest[..at];
        out += match length {
            32 => "SCOPE",
            36 => "TOKEN",
            _ => &rest[at..at + length],
        };
        rest = &rest[at + length..];
    }
    out + rest
}

/// Compares the death of a mutant with the text that is kept of it. Whoever changes a message on
/// purpose writes it anew with `FLEETWRIGHT_UPDATE_MESSAGES=1`, and reads it.
fn assert_reads_as_kept(name: &str) {
    let file = format!("{}.txt", name.replace(' ', "-"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/messages")
        .join(file);
    let message = death_of(name);
    if std::env::var_os("FLEETWRIGHT_UPDATE_MESSAGES").is_some() {
        fs::write(&path, &message).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(message, kept, "\n\nread:\n{message}\n\nkept:\n{kept}");
}

#[test]
fn a_replay_that_launches_again_is_told_with_its_sequence() {
    assert_reads_as_kept("token ignored");
}

#[test]
fn an_answer_where_an_error_was_promised_is_shown() {
    assert_reads_as_kept("unknown id describes as empty");
}

#[test]
fn a_panic_is_told_as_one() {
    assert_reads_as_kept("malformed body panics");
}

#[test]
fn a_leak_is_told_by_name() {
    assert_reads_as_kept("disk left behind");
}

#[test]
fn a_sequence_of_the_model_is_told_step_by_step() {
    let mutants = mutants::all();
    let of_the_model = mutants
        .iter()
        .find(|mutant| mutant.violates == "CRASH-06")
        .unwrap();
    assert_reads_as_kept(of_the_model.name);
}
