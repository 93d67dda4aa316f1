//! `instances`: setLabels, setMetadata, setMachineType.
//!
//! Each parses and checks its body before it begins the operation. An injected failure of the
//! operation leaves the instance unchanged.

use serde_json::Value;

use super::{
    Call,
    instance_body::{self, Naming},
};
use crate::{
    cloud::inject::CallContext,
    gcp::{
        engine::{Engine, rules},
        error::Refusal,
        wire::{body::Fields as _, route::Scope, schema},
    },
};

/// `instances.setLabels`.
///
/// # Errors
///
/// 400 for invalid labels, 404 for a missing instance, 412 for a fingerprint that is not current.
/// A missing fingerprint counts as an empty one.
pub(super) fn labels(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let body = call.body(schema::SET_LABELS)?;
    let labels = body.texts("labels");
    rules::check_labels("labels", &labels)?;
    let fingerprint = body.text("labelFingerprint").unwrap_or_default();
    let fingerprint = rules::to_url_safe(fingerprint);
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.set_labels(&call.target, &fingerprint, labels)
    })
}

/// `instances.setMetadata`.
///
/// # Errors
///
/// 400 for invalid metadata, 404 for a missing instance, 412 for a fingerprint that is not
/// current. A missing fingerprint counts as an empty one.
pub(super) fn metadata(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let body = call.body(schema::METADATA)?;
    let metadata = instance_body::metadata(&body);
    rules::check_metadata("metadata", &metadata)?;
    let fingerprint = body.text("fingerprint").unwrap_or_default();
    let fingerprint = rules::to_url_safe(fingerprint);
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.set_metadata(&call.target, &fingerprint, metadata)
    })
}

/// `instances.setMachineType`.
///
/// # Errors
///
/// 400 for a type that the zone does not offer or an instance that is not stopped, 404 for a
/// missing instance.
pub(super) fn machine_type(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let body = call.body(schema::SET_MACHINE_TYPE)?;
    let Scope::Zone(zone) = &call.target.scope else {
        return Err(Refusal::no_such_path());
    };
    let given = body.text("machineType");
    let given = given.ok_or_else(|| Refusal::required("machineType"))?;
    let name = instance_body::machine_type(engine, zone, "machineType", given, Naming::Links)?;
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.set_machine_type(&call.target, &name)
    })
}
