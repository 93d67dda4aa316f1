//! The document, the registry and the trait's documentation are about the same clauses.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::Path};

use fleetwright_contract_tests::{CONTRACT, document};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn document_matches_the_registry() {
    let problems = document::compare_text(&CONTRACT, &read(CONTRACT.document));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn ids_are_unique_and_names_start_with_them() {
    let problems = document::check_names(&CONTRACT);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(CONTRACT.clauses.len() >= 80);
}

#[test]
fn trait_cites_existing_clauses_and_every_family() {
    let problems = document::check_citations(&CONTRACT, &read("src/provisioner.rs"));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Every Rust file below a folder, joined, with comment markers removed and white space collapsed.
fn read_comments(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &read_comments(&path);
        } else {
            let lines = fs::read_to_string(path).unwrap();
            let lines = lines.lines().filter_map(|line| line.strip_prefix("///"));
            text += &lines
                .flat_map(str::split_whitespace)
                .collect::<Vec<_>>()
                .join(" ");
        }
        text.push(' ');
    }
    text
}

#[test]
fn every_body_states_its_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/clauses");
    let comments = read_comments(&folder);
    for clause in CONTRACT.clauses {
        let promise = format!("{}: a backend must {}.", clause.id, clause.promise);
        assert!(comments.contains(&promise), "no body says {promise:?}");
    }
}
