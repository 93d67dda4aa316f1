//! The whole façade under virtual time, with something going wrong at every step.
//!
//! A seed stands for a [`scenario`]: what two tenants ask for, what others do to their machines, networks and catalog, and what goes
//! wrong. Everything is run through it (service and controller of instances, keeper of networks, ledger, the region's controller,
//! monitor and maker of images, memory cloud, memory store) on one thread under tokio's paused clock, so that a seed is always the same
//! history. A process that dies is dropped with everything it has under way; the next one is opened from the store and the
//! cloud, which outlive it, and whoever got no answer asks the same again. [Rules] are checked at every step and [more](check) once
//! everything has settled. What breaks one is [shrunk](mod@shrink) and printed.
//!
//! [Rules]: rules::Rules

pub mod check;
pub mod client;
pub mod cloud;
pub mod constants;
pub mod fault;
pub mod fixtures;
pub mod journal;
pub mod mistake;
pub mod oracle;
pub mod rules;
pub mod scenario;
pub mod seeds;
pub mod shrink;
pub mod store;
pub mod world;
