//! Compute Engine's protocol: methods, paths, queries, bodies, links.
//!
//! Owns the protocol and no behaviour: what a method means is in `methods`, what happens in
//! `engine`.

pub(crate) mod body;
pub(crate) mod link;
pub(crate) mod method;
mod path;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod schema;
