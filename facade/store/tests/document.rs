//! The document, the registry and the trait's docs are about the same clauses.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{fs, path::Path};

use fleetwright_store::contract::{CLAUSES, CONTRACT_VERSION};

fn read(path: &str) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(crate_folder.join(path)).unwrap()
}

#[test]
fn the_document_has_every_clause_in_order_and_in_the_same_words() {
    let document = read("../../docs/store-contract.md");
    let rows = document.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches(['|', ' ']).split(" | ").collect();
        let id = cells[0]
            .split_once('-')
            .filter(|(_, number)| number.parse::<u8>().is_ok());
        id.map(|_| cells)
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), CLAUSES.len());
    for (row, clause) in rows.iter().zip(CLAUSES) {
        assert_eq!(row[..2], [clause.id, clause.promise]);
        assert!(
            row[2].len() > 10 && row[2].ends_with('.'),
            "{row:?} says no reason"
        );
    }
    assert!(document.contains(&format!("The text is version {CONTRACT_VERSION};")));
}

#[test]
fn names_begin_with_ids_which_are_unique() {
    let mut ids: Vec<_> = CLAUSES.iter().map(|clause| clause.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CLAUSES.len());
    for clause in CLAUSES {
        let prefix = clause.id.to_lowercase().replace('-', "_");
        assert!(clause.name.starts_with(&format!("{prefix}_")), "{clause:?}");
    }
}

#[test]
fn the_trait_cites_every_family_and_only_clauses_that_are_there() {
    let docs = read("src/store.rs");
    let words = docs.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'));
    let cited: Vec<_> = words.filter(|word| word.len() > 3).collect();
    for word in cited.iter().filter(|word| word.contains('-')) {
        assert!(
            CLAUSES.iter().any(|clause| clause.id == *word),
            "the trait cites {word}"
        );
    }
    for clause in CLAUSES {
        let family = clause.id.split('-').next().unwrap();
        assert!(docs.contains(family), "the trait cites nothing of {family}");
    }
}
