//! The operations, one file for each resource. A handler parses, makes one call of the façade, and converts its result.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod authorities;
pub(crate) mod bindings;
pub(crate) mod catalog;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod images;
pub(crate) mod instances;
pub(crate) mod networks;
pub(crate) mod operator;
pub(crate) mod organizations;
pub(crate) mod page;
pub(crate) mod projects;
pub(crate) mod quotas;
pub(crate) mod verbs;
pub(crate) mod watch;

use axum::response::Response;

use crate::failure::Failure;

/// What a handler returns.
pub(crate) type Answer = Result<Response, Failure>;
