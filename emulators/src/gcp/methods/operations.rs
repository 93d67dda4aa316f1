//! Operations: get, wait, list; of zones, of regions, of a project.
//!
//! Reads of operations never lag. An expired operation is a 404, also one that a fault expires
//! early.

use std::time::Duration;

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, ListKind, Listing, Order},
};
use crate::{
    cloud::{index::Seq, inject::CallContext, page::Page},
    gcp::{
        engine::{Engine, operation::OperationKey},
        error::Refusal,
        filter::{Comparison, Operator},
        views,
        wire::{
            link::ResourceLink,
            method::Method,
            route::{Scope, Target},
        },
    },
};

/// The lists of operations.
const OPERATIONS: ListKind = ListKind {
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

/// A position behind every operation, to count from where the newest is first.
const NEWEST: u64 = 1 << 62;

/// Returns how much longer a call that began at `since` waits; `None` if it does not wait.
///
/// `wait` returns when the operation is `DONE`, and after `timing.wait` in any case.
pub(crate) fn remaining_wait(call: &Call, engine: &Engine, since: Duration) -> Option<Duration> {
    let waits = matches!(
        call.method,
        Method::ZoneOperationsWait | Method::RegionOperationsWait | Method::GlobalOperationsWait
    );
    let Target {
        project,
        scope,
        name,
    } = &call.target;
    if !waits || engine.operation(project, scope, name)?.ended.is_some() {
        return None;
    }
    let end = since.saturating_add(engine.core.knobs.timing.wait);
    Some(end.saturating_sub(engine.now()))
}

/// `get` and `wait`: the operation as it is now.
///
/// # Errors
///
/// 404 `notFound` for an unknown or expired operation, or one of another scope.
pub(super) fn get(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let Target {
        project,
        scope,
        name,
    } = &call.target;
    engine.core.records_read += 1;
    let operation = engine.operation(project, scope, name);
    match operation.filter(|_| !context.operation_expired) {
        Some(operation) => Ok(views::operation(engine, operation)),
        None => Err(Refusal::not_found(&call.target.path("operations"))),
    }
}

/// `list`, of one scope. Newest first, unless the knob `newest_operations_first` is off.
pub(super) fn list(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &OPERATIONS)?;
    let seqs = engine.operations_under(&keys(call, &listing, &call.target.scope));
    let page = page(engine, &listing, seqs);
    Ok(listing.document(call, &OPERATIONS, page))
}

/// `aggregatedList`: the operations of every zone and region, and the global ones.
///
/// # Errors
///
/// 503 if a zone is unreachable and a partial result is not allowed.
pub(super) fn aggregated(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &OPERATIONS)?;
    listing.check_all(call, engine)?;
    let zones = list::zones(engine);
    let regions = engine.regions().into_iter().map(Scope::Region);
    let scopes: Vec<_> = [Scope::Global]
        .into_iter()
        .chain(regions)
        .chain(zones)
        .collect();
    let reachable = scopes
        .iter()
        .filter(|scope| !list::is_unreachable(engine, scope));
    let mut seqs: Vec<_> = reachable
        .flat_map(|scope| engine.operations_under(&keys(call, &listing, scope)))
        .collect();
    seqs.sort_unstable();
    let page = page(engine, &listing, seqs);
    Ok(listing.aggregate(call, engine, &OPERATIONS, &scopes, page))
}

/// Returns a page of operations, which are given oldest first.
///
/// Positions grow along a list, so the newest operation has the smallest position if it is first.
fn page(engine: &mut Engine, listing: &Listing, mut seqs: Vec<Seq>) -> Page<Item> {
    let newest_first = match listing.order {
        Order::Creation => engine.core.knobs.newest_operations_first,
        Order::NewestFirst => true,
        Order::Name => false,
    };
    let position_of = |seq| if newest_first { NEWEST - seq } else { seq };
    if newest_first {
        seqs.reverse();
    }
    let after = match listing.order {
        Order::Creation | Order::NewestFirst => listing.paging.position.after,
        Order::Name => 0,
    };
    let positions = seqs.into_iter().map(|seq| (position_of(seq), seq));
    let remaining = positions.filter(|(position, _)| *position > after);
    let items = remaining.filter_map(|(position, seq)| {
        let operation = engine.operations.get(&seq)?;
        let item = views::operation(engine, operation);
        Some((position, (operation.scope.clone(), item)))
    });
    let (page, records_read) = match listing.order {
        Order::Creation | Order::NewestFirst => listing.take(items),
        Order::Name => {
            let all: Vec<_> = items.map(|(_, item)| item).collect();
            let records_read = all.len() as u64;
            (listing.page(all), records_read)
        }
    };
    engine.core.records_read += records_read;
    page
}

/// Returns the index keys to look under in a scope: those of the target, if the filter names it.
fn keys(call: &Call, listing: &Listing, scope: &Scope) -> Vec<OperationKey> {
    let project = &call.target.project;
    let required = listing.filter.iter().flat_map(|filter| filter.conjuncts());
    for alternatives in required {
        let keys = alternatives
            .into_iter()
            .map(|only| key(project, scope, only));
        if let Some(keys) = keys.collect() {
            return keys;
        }
    }
    vec![OperationKey::Scope(project.clone(), scope.clone())]
}

/// Returns the index key of a comparison with `targetId` or `targetLink`.
fn key(project: &str, scope: &Scope, comparison: &Comparison) -> Option<OperationKey> {
    let (project, scope) = (project.to_owned(), scope.clone());
    let value = &comparison.value;
    match (comparison.operator, comparison.path.as_str()) {
        (Operator::Equal, "targetId") => {
            let id = value.parse().ok()?;
            Some(OperationKey::Target(project, scope, id))
        }
        (Operator::Equal, "targetLink") => {
            let parsed = ResourceLink::parse(value)?;
            let path = format!("projects/{}/{}", parsed.project?, parsed.path.join("/"));
            Some(OperationKey::TargetPath(project, scope, path))
        }
        _ => None,
    }
}
