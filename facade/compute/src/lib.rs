#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | build and run a façade | [`Facade`], [`FacadeBuilder`](facade::FacadeBuilder), [`RunningFacade`](facade::RunningFacade) |
//! | import what a program needs | [`prelude`] |
//! | create organizations, projects and users' roles | [`Facade::tenancy`](Facade#structfield.tenancy) |
//! | call the service | [`Instances`](service::Instances), [`NewInstance`](service::NewInstance), [`UpdateInstance`](service::UpdateInstance) |
//! | read an instance | [`InstanceView`](service::InstanceView), [`Instance`](instance::Instance), [`Status`](instance::Status) |
//! | report an error to a tenant | [`ComputeError::meaning`], [`ComputeError::tenant_message`] |
//! | run the loops by hand | [`controller::Controller`], [`networks::NetworkDeletionController`] |
//! | open a store | [`Facade::schema`], [`schema`] |

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
