#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! `main.rs` hands the environment to [`run()`]. `fleet` holds what each command does, `config` the file that the operator writes, `user_data` what
//! a machine runs at its first boot, and `identity` the names by which a machine is found again.

mod answer;
mod bootstrap;
mod call;
mod cloud;
mod config;
mod document;
mod failure;
mod fleet;
mod identity;
mod parent;
mod run;
mod secret;
mod settings;
mod user_data;

pub use failure::Failure;
pub use run::run;
