//! Clouds on loopback, for the clients of any language.
//!
//! An emulator speaks a cloud's own protocol over HTTP and behaves as that cloud does where it
//! hurts: reads that lag, launches that fail late, tokens, capacity, quota, throttling, pages, lost
//! replies. A test starts one in its process and drops it; the program of the same name serves
//! other languages.
//!
//! The crate depends on no provider and not on the core, so that it shares no misunderstanding with
//! them. Its judges are the vendors' clients: see `emulators/peers/run`.
//!
//! Each cloud is behind its feature: `azure`, `ec2`, `gcp`.
#![cfg_attr(feature = "azure", doc = "")]
#![cfg_attr(
    feature = "azure",
    doc = "For Azure, start with [`azure::AzureEmulator`]."
)]
#![cfg_attr(feature = "ec2", doc = "")]
#![cfg_attr(feature = "ec2", doc = "For EC2, start with [`ec2::Ec2Emulator`].")]
#![cfg_attr(feature = "gcp", doc = "")]
#![cfg_attr(
    feature = "gcp",
    doc = "For Compute Engine, start with [`gcp::GcpEmulator`]."
)]

#[cfg(feature = "azure")]
pub mod azure;
#[cfg(feature = "program")]
#[cfg_attr(
    not(all(feature = "azure", feature = "ec2", feature = "gcp")),
    allow(dead_code, reason = "one cloud needs less than all of them")
)]
mod cloud;
#[cfg(feature = "ec2")]
pub mod ec2;
#[cfg(feature = "gcp")]
pub mod gcp;
#[cfg(feature = "program")]
mod server;

#[cfg(feature = "program")]
pub use cloud::{
    Cloud,
    emulator::Emulator,
    fault::{Fault, FaultRule, Phase},
};

/// The README's code compiles.
#[cfg(all(doctest, feature = "azure", feature = "ec2", feature = "gcp"))]
#[doc = include_str!("../README.md")]
struct Readme;
