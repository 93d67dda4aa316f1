#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! | task | start with |
//! | --- | --- |
//! | use a store | [`Store`], [`StoreExt`], [`Transaction`], [`Query`], [`Watch`] |
//! | store one Rust type | [`Document`], [`Table`] |
//! | define kinds and indexes | [`Schema`] |
//! | open a store in memory | [`MemoryStore`] |
//! | react to errors | [`StoreError`], [`StoreError::advice`] |
//! | implement a store | [`Prepared`], [`View`], [`Plan`], [`Source`] |

mod error;
mod evaluate;
mod index;
mod json;
pub mod limits;
mod memory;
mod name;
mod query;
mod record;
mod schema;
mod store;
mod transaction;
mod typed;
mod watch;

pub use error::{Advice, Cause, Conflict, Effect, Found, Invalid, Part, Result, StoreError};
pub use evaluate::{Prepared, PreparedPut, PreparedWrite, View};
pub use index::{IndexValue, Scalar};
pub use json::Json;
pub use memory::{MemoryOptions, MemoryStore};
pub use name::{IndexName, Key, Kind, RecordId};
pub use query::{Cursor, Page, Plan, Query, Range, Select};
pub use record::{Damaged, Record, Revision};
pub use schema::{Entry, Holds, Index, Schema, SchemaBuilder};
pub use store::{Store, StoreExt};
pub use transaction::{Check, Claim, Transaction, Write};
pub use typed::{Base, Document, Partial, Table, TypedPage, Versioned};
pub use watch::{Batch, Change, Commit, History, Interest, Source, Watch};
