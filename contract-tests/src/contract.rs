//! The contract as the engine knows it.
//!
//! Owns the contract's version and the types that its clauses are generic over. The clauses
//! themselves are in the list.

use std::sync::Arc;

use fleetwright_clause_engine::Contract;

use crate::{CLAUSES, Context, Harness};

/// Creates a fresh account: a new harness for each clause.
pub type Factory = Arc<dyn Fn() -> Arc<dyn Harness> + Send + Sync>;

/// One promise of the contract, with the test that holds a backend to it.
pub type Clause = fleetwright_clause_engine::Clause<Context, Factory>;

/// The test of a clause: on one fresh account, or on accounts that it creates itself.
pub type Body = fleetwright_clause_engine::Body<Context, Factory>;

/// The version of the contract. A new clause raises the minor version; a changed or removed promise
/// raises the major one.
pub const CONTRACT_VERSION: &str = "1.7";

/// The contract of every backend: `docs/contract.md` and its clauses.
///
/// ```
/// use fleetwright_contract_tests::CONTRACT;
///
/// let clause = CONTRACT.clause("TOKEN-01").unwrap();
/// println!("a backend must {}", clause.promise);
/// assert!(CONTRACT.family("TOKEN-").count() > 1);
/// ```
pub static CONTRACT: Contract<Context, Factory> = Contract {
    subject: "backend",
    document: "docs/contract.md",
    version: CONTRACT_VERSION,
    clauses: CLAUSES,
};
