//! The contract tests of the reference backend with knobs that are far from their defaults: reads lag, pages and
//! batches are small, batches are launched in parts, and nothing is kept of what is terminated. Then again, with
//! records that are deleted before their tokens are forgotten.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright::BatchLaunch;
use fleetwright_contract_tests::{WrappedHarness, contract_tests};
use fleetwright_memory_harness::MemoryHarness;

const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

fn turned() -> WrappedHarness<MemoryHarness> {
    let harness = MemoryHarness::with(|cloud| {
        cloud
            .read_lag(Duration::from_secs(5))
            .page_size(TWO)
            .batch_size(TWO)
            .batch_launch(BatchLaunch::Partial)
            .terminated_visible(Duration::ZERO)
            .token_after_terminate(Duration::ZERO)
            .public_addresses_on_request()
    });
    WrappedHarness::new("memory-knobs", harness, |inner| inner)
}

contract_tests!(turned);

mod short_records {
    use super::*;

    fn turned() -> WrappedHarness<MemoryHarness> {
        let harness = MemoryHarness::with(|cloud| {
            cloud
                .terminated_visible(Duration::from_secs(60))
                .token_after_terminate(Duration::from_secs(600))
        });
        WrappedHarness::new("memory-short-records", harness, |inner| inner)
    }

    contract_tests!(turned);
}
