//! Operations: get, wait, list; of zones, of regions, of a whole project.

use std::time::Duration;

use serde_json::Value;

use super::{
    Call,
    list::{Listing, Of},
};
use crate::{
    cloud::strike::Served,
    gcp::{
        engine::{World, operation::OperationKey},
        error::Refusal,
        filter::Operator,
        views,
        wire::{link::Named, method::Method, route::Target},
    },
};

const OPERATIONS: Of = Of {
    kind: "operation",
    collection: "operations",
    fields: &[
        "endTime",
        "error",
        "httpErrorStatusCode",
        "id",
        "insertTime",
        "name",
        "operationGroupId",
        "operationType",
        "progress",
        "region",
        "selfLink",
        "startTime",
        "status",
        "targetId",
        "targetLink",
        "user",
        "zone",
    ],
};

/// How much longer a call has to wait that began at `since`, if it is one that waits.
pub(crate) fn patience(call: &Call, world: &World, since: Duration) -> Option<Duration> {
    let waits = matches!(
        call.method,
        Method::ZoneOperationsWait | Method::RegionOperationsWait | Method::GlobalOperationsWait
    );
    let Target {
        project,
        scope,
        name,
    } = &call.target;
    if !waits || world.operation(project, scope, name)?.ended.is_some() {
        return None;
    }
    let end = since.saturating_add(world.knobs.timing.wait);
    Some(end.saturating_sub(world.now()))
}

pub(super) fn get(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    let Target {
        project,
        scope,
        name,
    } = &call.target;
    world.touched += 1;
    let operation = world.operation(project, scope, name);
    match operation.filter(|_| !served.forgotten) {
        Some(operation) => Ok(views::operation(world, operation)),
        None => Err(Refusal::not_found(&call.target.path("operations"))),
    }
}

/// The newest first.
pub(super) fn list(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    let listing = Listing::read(call, world, served, &OPERATIONS)?;
    let scope = &call.target.scope;
    let found = world.operations_under(key(call, &listing));
    let mut shown: Vec<_> = found
        .map(|operation| (scope.clone(), views::operation(world, operation)))
        .collect();
    let touched = shown.len() as u64;
    shown.reverse();
    world.touched += touched;
    let page = listing.page(shown);
    Ok(listing.document(call, &OPERATIONS, page))
}

/// Where to look: under what they are about, if the filter says that.
fn key(call: &Call, listing: &Listing) -> OperationKey {
    let Target { project, scope, .. } = &call.target;
    let at = || (project.clone(), scope.clone());
    let must = listing.filter.iter().flat_map(|filter| filter.conjuncts());
    for alternatives in must {
        let [only] = &*alternatives else { continue };
        let (project, scope) = at();
        match (only.operator, only.path.as_str()) {
            (Operator::Equal, "targetId") => {
                if let Ok(id) = only.value.parse() {
                    return OperationKey::Target(project, scope, id);
                }
            }
            (Operator::Equal, "targetLink") => {
                if let Some(named) = Named::read(&only.value) {
                    let of = named.project.as_deref().unwrap_or_default();
                    let path = format!("projects/{of}/{}", named.path.join("/"));
                    return OperationKey::TargetPath(project, scope, path);
                }
            }
            _ => {}
        }
    }
    let (project, scope) = at();
    OperationKey::Scope(project, scope)
}
