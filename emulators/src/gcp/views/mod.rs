//! The documents of resources, as the discovery document defines them.
//!
//! A view only reads the engine. It decides nothing and is complete: lists and gets return the
//! same document.

mod catalog;
mod disk;
mod image;
mod instance;
mod operation;

pub(crate) use catalog::{disk_type, machine_type, network, project, region, subnetwork, zone};
pub(crate) use disk::disk;
pub(crate) use image::image;
pub(crate) use instance::instance;
pub(crate) use operation::operation;

use serde_json::{Map, Value};

use super::wire::link::link;

/// Drops empty fields, because Compute Engine omits them: null, empty lists and empty objects.
/// Numbers, flags and texts stay.
fn without_empty(document: Value) -> Value {
    let Value::Object(fields) = document else {
        return document;
    };
    let is_present = |value: &Value| match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let fields: Map<_, _> = fields
        .into_iter()
        .filter(|(_, value)| is_present(value))
        .collect();
    Value::Object(fields)
}

/// Returns the link of a zone.
fn zone_link(project: &str, zone: &str) -> String {
    link(&format!("projects/{project}/zones/{zone}"))
}

/// Returns the numeric id of a catalog resource, which is always the same for a path.
fn derived_id(path: &str) -> String {
    let digest = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, path.as_bytes());
    (digest.as_u64_pair().0 >> 1).to_string()
}
