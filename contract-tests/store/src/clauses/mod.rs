//! The bodies of the clauses, by family.

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
