#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | run a controller | [`Runner`], [`Action`], [`Backoff`] |
//! | turn a watch into keys | [`watch_keys`] |
//! | inject time and randomness | [`clock::Clock`], [`entropy::Entropy`] |

mod action;
mod backoff;
pub mod clock;
pub mod entropy;
mod queue;
mod runner;
mod watch;

pub use action::Action;
pub use backoff::Backoff;
pub use queue::WorkQueue;
pub use runner::Runner;
pub use watch::watch_keys;
