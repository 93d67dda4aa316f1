#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | connect | [`Client::builder`] |
//! | create and change instances | [`Client::create_instance`], [`Client::plan_instance`], [`Client::update_instance`] |
//! | wait for one | [`Client::wait_until`] |
//! | read whole lists | [`Client::instances`] and its neighbours, as streams |
//! | follow changes | [`Client::watch_instances`] |
//! | understand failures | [`Error`] |
//! | see every operation | [`OPERATIONS`] |

mod call;
mod catalog;
mod client;
mod error;
mod filter;
mod instances;
mod networks;
mod operation;
mod operator;
mod pages;
mod retry;
mod tenancy;
mod token;
mod wait;
mod watch;

pub use client::{Client, ClientBuilder};
pub use error::{Effect, Error};
pub use filter::{AuditFilter, InstanceFilter, RecordFilter};
/// The types of requests and responses.
pub use fleetwright_api as api;
pub use instances::{Consent, Goal, Reboot, Tagged};
pub use networks::NetworkContents;
pub use operation::{OPERATIONS, Operation};
pub use token::Token;
pub use watch::{Change, WatchEvent, WatchFrom};
