//! Broken stores that the store contract must reject, and an unusual one that it must accept.
//!
//! This crate proves `fleetwright-store-contract`. It owns the [`mutants`], each the memory store
//! with one call overridden so that it violates the clause that it names, and [`SkippedRevisions`],
//! which is unusual and correct. It is a crate of its own so that the tests of a store do not
//! compile any of them. It must never be a dependency of a store's library.
//!
//! The author of a store can use it to see how a clause fails:
//!
//! ```
//! use fleetwright_store_contract::{CONTRACT, Status, clause, run_clause};
//! use fleetwright_store_zoo::mutants;
//!
//! let mutants = mutants::all();
//! let mutant = mutants.iter().find(|mutant| mutant.violates == "TXN-01").unwrap();
//! let verdict = run_clause(clause(mutant.violates).unwrap(), &(mutant.make)(), None);
//! assert_eq!(verdict.status, Status::Fail);
//! println!("{}", CONTRACT.message(&verdict));
//! ```

pub mod mutants;
pub(crate) mod overrides;
mod skipped_revisions;

pub use overrides::{CallContext, OverriddenStore, Override, OverrideHarness};
pub use skipped_revisions::SkippedRevisions;
