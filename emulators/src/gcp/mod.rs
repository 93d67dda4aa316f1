//! A Compute Engine that anybody's client accepts: the REST API, version v1.
//!
//! ```
//! use fleetwright_emulators::gcp::{Fault, FaultRule, GcpEmulator, Knobs, Method, Phase};
//!
//! let emulator = GcpEmulator::start(Knobs::default())?;
//! println!("{}/compute/v1/projects/p/zones/us-central1-a/instances", emulator.endpoint());
//! let lost = Fault::Lost { phase: Phase::After };
//! emulator.add_fault(FaultRule::nth(Method::InstancesInsert, 1, lost));
//! assert_eq!(emulator.oracle().instances.len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A request walks: `server` (sockets) → `cloud` (faults, throttling) → `methods` (paths, queries and
//! bodies) → `engine` (what happens) → `views` (documents). Beside it, [`GcpEmulator`]'s methods and the
//! control endpoint turn [`Knobs`], add [`Fault`]s, let somebody else [`ExternalAction`] and ask the [`Oracle`].

mod catalog;
mod cloud;
mod engine;
mod error;
mod filter;
mod knobs;
mod methods;
mod oracle;
#[cfg(test)]
mod tests;
mod views;
mod wire;

pub use catalog::{Image, MachineType, Subnetwork};
pub use cloud::{FaultRule, Gcp, GcpEmulator};
pub use engine::operator::ExternalAction;
pub use error::Refusal;
pub use knobs::{Capacity, Counts, Knobs, Lag, LateFailure, LimitCheck, Market, Throttle, Timing};
pub use oracle::{Oracle, OracleDisk, OracleImage, OracleInstance, OracleOperation};
pub use wire::method::Method;

pub use crate::cloud::{
    calls::CallRecord,
    fault::{Failure, Fault, Phase},
};
