//! The contract of every fleetwright backend, as tests.
//!
//! The author of a backend implements [`Harness`] and writes one line,
//! [`contract_tests!`](contract_tests); `cargo test` then runs one named test for each clause.
//! `docs/contract.md` has the text of the contract, `docs/adding-a-provider.md` explains the steps.
//!
//! # Example
//!
//! The smallest harness has four methods. This one is for the memory cloud; yours opens handles on
//! your backend, and is in `tests/contract.rs`:
//!
//! ```
//! use std::sync::Arc;
//! use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
//! use fleetwright_contract_tests::{CONTRACT, Factory, Harness, Status, Time, run_clause};
//! use fleetwright_memory::MemoryCloud;
//!
//! struct MyHarness(MemoryCloud);
//!
//! impl MyHarness {
//!     fn new() -> Self {
//!         Self(MemoryCloud::new())
//!     }
//! }
//!
//! #[async_trait]
//! impl Harness for MyHarness {
//!     fn name(&self) -> String {
//!         "my-backend".to_owned()
//!     }
//!     async fn open(&self) -> Arc<dyn InstanceProvisioner> {
//!         Arc::new(self.0.provisioner())
//!     }
//!     fn config(&self) -> InstanceConfig {
//!         InstanceConfig::builder("image", "small").build().unwrap()
//!     }
//!     fn unknown_id(&self) -> InstanceId {
//!         "i-0000000000000000".parse().unwrap()
//!     }
//!     fn time(&self) -> Time {
//!         Time::Virtual
//!     }
//! }
//!
//! // One test for each clause:
//! fleetwright_contract_tests::contract_tests!(MyHarness::new);
//!
//! # fn main() {
//! // Or one clause by hand:
//! let factory: Factory = Arc::new(|| Arc::new(MyHarness::new()));
//! let verdict = run_clause(CONTRACT.clause("LAUNCH-01").unwrap(), &factory);
//! assert_eq!(verdict.status, Status::Pass, "{}", CONTRACT.message(&verdict));
//! # }
//! ```
//!
//! # What else is here
//!
//! | item | purpose |
//! | --- | --- |
//! | [`Oracle`], [`Faults`], [`ExternalActor`] | what a harness can offer so that more clauses run |
//! | [`FaultTable`], [`TruthOracle`], [`OtherHandle`] | ready-made ones for a backend without an emulator |
//! | [`NativeError`] | the errors that a cloud sends, each with its meaning |
//! | [`NotApplicable`] | what a cloud does not have |
//! | [`killed`] | processes that are killed, for a backend that persists |
//! | [`WrappedHarness`], [`layered_contract_tests!`](layered_contract_tests) | the same contract for a backend with layers around it |
//! | [`live`], [`cost_guard`], [`cleanup`] | runs against a real cloud, their limits, and removing what they left |
//! | [`waiver`] | known differences of an emulator that somebody else wrote |
//! | [`report`] | JSON, JUnit and HTML |
//!
//! The kit is itself proven: the crate `fleetwright-contract-zoo` has a broken backend for every
//! clause, which fails that clause, and unusual but correct backends that pass all of them.

mod captured_log;
mod clauses;
pub mod cleanup;
mod context;
mod contract;
pub mod cost_guard;
mod dropped;
mod fault_table;
mod harness;
mod history;
pub mod killed;
mod life;
mod list;
pub mod live;
mod model;
mod native_error;
mod not_applicable;
mod policy_tags;
mod poll_limit;
mod recorded_parts;
mod recorder;
pub mod report;
mod seed;
mod shown;
mod skeleton;
mod steady;
mod suite;
mod sweep;
mod transcript;
mod traps;
pub mod waiver;
mod wrapped_harness;

pub use context::{Context, OWNER_TAG, OWNER_VALUE, SCOPE_TAG};
pub use contract::{Body, CONTRACT, CONTRACT_VERSION, Clause, Factory};
pub use fault_table::{FaultSeam, FaultTable};
pub use fleetwright_clause_engine::{
    DetectedBy, Failure, Outcome, Pass, Status, Verdict, document, require,
};
pub use harness::{
    CoreStateWaiter, ExternalActor, Faults, Harness, OnMissing, Oracle, StateWaiter, Time, Truth,
    WireFault, WireOp,
};
pub use list::CLAUSES;
pub use native_error::{Meaning, NativeError};
pub use not_applicable::NotApplicable;
pub use seed::seed_from_env;
pub(crate) use shown::shown;
pub use skeleton::{OtherHandle, TruthOracle};
pub use suite::{
    clause, keep_regressions_in, run_and_report, run_clause, run_provisioner_contract_tests,
    test_clause, test_family,
};
pub use traps::check_traps;
pub use wrapped_harness::WrappedHarness;
