//! A part of the contract under the whole stack of layers: what the layers do to tokens, lost
//! replies, batches and callers side by side. The rest of the clauses is about the backend alone, and
//! in real time the layers would only make it wait; the memory cloud passes all of them under the
//! layers in virtual time.

mod emulated;

use emulated::GcpHarness;
use fleetwright_contract_tests::{CLAUSES, Wrapped, test_clause};
use fleetwright_gcp::fleetwright::layer::Stack;

fn layered() -> Wrapped<GcpHarness> {
    Wrapped::new("gcp-layered", GcpHarness::new().patient(), |inner| {
        Stack::default().over(inner)
    })
}

/// Runs the clauses of a family, but for `left_out`.
fn family(name: &str, left_out: &[&str]) {
    let of_it = CLAUSES.iter().filter(|clause| clause.id.starts_with(name));
    let mut run = 0;
    for clause in of_it.filter(|clause| !left_out.contains(&clause.id)) {
        test_clause(clause.id, layered);
        run += 1;
    }
    assert!(run > 0, "no clause is called {name}");
}

#[test]
fn launches() {
    family("LAUNCH-", &[]);
}

#[test]
fn tokens() {
    family("TOKEN-", &[]);
}

#[test]
fn lists() {
    family("LIST-", &[]);
}

#[test]
fn batches() {
    family("BATCH-", &[]);
}

#[test]
fn callers_side_by_side() {
    family("CONCURRENCY-", &[]);
}

#[test]
fn lost_replies_and_lost_processes() {
    // The sweeps and the model take minutes in real time.
    family("CRASH-", &["CRASH-03", "CRASH-04", "CRASH-06"]);
}
