//! From a connection to a handler: what every request passes, in one order.
//!
//! trace and log → origin → time → token → rate of the caller → idempotency → handler. Handlers parse, make one call of the façade and
//! convert its result.

pub(crate) mod asset;
pub(crate) mod caller;
pub(crate) mod cors;
pub(crate) mod extract;
pub(crate) mod limit;
pub(crate) mod repeat;
pub(crate) mod trace;
