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

mod clauses;
mod context;
pub mod crash;
mod harness;
mod list;
mod model;
mod suite;
pub mod zoo;

use fleetwright_clause_engine::Contract;

pub use context::{Context, schema};
pub use fleetwright_clause_engine::{
    Failure, Outcome, Pass, Report, Status, Verdict, document, require,
};
pub use harness::{Environment, Factory, Harness, MemoryHarness};
pub use list::CLAUSES;
pub use suite::{clause, run_clause, run_store_contract_tests, test_clause};

/// One promise of the contract, with the test that holds a store to it.
pub type Clause = fleetwright_clause_engine::Clause<Context, Environment>;

/// The test of a clause: on one fresh store, or on stores that it opens itself.
pub type Body = fleetwright_clause_engine::Body<Context, Environment>;

/// The version of the contract. A new clause raises the minor version; a changed or removed promise raises the
/// major one.
pub const CONTRACT_VERSION: &str = "1.0";

/// The contract of every store: `docs/store-contract.md` and its clauses.
pub static CONTRACT: Contract<Context, Environment> = Contract {
    subject: "store",
    document: "docs/store-contract.md",
    version: CONTRACT_VERSION,
    clauses: CLAUSES,
};
