//! A part of the contract under the whole stack of layers: what the layers do to tokens, lost
//! responses, batches and callers side by side. The memory cloud passes all of it under the layers, in
//! virtual time.

mod emulated;

use emulated::Ec2Harness;
use fleetwright_contract_tests::{WrappedHarness, layered_contract_tests};
use fleetwright_ec2::fleetwright::layer::Stack;

fn layered() -> WrappedHarness<Ec2Harness> {
    WrappedHarness::new("ec2-layered", Ec2Harness::new(), |inner| {
        Stack::default().wrap(inner)
    })
}

layered_contract_tests!(layered);
