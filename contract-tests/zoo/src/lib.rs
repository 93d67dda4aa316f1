//! Broken backends that the contract kit must reject, and unusual ones that it must accept.
//!
//! This crate proves the kit and owns two things: the [`mutants`], each broken in one way, and the
//! [`benign`] backends, which are unusual and correct. Both are variants of the memory cloud, whose
//! harness is [`MemoryHarness`]. It is a crate of its own so that the tests of a backend do not compile
//! any of them. It must never be a dependency of a backend's library.
//!
//! The author of a backend can use it to see how a clause fails:
//!
//! ```
//! use fleetwright_contract_tests::{CONTRACT, Status, clause, run_clause};
//! use fleetwright_contract_zoo::mutants;
//!
//! let mutants = mutants::all();
//! let mutant = mutants.iter().find(|mutant| mutant.name == "token ignored").unwrap();
//! let clause = clause(mutant.violates).unwrap();
//! let verdict = run_clause(clause, &(mutant.make)());
//! assert_eq!(verdict.status, Status::Fail);
//! println!("{}", CONTRACT.message(&verdict));
//! ```

pub mod benign;
pub mod mutants;
mod overrides;

pub use overrides::{CallContext, OverriddenProvisioner, Override, OverrideHarness};

pub use fleetwright_contract_tests::Factory;
pub use fleetwright_memory_harness::MemoryHarness;
