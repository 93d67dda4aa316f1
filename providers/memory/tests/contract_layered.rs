//! The contract tests of the reference backend under all layers: retries, limits, batching and
//! fallback keep the promises of the backend.

use std::time::Duration;

use fleetwright::{
    Market,
    layer::{Alternative, FallbackPolicy, Stack},
};
use fleetwright_contract_tests::{WrappedHarness, contract_tests};
use fleetwright_memory_harness::MemoryHarness;

fn layered() -> WrappedHarness<MemoryHarness> {
    let alternatives = [
        Alternative::new("as requested"),
        Alternative::new("spot").market(Market::Spot),
    ];
    // Clauses remove capacity, restore it, and expect launches to succeed at once.
    let fallback = FallbackPolicy::new(alternatives).remember_for(Duration::ZERO);
    let stack = Stack::default().fallback(fallback);
    // A shortage of one offering is no error here: the fallback launches the other one.
    let harness = MemoryHarness::new().without_shortage();
    WrappedHarness::new("memory-layered", harness, move |inner| {
        stack.clone().wrap(inner)
    })
}

contract_tests!(layered);
