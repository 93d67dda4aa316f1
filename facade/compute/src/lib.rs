#![doc = include_str!("../README.md")]

pub mod controller;
mod error;
pub mod instance;
mod lost;
mod meaning;
#[doc(hidden)]
pub mod mutant;
pub mod networks;
pub mod schema;
pub mod service;

pub use error::{ComputeError, Meaning};
