//! A part of the contract under the whole stack of layers: what the layers do to tokens, lost
//! replies, batches and callers side by side. The rest of the clauses is about the backend alone, and
//! in real time the layers would only make it wait; the memory cloud passes all of them under the
//! layers in virtual time.

mod emulated;

use emulated::GcpHarness;
use fleetwright_contract_tests::{Wrapped, test_family};
use fleetwright_gcp::fleetwright::layer::Stack;

fn layered() -> Wrapped<GcpHarness> {
    Wrapped::new("gcp-layered", GcpHarness::new().patient(), |inner| {
        Stack::default().over(inner)
    })
}

#[test]
fn launches() {
    test_family("LAUNCH-", &[], layered);
}

#[test]
fn tokens() {
    test_family("TOKEN-", &[], layered);
}

#[test]
fn lists() {
    test_family("LIST-", &[], layered);
}

#[test]
fn batches() {
    test_family("BATCH-", &[], layered);
}

#[test]
fn callers_side_by_side() {
    test_family("CONCURRENCY-", &[], layered);
}

#[test]
fn lost_replies_and_lost_processes() {
    // The sweeps and the model take minutes in real time.
    test_family("CRASH-", &["CRASH-03", "CRASH-04", "CRASH-06"], layered);
}
