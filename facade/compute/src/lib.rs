#![doc = include_str!("../README.md")]

mod error;
pub mod instance;
mod lost;
mod meaning;
#[doc(hidden)]
pub mod mutant;
pub mod schema;
pub mod service;

pub use error::{ComputeError, Meaning};
