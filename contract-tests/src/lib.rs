//! The contract that every fleetwright backend passes, as tests.
//!
//! A backend's author implements [`Harness`] and writes one line; `cargo test` then runs a named test
//! for each clause. See `docs/contract.md` for the text of the contract and
//! `docs/adding-a-provider.md` for a walk through it.
//!
//! The kit is itself proven: the crate `fleetwright-contract-zoo` has a broken backend for every
//! clause, which fails that clause, and unusual but correct backends that pass all of them.

mod clause;
mod clauses;
mod cx;
mod dropped;
pub mod guard;
mod harness;
mod history;
mod life;
mod list;
pub mod live;
mod model;
mod recorder;
pub mod report;
mod seed;
mod steady;
mod suite;
pub mod sweep;
mod traps;
pub mod waiver;
mod wrapped;

pub use clause::{Arm, Body, Clause, Factory, Outcome, Stop, require};
pub use cx::{Cx, OWNER_TAG, OWNER_VALUE, SCOPE_TAG};
pub use harness::{
    CoreWaiter, Faults, Harness, Missing, Oracle, Outsider, Time, Truth, Waiter, WireFault, WireOp,
};
pub use list::CLAUSES;
pub use seed::seed_from_env;
pub use suite::{
    Found, Status, Verdict, clause, keep_regressions_in, run_and_report, run_clause,
    run_provisioner_contract_tests, test_clause, test_family,
};
pub use traps::traps_are_accounted_for;
pub use wrapped::Wrapped;

/// The version of the contract. Clauses are added with a minor version; a promise is changed or
/// taken away with a major one.
pub const CONTRACT_VERSION: &str = "1.0";
