//! An emulator of EC2: the query protocol, version 2016-11-15.
//!
//! Start an [`Ec2Emulator`], point a client at it, inject faults, and check the true state:
//!
//! ```
//! use fleetwright_emulators::ec2::{Action, Ec2Emulator, Fault, FaultRule, Knobs, Phase};
//!
//! let emulator = Ec2Emulator::start(Knobs::default())?;
//! println!("aws --endpoint-url {} ec2 describe-instances", emulator.endpoint());
//!
//! // The response to the first RunInstances is lost; the instances are launched.
//! let lost = Fault::Lost { phase: Phase::After };
//! emulator.add_fault(FaultRule::nth(Action::RunInstances, 1, lost));
//! assert_eq!(emulator.oracle().instances.len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The path of a request: `server` (sockets) → `cloud` (faults, throttling) → `actions` (parameters
//! and shapes) → `engine` (state). The methods of [`Ec2Emulator`] and the control endpoint change
//! [`Knobs`], add [`Fault`]s, perform [`ExternalAction`]s and read the [`Oracle`].

mod actions;
mod catalog;
mod cloud;
mod engine;
mod error;
mod knobs;
mod oracle;
mod shapes;
#[cfg(test)]
mod tests;
mod wire;

pub use catalog::{Image, KeyPair, SecurityGroup, Subnet, TypeSpec};
pub use cloud::{Ec2, Ec2Emulator, FaultRule};
pub use engine::external_action::ExternalAction;
pub use error::Refusal;
pub use knobs::{
    Capacity, Counts, Knobs, Lag, LateFailure, Market, Refill, RequiredTag, Throttle, Timing,
};
pub use oracle::{
    Oracle, OracleImage, OracleInstance, OracleNetworkInterface, OracleSnapshot, OracleVolume,
};
pub use wire::action::Action;

pub use crate::cloud::{
    calls::CallRecord,
    fault::{Failure, Fault, Phase},
};
