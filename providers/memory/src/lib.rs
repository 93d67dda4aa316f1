#![doc = include_str!("../README.md")]

mod cloud;
mod config;
mod convert;
mod engine;
mod error;
mod fault;
mod operator;
mod oracle;
mod provisioner;
mod state;
mod wire;

pub use cloud::MemoryCloud;
pub use config::{Capacity, MemoryCloudBuilder, Timing};
pub use engine::Image;
pub use fault::{Fault, Faults, Phase, Refused};
pub use fleetwright_chaos::{Clock, ManualClock, Rule, TokioClock, When};
pub use operator::Operator;
pub use oracle::{Disk, Leftovers, Oracle, Truth};
pub use provisioner::MemoryProvisioner;
pub use wire::WireCall;
