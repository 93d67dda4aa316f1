//! The contract tests of the reference backend. The harness is in the zoo of the kit, whose backends
//! are variants of this one.

use fleetwright_contract_tests::contract_tests;
use fleetwright_contract_zoo::MemoryHarness;

contract_tests!(MemoryHarness::new);
