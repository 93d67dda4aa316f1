//! An EC2 that anybody's client accepts: the query protocol, version 2016-11-15.
//!
//! ```
//! use fleetwright_emulators::ec2::{Action, Ec2Emulator, Fault, FaultRule, Knobs, Phase};
//!
//! let emulator = Ec2Emulator::start(Knobs::default())?;
//! println!("aws --endpoint-url {} ec2 describe-instances", emulator.endpoint());
//! let lost = Fault::Lost { phase: Phase::After };
//! emulator.add_fault(FaultRule::nth(Action::RunInstances, 1, lost));
//! assert_eq!(emulator.oracle().instances.len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A request walks: `server` (sockets) → `cloud` (faults, throttling) → `actions` (parameters and
//! shapes) → `engine` (what happens). Beside it, [`Ec2Emulator`]'s methods and the control endpoint turn
//! [`Knobs`], add [`Fault`]s, let somebody else [`ExternalAction`] and ask the [`Oracle`].

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
pub use engine::operator::ExternalAction;
pub use error::Refusal;
pub use knobs::{Capacity, Counts, Knobs, Lag, LateFailure, Market, Throttle, Timing};
pub use oracle::{Oracle, OracleImage, OracleInstance, OracleNetworkInterface, OracleVolume};
pub use wire::action::Action;

pub use crate::cloud::{
    calls::CallRecord,
    fault::{Failure, Fault, Phase},
};
