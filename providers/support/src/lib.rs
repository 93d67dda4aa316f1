//! What every backend on a cloud needs and no caller does.
//!
//! A backend implements [`InstanceProvisioner`](fleetwright::InstanceProvisioner) with a cloud's SDK.
//! Most of that work is the cloud's own: its requests, its states, its error codes. The rest is the same
//! everywhere, and is here once:
//!
//! - [`Failure`], [`Service`] and [`Class`]: a failed native call and the
//!   [`ProvisionError`](fleetwright::ProvisionError) that it becomes.
//! - [`RecentLaunches`], [`RecentTerminations`], [`RecentTokens`], [`RecentMap`], [`read_until`],
//!   [`read_within`], [`read_if_exists`] and [`read_until_state`]: correct results while the cloud's reads are stale.
//! - [`ReadInstances`] and [`ChangeInstances`]: reading, terminating, stopping and starting one instance or
//!   many, on top of one native call for a batch.
//! - [`batch`]: ids and results in order.
//! - [`collect_complete`]: a complete list from a stream with gaps.
//! - [`launch`]: the launch sequence of clouds on which the backend names its instances.
//! - [`native_costs`]: the table of native calls that a backend declares.
//! - [`poll`]: delays and deadlines for following an operation.
//!
//! This crate talks to no cloud, never retries a call that changes something, and decides nothing that
//! depends on one cloud.

pub mod batch;
mod change;
mod consistency;
mod failure;
pub mod launch;
mod list;
pub mod native_costs;
pub mod poll;
mod read;
mod recent;
mod recent_launches;
mod recent_terminations;
mod recent_tokens;

pub use change::{Change, ChangeInstances};
pub use consistency::{read_if_exists, read_until, read_until_state, read_within};
pub use failure::{Cause, Class, ErrorContext, Failure, Service, Setting};
pub use list::collect_complete;
pub use read::{ReadInstances, is_after_start};
pub use recent::RecentMap;
pub use recent_launches::RecentLaunches;
pub use recent_terminations::RecentTerminations;
pub use recent_tokens::RecentTokens;
