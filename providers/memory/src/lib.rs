#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! A [`MemoryProvisioner`] sends every call over a simulated wire to the engine of its
//! [`MemoryCloud`]. The wire adds latency, throttling and faults; the engine is synchronous and
//! always correct. [`Oracle`] and [`ExternalActor`] bypass the wire.

mod cloud;
mod config;
mod convert;
mod engine;
mod error;
mod external_actor;
mod fault;
mod oracle;
mod provisioner;
mod state;
mod wire;

pub use cloud::MemoryCloud;
pub use config::{Capacity, MemoryCloudBuilder, Timing};
pub use engine::Image;
pub use external_actor::ExternalActor;
pub use fault::{Fault, Faults, Phase, RefusalReason};
pub use fleetwright_chaos::{Clock, ManualClock, Rule, TokioClock, When};
pub use oracle::{Disk, Leftovers, Oracle, OracleInstance};
pub use provisioner::MemoryProvisioner;
pub use wire::WireCall;
