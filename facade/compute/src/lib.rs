#![doc = include_str!("../README.md")]

pub mod controller;
mod error;
mod error_meaning;
pub mod facade;
pub mod instance;
mod loss;
pub mod networks;
pub mod prelude;
pub mod schema;
pub mod service;

pub use error::{ComputeError, Meaning};
pub use facade::Facade;
pub use fleetwright_identity as identity;
pub use fleetwright_region as region;
pub use fleetwright_runtime as runtime;
pub use fleetwright_store as store;
