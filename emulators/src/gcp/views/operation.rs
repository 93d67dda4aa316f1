//! The document `Operation`.

use serde_json::{Value, json};

use super::{without_empty, zone_link};
use crate::gcp::{
    engine::{
        Engine,
        operation::{Operation, http_error},
    },
    wire::{link::link, route::Scope},
};

/// The user of operations that a client started.
const USER: &str = "tester@example.com";
/// The user of operations that report what Google did, such as a preemption.
const SYSTEM: &str = "system";

/// Returns the document of an operation.
///
/// `progress` is 100 when it is done and 0 before. With errors it also has the HTTP status of the
/// first one. The zone or region is there only for an operation of that scope.
pub(crate) fn operation(engine: &Engine, operation: &Operation) -> Value {
    let Operation { project, scope, .. } = operation;
    let stamp = |moment: Option<_>| moment.map(|moment| engine.stamp(moment));
    let (zone, region) = match scope {
        Scope::Zone(zone) => (Some(zone_link(project, zone)), None),
        Scope::Region(region) => (
            None,
            Some(link(&format!("projects/{project}/regions/{region}"))),
        ),
        Scope::Global => (None, None),
    };
    let http = operation
        .errors
        .first()
        .map(|error| http_error(&error.code));
    let errors: Vec<_> = operation
        .errors
        .iter()
        .map(|error| json!({ "code": error.code, "message": error.message }))
        .collect();
    let system = operation.kind.starts_with("compute.");
    without_empty(json!({
        "kind": "compute#operation",
        "id": operation.id.to_string(),
        "name": operation.name,
        "zone": zone,
        "region": region,
        "operationType": operation.kind,
        "targetLink": link(&operation.target),
        "targetId": operation.target_id.map(|id| id.to_string()),
        "status": operation.status(),
        "user": if system { SYSTEM } else { USER },
        "progress": if operation.ended.is_some() { 100 } else { 0 },
        "insertTime": engine.stamp(operation.inserted),
        "startTime": stamp(operation.started),
        "endTime": stamp(operation.ended),
        "error": without_empty(json!({ "errors": errors })),
        "httpErrorStatusCode": http.map(|(status, _)| status),
        "httpErrorMessage": http.map(|(_, message)| message),
        "operationGroupId": operation.group,
        "selfLink": link(&format!("projects/{project}/{scope}/operations/{}", operation.name)),
    }))
}
