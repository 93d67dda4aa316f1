//! An emulator of Compute Engine: the REST API, version v1.
//!
//! Start a [`GcpEmulator`], point a client at it, inject faults, and check the true state:
//!
//! ```
//! use fleetwright_emulators::gcp::{Fault, FaultRule, GcpEmulator, Knobs, Method, Phase};
//!
//! let emulator = GcpEmulator::start(Knobs::default())?;
//! println!("{}/compute/v1/projects/p/zones/us-central1-a/instances", emulator.endpoint());
//!
//! // The response to the first insert is lost; the instance is created.
//! let lost = Fault::Lost { phase: Phase::After };
//! emulator.add_fault(FaultRule::nth(Method::InstancesInsert, 1, lost));
//! assert_eq!(emulator.oracle().instances.len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The path of a request: `server` (sockets) → `cloud` (faults, throttling) → `methods` (paths,
//! queries and bodies) → `engine` (state) → `views` (documents). The methods of [`GcpEmulator`] and
//! the control endpoint change [`Knobs`], add [`Fault`]s, perform [`ExternalAction`]s and read the
//! [`Oracle`].

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
pub use engine::external_action::ExternalAction;
pub use error::Refusal;
pub use knobs::{
    Capacity, Counts, Knobs, Lag, LateFailure, LimitCheck, Market, Refill, Throttle, Timing,
};
pub use oracle::{Oracle, OracleDisk, OracleImage, OracleInstance, OracleOperation};
pub use wire::method::Method;

pub use crate::cloud::{
    calls::CallRecord,
    fault::{Failure, Fault, Phase},
};
