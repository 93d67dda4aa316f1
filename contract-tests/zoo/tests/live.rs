//! The runner for real clouds, run against the memory cloud: an example of a backend's `tests/live.rs`.

use std::{process::ExitCode, time::Duration};

use fleetwright_contract_tests::{cost_guard::CostLimits, live};
use fleetwright_contract_zoo::MemoryHarness;

fn main() -> ExitCode {
    // The memory cloud costs nothing.
    let allowance = CostLimits {
        max_live: 2_000,
        max_time: Duration::from_secs(3600),
    };
    live::main_with_limits(|| Ok(MemoryHarness::new()), allowance)
}
