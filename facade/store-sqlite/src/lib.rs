#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`SqliteStore::open`] opens a file, [`SqliteOptions`] has the settings.

mod cache;
mod check;
mod checkpoint;
mod connection;
#[cfg(test)]
mod cost;
mod error;
mod format;
mod location;
mod lock;
mod options;
mod queue;
mod read;
mod readers;
mod setup;
mod sql;
mod store;
mod write;
mod writer;

pub use options::{Sharing, SqliteOptions};
pub use store::SqliteStore;
