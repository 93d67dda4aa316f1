//! The bodies of the clauses, a file for each family.

pub(crate) mod batch;
mod calls;
pub(crate) mod cancellation;
pub(crate) mod concurrency;
pub(crate) mod crash;
pub(crate) mod describe;
pub(crate) mod errors;
pub(crate) mod launch;
pub(crate) mod leaks;
pub(crate) mod list;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod tags;
pub(crate) mod terminate;
pub(crate) mod time;
pub(crate) mod token;
pub(crate) mod verbs;
