//! The document, the registry and the tests are about the same clauses.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::{collections::BTreeMap, fs, path::Path};

use fleetwright_contract_tests::{CLAUSES, CONTRACT_VERSION};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap()
}

/// The rows of the document's tables of clauses: id, promise, reason, needs.
fn rows(document: &str) -> Vec<[String; 4]> {
    let cells = |line: &str| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?.to_owned();
        let cells: Vec<_> = inner.split(" | ").map(str::to_owned).collect();
        <[String; 4]>::try_from(cells).ok()
    };
    let is_clause = |row: &[String; 4]| {
        let (family, number) = row[0].split_once('-').unwrap_or_default();
        !family.is_empty() && number.len() == 2 && number.parse::<u8>().is_ok()
    };
    document
        .lines()
        .filter_map(cells)
        .filter(is_clause)
        .collect()
}

#[test]
fn the_document_has_every_clause_in_order_and_in_the_same_words() {
    let document = read("docs/contract.md");
    let told: Vec<_> = rows(&document)
        .into_iter()
        .map(|[id, must, _, needs]| (id, must, needs))
        .collect();
    let registered: Vec<_> = CLAUSES
        .iter()
        .map(|c| (c.id.to_owned(), c.promise.to_owned(), c.needs.to_owned()))
        .collect();
    for (told, registered) in told.iter().zip(&registered) {
        assert_eq!(told, registered);
    }
    assert_eq!(told.len(), registered.len());
    assert!(document.contains(&format!("The text is version {CONTRACT_VERSION};")));
}

#[test]
fn every_clause_says_why() {
    for [id, _, why, _] in rows(&read("docs/contract.md")) {
        assert!(why.len() > 10 && why.ends_with('.'), "{id}: {why}");
    }
}

#[test]
fn ids_are_unique_and_names_begin_with_them() {
    let mut seen = BTreeMap::new();
    for clause in CLAUSES {
        assert_eq!(seen.insert(clause.id, clause.name), None, "{}", clause.id);
        let prefix = clause.id.to_lowercase().replace('-', "_");
        assert!(
            clause.name.starts_with(&format!("{prefix}_")),
            "{} {}",
            clause.id,
            clause.name
        );
    }
    assert!(CLAUSES.len() >= 80);
}

#[test]
fn every_clause_that_the_trait_cites_exists_and_every_family_is_cited() {
    let trait_docs = read("src/provisioner.rs");
    let cited: Vec<_> = trait_docs
        .split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
        .filter(|word| word.contains('-') && word.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    for id in &cited {
        assert!(
            CLAUSES.iter().any(|clause| clause.id == *id),
            "the trait cites {id}"
        );
    }
    for clause in CLAUSES {
        let family = clause.id.split('-').next().unwrap();
        assert!(
            cited.iter().any(|id| id.starts_with(family)),
            "the trait cites nothing of {family}"
        );
    }
}
