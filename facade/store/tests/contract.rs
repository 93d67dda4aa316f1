//! The store contract on the memory store.

use fleetwright_store_contract::MemoryHarness;

fleetwright_store_contract::store_contract_tests!(MemoryHarness::new);
