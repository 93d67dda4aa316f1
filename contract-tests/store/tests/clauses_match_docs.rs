//! The document, the registry and the documentation of the trait `Store` have the same clauses.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::Path};

use fleetwright_store_contract::{CONTRACT, document};

fn read(path: &str) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(crate_folder.join(path)).unwrap()
}

#[test]
fn document_matches_the_registry() {
    let text = read(&format!("../../{}", CONTRACT.document));
    let problems = document::compare_text(&CONTRACT, &text);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn ids_are_unique_and_names_start_with_them() {
    let problems = document::check_names(&CONTRACT);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn trait_cites_existing_clauses_and_every_family() {
    let problems = document::check_citations(&CONTRACT, &read("../../facade/store/src/store.rs"));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
