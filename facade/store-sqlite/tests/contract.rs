//! The store contract on the SQLite store.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod harness;

use harness::SqliteHarness;

fleetwright_store_contract::store_contract_tests!(SqliteHarness::new, SqliteHarness::at);
