//! The reference backend, held to the contract. The harness is the kit's own, because its zoo stands
//! on this backend too.

use fleetwright_contract_tests::contract_tests;
use fleetwright_contract_zoo::MemoryHarness;

contract_tests!(MemoryHarness::new);
