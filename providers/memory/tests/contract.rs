//! The contract tests of the reference backend.

use fleetwright_contract_tests::contract_tests;
use fleetwright_memory_harness::MemoryHarness;

contract_tests!(MemoryHarness::new);
