//! A part of the contract under the whole stack of layers: what the layers do to tokens, lost
//! responses, batches and callers side by side. The memory cloud passes all of it under the layers, in
//! virtual time.

mod emulated;

use emulated::GcpHarness;
use fleetwright_contract_tests::{WrappedHarness, layered_contract_tests};
use fleetwright_gcp::fleetwright::layer::Stack;

fn layered() -> WrappedHarness<GcpHarness> {
    WrappedHarness::new(
        "gcp-layered",
        GcpHarness::new().wait_for_launch(),
        |inner| Stack::default().wrap(inner),
    )
}

layered_contract_tests!(layered);
