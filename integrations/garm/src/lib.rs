#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! `main.rs` reads the [`call`] of GARM and hands it to [`run`]. [`fleet`] holds what each command does, [`config`] the file that the operator
//! writes, [`user_data`] what a machine runs at its first boot, and [`identity`] the names by which a machine is found again.

pub mod answer;
pub mod bootstrap;
pub mod call;
pub mod cloud;
pub mod config;
pub mod document;
pub mod failure;
pub mod fleet;
pub mod identity;
pub mod parent;
mod run;
pub mod secret;
pub mod settings;
pub mod user_data;

pub use run::run;
