//! The bodies of the clauses, one module per family.
//!
//! The documentation of a body has three paragraphs: the promise as in `docs/store-contract.md`,
//! its reason, and the steps of the test. A body makes calls and compares results; it never
//! measures time and never depends on the order in which concurrent calls run.

pub(crate) mod against_model;
pub(crate) mod dropped;
pub(crate) mod durable;
pub(crate) mod index;
pub(crate) mod page;
pub(crate) mod race;
pub(crate) mod record;
pub(crate) mod transaction;
pub(crate) mod unique;
pub(crate) mod watch;
