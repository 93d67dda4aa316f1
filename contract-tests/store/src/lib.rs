//! The contract that every [`Store`](fleetwright_store::Store) passes, as tests.
//!
//! The author of a store implements [`Harness`] and writes one line, [`store_contract_tests!`];
//! `cargo test` then runs one named test for each clause. `docs/store-contract.md` has the text of
//! the contract: the same clauses with the reason for each.
//!
//! This crate owns the clauses, the harness that they run on, the model that random histories are
//! compared with, and the process that is started and killed while it writes. It is a crate of its
//! own so that no production code carries a test kit: a store has it as a dev-dependency, and
//! `fleetwright-store` does not know it. It must never depend on a particular store except for the
//! memory store, which is part of `fleetwright-store`.
//!
//! The contract is itself tested: `fleetwright-store-zoo` has at least one broken store for every
//! clause, and each of them must fail its clause.
//!
//! # Example
//!
//! A harness is one set of records; every handle that it opens sees the same records. This is the
//! whole of `tests/contract.rs` for a store that does not outlive its process:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use fleetwright_store::{MemoryStore, Result, Schema, Store};
//! use fleetwright_store_contract::Harness;
//!
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
//! fleetwright_store_contract::store_contract_tests!(MyHarness::default);
//! ```
//!
//! A durable store also says where its records are ([`Harness::location`]) and how another process
//! opens them, with a second argument: `store_contract_tests!(MyHarness::new, MyHarness::at)`.
//! CRASH-01 then starts the test program again, lets it write, and kills it a hundred times.

mod clauses;
mod context;
pub mod crash;
mod harness;
mod list;
mod model;
mod suite;

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

/// The test of a clause. An asynchronous one is given one fresh store; a synchronous one opens its
/// stores itself.
pub type Body = fleetwright_clause_engine::Body<Context, Environment>;

/// The version of the contract. A new clause raises the minor version; a changed or removed promise
/// raises the major one.
pub const CONTRACT_VERSION: &str = "1.0";

/// The contract of every store: the clauses, and the document that explains them.
pub static CONTRACT: Contract<Context, Environment> = Contract {
    subject: "store",
    document: "docs/store-contract.md",
    version: CONTRACT_VERSION,
    clauses: CLAUSES,
};
