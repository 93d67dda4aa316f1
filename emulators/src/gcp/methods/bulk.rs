//! `instances.bulkInsert`, in one zone.

use serde_json::{Map, Value};

use super::{
    Call,
    order::{self, Naming},
};
use crate::{
    cloud::inject::CallContext,
    gcp::{
        engine::{
            Engine,
            bulk::{BulkNames, BulkSpec},
        },
        error::Refusal,
        wire::{body::Fields as _, route::is_name, schema},
    },
};

/// The maximum number of instances of one call.
const MOST: usize = 1000;

pub(super) fn insert(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let body = call.body(schema::BULK)?;
    call.once(engine, |engine| {
        let order = read(call, &body, engine)?;
        engine.bulk_insert(&order, &context.planned_failures)
    })
}

fn read(call: &Call, body: &Map<String, Value>, engine: &Engine) -> Result<BulkSpec, Refusal> {
    let properties = body.object("instanceProperties");
    let properties = properties.ok_or_else(|| Refusal::required("resource.instanceProperties"))?;
    let count = body
        .long("count")
        .ok_or_else(|| Refusal::required("resource.count"))?;
    let count = within("count", count, MOST)?;
    let least = match body.long("minCount") {
        None => count,
        Some(least) => within("minCount", least, count)?,
    };
    let at = "resource.instanceProperties";
    let each = order::read_properties(call, properties, engine, (at, Naming::Bare))?;
    Ok(BulkSpec {
        each,
        names: names(body, count)?,
        count,
        least,
    })
}

fn within(field: &str, count: i64, most: usize) -> Result<usize, Refusal> {
    let good = usize::try_from(count).ok();
    good.filter(|count| (1..=most).contains(count))
        .ok_or_else(|| {
            let why = format!("Value must be between 1 and {most}.");
            Refusal::invalid(&format!("resource.{field}"), &count.to_string(), &why)
        })
}

fn names(body: &Map<String, Value>, count: usize) -> Result<BulkNames, Refusal> {
    // gcloud sends it empty beside a pattern.
    let given = body.object("perInstanceProperties");
    let given = given.filter(|given| !given.is_empty());
    match (body.text("namePattern"), given) {
        (Some(pattern), None) => pattern_of(pattern, count),
        (None, Some(given)) => {
            let field = "resource.perInstanceProperties";
            if given.len() != count {
                let why = "There must be as many as instances.";
                return Err(Refusal::invalid(field, &given.len().to_string(), why));
            }
            match given.keys().find(|name| !is_name(name)) {
                Some(bad) => Err(Refusal::mismatch(field, bad)),
                None => Ok(BulkNames::Given(given.keys().cloned().collect())),
            }
        }
        (None, None) => Err(Refusal::required("resource.namePattern")),
        (Some(pattern), Some(_)) => {
            let why = "It can not be given together with perInstanceProperties.";
            Err(Refusal::invalid("resource.namePattern", pattern, why))
        }
    }
}

/// A name that ends in as many `#` as its number has digits.
fn pattern_of(pattern: &str, count: usize) -> Result<BulkNames, Refusal> {
    let before = pattern.trim_end_matches('#');
    let digits = pattern.len() - before.len();
    let longest = "0".repeat(digits.max(count.to_string().len()));
    if digits > 0 && !before.contains('#') && is_name(&format!("{before}{longest}")) {
        return Ok(BulkNames::Pattern(before.to_owned(), digits));
    }
    let why = "It must be a name that ends in one or more '#'.";
    Err(Refusal::invalid("resource.namePattern", pattern, why))
}
