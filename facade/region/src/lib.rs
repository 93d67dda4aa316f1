#![doc = include_str!("../README.md")]

pub mod clock;
pub mod controller;
pub mod ids;
pub mod mapping;
pub mod monitor;
#[doc(hidden)]
pub mod mutant;
pub mod server;
pub mod uses;
