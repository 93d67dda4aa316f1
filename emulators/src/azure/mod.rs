//! An emulator of the Azure Resource Manager: virtual machines, disks, images, interfaces,
//! addresses.
//!
//! Start an [`AzureEmulator`], point a client at it, inject faults, and check the true state:
//!
//! ```
//! use fleetwright_emulators::azure::{AzureEmulator, Fault, FaultRule, Knobs, Operation, Phase};
//!
//! let emulator = AzureEmulator::start(Knobs::default())?;
//! println!("ComputeManagementClient(…, base_url=\"{}\")", emulator.endpoint());
//! let lost = Fault::Lost { phase: Phase::After };
//! emulator.add_fault(FaultRule::nth(Operation::VirtualMachinesCreateOrUpdate, 1, lost));
//! assert_eq!(emulator.oracle().vms.len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The path of a request: `server` (sockets) → `cloud` (faults, throttling) → `actions` (parameters
//! and documents) → `engine` (state). The methods of [`AzureEmulator`] and the control endpoint
//! change [`Knobs`], add [`Fault`]s, perform [`ExternalAction`]s and read the [`Oracle`].

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

pub use catalog::{
    Location, MarketplaceImage, ResourceGroup, SecurityGroup, SizeSpec, Subnet, VirtualNetwork,
};
pub use cloud::{Azure, AzureEmulator, FaultRule};
pub use engine::external_action::ExternalAction;
pub use error::Refusal;
pub use knobs::{
    Capacity, Counts, Knobs, Lag, LateFailure, LimitCheck, Market, Omissions, Refill, RetryAfter,
    SubscriptionLists, Throttle, Timing,
};
pub use oracle::{Oracle, OracleDisk, OracleImage, OracleNic, OraclePublicIp, OracleVm};
pub use wire::operation::Operation;

pub use crate::cloud::{
    calls::CallRecord,
    fault::{Failure, Fault, Phase},
};
