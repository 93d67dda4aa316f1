//! Runs the whole façade in virtual time and injects a fault at every step.
//!
//! A seed stands for a [`scenario`]: the requests of two tenants, the actions of operators and
//! external actors, and the faults to inject. A run drives the real code (instance service,
//! instance and network controllers, ledger, catalog, server controller, monitor and snapshot
//! controller) over the memory cloud and the memory store, on one thread with tokio's paused clock,
//! so that the same seed always gives the same run.
//!
//! A fault is a crash, an error or a lost response at one [point](fault::FaultPoint): a commit, a
//! read, a watch event or a cloud call. A process that crashes is dropped with everything that it
//! has in flight. The next process starts from the store and the cloud, which outlive it, and
//! clients send every request again whose response they did not get. [Rules] are checked at every
//! step, and [more](check) once everything has settled. A scenario that breaks a rule is
//! [shrunk](mod@shrink) and printed.
//!
//! [`mistake`] proves that the rules find bugs: it makes mistakes on purpose, and each one must
//! break a rule.
//!
//! [Rules]: rules::Rules

pub mod check;
pub mod client;
pub mod cloud;
pub mod constants;
pub mod environment;
pub mod fault;
pub mod fixtures;
pub mod journal;
pub mod life;
pub mod mistake;
pub mod oracle;
pub mod rules;
pub mod scenario;
pub mod seeds;
pub mod shrink;
pub mod store;
pub mod world;
