//! What every backend on a cloud needs and no caller does.
//!
//! A backend implements [`InstanceProvisioner`](fleetwright::InstanceProvisioner) with a cloud's SDK.
//! Most of that work is the cloud's own: its requests, its states, its error codes. The rest is the same
//! everywhere, and is here once:
//!
//! - [`Failure`], [`Service`] and [`Class`]: a failed native call and the
//!   [`ProvisionError`](fleetwright::ProvisionError) that it becomes.
//! - [`launch`]: the launch sequence of clouds on which the backend names its instances.
//! - [`poll`]: delays and deadlines for following an operation.
//!
//! This crate talks to no cloud, never retries a call that changes something, and decides nothing that
//! depends on one cloud.

mod failure;
pub mod launch;
pub mod poll;

pub use failure::{Cause, Class, ErrorContext, Failure, Service};
