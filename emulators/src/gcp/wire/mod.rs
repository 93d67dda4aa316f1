//! Compute Engine's protocol: methods, paths, queries, bodies, links.

pub(crate) mod body;
pub(crate) mod link;
pub(crate) mod method;
mod path;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod schema;
