#![doc = include_str!("../README.md")]

mod error;
pub mod instance;
#[doc(hidden)]
pub mod mutant;
pub mod schema;

pub use error::{ComputeError, Meaning};
