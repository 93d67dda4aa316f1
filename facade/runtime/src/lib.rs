#![doc = include_str!("../README.md")]

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
