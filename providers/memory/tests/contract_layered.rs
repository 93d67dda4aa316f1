//! The reference backend under the whole stack of layers, held to the same contract: what repeats,
//! limits, combines and moves calls keeps what the backend promises.

use std::time::Duration;

use fleetwright::{
    Market,
    layer::{Alternative, FallbackPolicy, Stack},
};
use fleetwright_contract_tests::{WrappedHarness, contract_tests};
use fleetwright_contract_zoo::MemoryHarness;

fn layered() -> WrappedHarness<MemoryHarness> {
    let alternatives = [
        Alternative::new("as asked"),
        Alternative::new("spot").market(Market::Spot),
    ];
    // Clauses take capacity away and give it back at once, and expect to see that.
    let fallback = FallbackPolicy::new(alternatives).remember_for(Duration::ZERO);
    let stack = Stack::default().fallback(fallback);
    WrappedHarness::new("memory-layered", MemoryHarness::new(), move |inner| {
        stack.clone().wrap(inner)
    })
}

contract_tests!(layered);
