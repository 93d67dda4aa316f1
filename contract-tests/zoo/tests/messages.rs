//! The messages of failing clauses, compared with kept texts.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::Path};

use fleetwright_contract_tests::{CONTRACT, clause, run_clause};
use fleetwright_contract_zoo::mutants;

/// Returns the message of the clause that the named mutant fails, with the parts that change masked.
fn message_of(name: &str) -> String {
    let mutant = *mutants::all()
        .iter()
        .find(|mutant| mutant.name == name)
        .unwrap();
    let clause = clause(mutant.violates).unwrap();
    let message = CONTRACT.message(&run_clause(clause, &(mutant.make)()));
    masked(&message)
}

/// Masks scopes and tokens, which differ in every run: 32 or 36 hexadecimal digits and hyphens.
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

/// Compares the message about a mutant with the kept text. After a deliberate change of a message,
/// rewrite the texts with `FLEETWRIGHT_UPDATE_MESSAGES=1` and read them.
fn assert_matches_kept_message(name: &str) {
    let file = format!("{}.txt", name.replace(' ', "-"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/messages")
        .join(file);
    let message = message_of(name);
    if std::env::var_os("FLEETWRIGHT_UPDATE_MESSAGES").is_some() {
        fs::write(&path, &message).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(message, kept, "\n\nread:\n{message}\n\nkept:\n{kept}");
}

#[test]
fn repeated_launch_is_reported_with_its_calls() {
    assert_matches_kept_message("token ignored");
}

#[test]
fn unexpected_success_is_reported() {
    assert_matches_kept_message("unknown id describes as empty");
}

#[test]
fn panic_is_reported() {
    assert_matches_kept_message("malformed body panics");
}

#[test]
fn leak_is_reported_by_name() {
    assert_matches_kept_message("disk left behind");
}

#[test]
fn model_sequence_is_reported_step_by_step() {
    let mutants = mutants::all();
    let of_the_model = mutants
        .iter()
        .find(|mutant| mutant.violates == "CRASH-06")
        .unwrap();
    assert_matches_kept_message(of_the_model.name);
}
