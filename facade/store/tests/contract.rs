//! The memory store is held to the contract of every store.

use fleetwright_store_contract::MemoryHarness;

fleetwright_store_contract::store_contract_tests!(MemoryHarness::new);
