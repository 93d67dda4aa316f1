#![doc = include_str!("../README.md")]

pub mod controller;
mod error;
pub mod instance;
#[doc(hidden)]
pub mod mutant;
pub mod networks;
pub mod schema;

pub use error::{ComputeError, Meaning};
