//! The contract that every store passes, as tests. A feature, `contract`, for dev-dependencies.
//!
//! The author of a store implements [`Harness`] and writes one line; `cargo test` then runs a named test for
//! each clause. `docs/store-contract.md` has the text of the contract.
//!
//! ```
//! use std::sync::Arc;
//! use async_trait::async_trait;
//! use fleetwright_store::{MemoryStore, Result, Schema, Store, contract::Harness};
//!
//! /// One set of records; every handle that is opened sees the same.
//! #[derive(Default)]
//! struct MyHarness(tokio::sync::OnceCell<MemoryStore>);
//!
//! #[async_trait]
//! impl Harness for MyHarness {
//!     fn name(&self) -> String {
//!         "my store".to_owned()
//!     }
//!     async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
//!         let store = self.0.get_or_init(|| async { MemoryStore::new(schema) }).await;
//!         Ok(Arc::new(store.clone()))
//!     }
//! }
//!
//! // In `tests/contract.rs`; a durable store adds how another process finds the records:
//! // `store_contract_tests!(MyHarness::new, MyHarness::at)`.
//! fleetwright_store::store_contract_tests!(MyHarness::default);
//! ```
//!
//! The suite is itself proven: [`zoo`] has a broken store for every clause, and each dies of its clause.

mod clause;
mod clauses;
pub mod crash;
mod cx;
mod harness;
mod list;
mod model;
mod report;
mod suite;
pub mod zoo;

pub use clause::{Arm, Body, Clause, Outcome, Stop, require};
pub use cx::{Cx, schema};
pub use harness::{Factory, Harness, MemoryHarness};
pub use list::CLAUSES;
pub use report::{Report, Verdict};
pub use suite::{clause, run_clause, run_store_contract_tests, test_clause};

/// The version of the contract. Clauses are added with a minor version; a promise is changed or taken away
/// with a major one.
pub const CONTRACT_VERSION: &str = "1.0";
