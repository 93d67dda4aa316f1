//! The memory store is held to the contract of every store.

use fleetwright_store::contract::MemoryHarness;

fleetwright_store::store_contract_tests!(MemoryHarness::new);
