//! `instances`: insert, get, list, aggregatedList, getSerialPortOutput.
//!
//! Lists use an index where the filter allows it, so that a list of one label does not read the
//! whole project.

use serde_json::{Value, json};

use super::{
    Call, instance_body,
    list::{self, Item, ListKind, Listing, Order},
};
use crate::{
    cloud::{inject::CallContext, page::Page},
    gcp::{
        engine::{
            Engine,
            read::ReadInstance,
            record::{Key, Status},
        },
        error::Refusal,
        filter::{Comparison, Operator},
        views,
        wire::{link::link, route::Scope, schema},
    },
};

/// The lists of instances.
const INSTANCES: ListKind = ListKind {
    kind: "instance",
    collection: "instances",
    fields: &[
        "canIpForward",
        "cpuPlatform",
        "creationTimestamp",
        "deletionProtection",
        "description",
        "disks",
        "hostname",
        "id",
        "labels",
        "lastStartTimestamp",
        "lastStopTimestamp",
        "lastSuspendedTimestamp",
        "machineType",
        "metadata",
        "name",
        "networkInterfaces",
        "scheduling",
        "selfLink",
        "serviceAccounts",
        "status",
        "tags",
        "zone",
    ],
};

/// `instances.insert`.
///
/// # Errors
///
/// 400 `notSupported` for a template or machine image, 400 for an invalid body, and the immediate
/// refusals of the engine.
pub(super) fn insert(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    for parameter in ["sourceInstanceTemplate", "sourceMachineImage"] {
        if call.query.text(parameter).is_some() {
            return Err(Refusal::not_emulated(&format!(
                "The parameter '{parameter}'"
            )));
        }
    }
    let body = call.body(schema::INSTANCE)?;
    call.begin_once(engine, |engine| {
        let spec = instance_body::read(call, &body, engine)?;
        engine.insert(&spec, &context.planned_failures)
    })
}

/// `instances.get`, which may lag. An injected state replaces the status.
///
/// # Errors
///
/// 404 `notFound` if the instance did not exist at the time of the read.
pub(super) fn get(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let read = engine.read_instance(&call.target, context.read_lag)?;
    let (seq, version) = (read.instance.seq, read.version.clone());
    let instance = engine.instances.get(&seq).ok_or_else(Refusal::internal)?;
    let read = ReadInstance {
        instance,
        version: &version,
    };
    Ok(views::instance(engine, &read, context.state.as_deref()))
}

/// `instances.list`, of a zone. It may lag.
pub(super) fn list(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &INSTANCES)?;
    let page = page(call, engine, context, &listing);
    Ok(listing.document(call, &INSTANCES, page))
}

/// `instances.aggregatedList`, of a whole project. It may lag.
///
/// # Errors
///
/// 503 if a zone is unreachable and a partial result is not allowed.
pub(super) fn aggregated(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &INSTANCES)?;
    listing.check_all(call, engine)?;
    let page = page(call, engine, context, &listing);
    let zones = list::zones(engine);
    Ok(listing.aggregate(call, engine, &INSTANCES, &zones, page))
}

/// Returns a page of the instances of a zone or of a whole project.
///
/// The filter sees the true status of a version, even if a fault replaces it in the response. In
/// another order than that of creation, all instances are read and sorted.
fn page(call: &Call, engine: &mut Engine, context: &CallContext, listing: &Listing) -> Page<Item> {
    let target = &call.target;
    let keys = keys(call, engine, listing);
    let show = |engine: &Engine, read: ReadInstance<'_>| {
        let fixed = &read.instance.fixed;
        let scope = Scope::Zone(fixed.zone.clone());
        let in_scope = target.scope == Scope::Global || target.scope == scope;
        if fixed.project != target.project || !in_scope || list::is_unreachable(engine, &scope) {
            return None;
        }
        let document = views::instance(engine, &read, None);
        if !listing.passes(&document) {
            return None;
        }
        let shown = context.state.as_deref();
        let shown = shown.map(|state| views::instance(engine, &read, Some(state)));
        Some((scope, shown.unwrap_or(document)))
    };
    if listing.order == Order::Creation {
        return engine.instances_page(&keys, &listing.paging, context.read_lag, show);
    }
    let mut all_items = listing.paging.clone();
    (all_items.limit, all_items.position, all_items.page_fault) =
        (usize::MAX, Default::default(), Default::default());
    let all = engine.instances_page(&keys, &all_items, context.read_lag, show);
    listing.page(all.items)
}

/// Returns the index keys to look under: those of the comparison with the fewest instances, or
/// those of the scope.
fn keys(call: &Call, engine: &Engine, listing: &Listing) -> Vec<Key> {
    let project = call.target.project.clone();
    let mut choices = vec![match &call.target.scope {
        Scope::Zone(zone) => vec![Key::Zone(project, zone.clone())],
        Scope::Global | Scope::Region(_) => vec![Key::Project(project)],
    }];
    let required = listing.filter.iter().flat_map(|filter| filter.conjuncts());
    for alternatives in required {
        let keys: Option<Vec<Key>> = alternatives.into_iter().map(key).collect();
        choices.extend(keys);
    }
    engine.smallest_key_set(choices)
}

/// Returns the index key that an equality or the presence of a label names.
fn key(comparison: &Comparison) -> Option<Key> {
    let Comparison {
        path,
        operator,
        value,
        expression: _,
    } = comparison;
    match (operator, path.as_str()) {
        (Operator::Equal, "name") => Some(Key::Name(value.clone())),
        (Operator::Equal, "id") => value.parse().ok().map(Key::Id),
        (Operator::Equal, "status") => {
            let status = Status::VISIBLE
                .into_iter()
                .find(|status| status.name() == value);
            status.map(Key::Status)
        }
        (Operator::Equal, path) => {
            let label = path.strip_prefix("labels.")?.to_owned();
            Some(Key::Label(label, value.clone()))
        }
        (Operator::Has, path) if value == "*" => {
            let label = path.strip_prefix("labels.")?.to_owned();
            Some(Key::HasLabel(label))
        }
        _ => None,
    }
}

/// `instances.getSerialPortOutput`: the output from the byte `start` on.
///
/// Only port 1 has output. A negative `start` counts from the end.
///
/// # Errors
///
/// 400 `invalid` for a port outside 1 to 4, 404 for a missing instance.
pub(super) fn serial_port(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let port: u32 = call.query.number("port")?.unwrap_or(1);
    if !(1..=4).contains(&port) {
        let problem = "Must be between 1 and 4.";
        return Err(Refusal::invalid("port", &port.to_string(), problem));
    }
    let start: i64 = call.query.number("start")?.unwrap_or(0);
    let read = engine.read_instance(&call.target, context.read_lag)?;
    let all_items = if port == 1 {
        read.instance.console.as_str()
    } else {
        ""
    };
    let length = all_items.len();
    // A negative start counts from the end.
    let distance = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let from = if start < 0 {
        length.saturating_sub(distance)
    } else {
        distance.min(length)
    };
    Ok(json!({
        "kind": "compute#serialPortOutput",
        "selfLink": link(&format!("{}/serialPort", read.instance.fixed.path())),
        "contents": all_items.get(from..).unwrap_or_default(),
        "start": from.to_string(),
        "next": length.to_string(),
    }))
}
