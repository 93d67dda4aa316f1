//! Emulators of EC2, Compute Engine and Azure on a local port, for clients of any language.
//!
//! An emulator speaks a cloud's own HTTP protocol and has the behaviour that is hard to test
//! elsewhere: stale reads, launches that fail late, client tokens, capacity, quota, throttling,
//! pages, lost responses. A test starts one in its process and drops it; the program
//! `fleetwright-emulators` serves tests in other languages.
//!
//! The crate depends on no provider and not on the core, so that a mistake in them is not repeated
//! here. Clients of other projects check it: see `emulators/peers/run`.
//!
//! | you want to | use |
//! | --- | --- |
//! | start an emulator | `Emulator::start`, by the alias of a cloud |
//! | make it slow, scarce or inconsistent | the cloud's `Knobs` |
//! | lose or break one call | `FaultRule` with a `Fault`, `Emulator::add_fault` |
//! | act as an external actor | the cloud's `ExternalAction`, `Emulator::perform_external` |
//! | let time pass | `Emulator::advance` |
//! | see the true state | `Emulator::oracle` |
//! | see what a client sent | `Emulator::calls` |
//!
//! Each cloud has a feature: `azure`, `ec2`, `gcp`.
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
    allow(dead_code, reason = "no single cloud uses all of them")
)]
#[cfg_attr(
    not(any(feature = "azure", feature = "ec2", feature = "gcp")),
    allow(
        unreachable_pub,
        unused_imports,
        unused_macros,
        reason = "only clouds use them"
    )
)]
mod cloud;
#[cfg(feature = "ec2")]
pub mod ec2;
#[cfg(feature = "gcp")]
pub mod gcp;
#[cfg(feature = "program")]
#[cfg_attr(
    not(any(feature = "ec2", feature = "gcp")),
    allow(dead_code, reason = "only these clouds use headers")
)]
mod server;

#[cfg(feature = "program")]
pub use cloud::{
    Cloud, CommonKnobs,
    calls::CallRecord,
    emulator::Emulator,
    fault::{Fault, FaultRule, Phase},
    knobs::Capacity,
};

/// Compiles the code in the README.
#[cfg(all(doctest, feature = "azure", feature = "ec2", feature = "gcp"))]
#[doc = include_str!("../README.md")]
struct Readme;
