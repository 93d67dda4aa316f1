//! `instances.bulkInsert`, in one zone.
//!
//! Parses the count, the minimum and the names; the properties are parsed as those of an insert,
//! with bare names of machine and disk types instead of links.

use serde_json::{Map, Value};

use super::{
    Call,
    instance_body::{self, Naming},
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
const MAX_COUNT: usize = 1000;

/// Begins to create the instances and returns the common operation.
///
/// # Errors
///
/// 400 for an invalid body, and the immediate refusals of the engine.
pub(super) fn insert(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let body = call.body(schema::BULK)?;
    call.begin_once(engine, |engine| {
        let spec = read(call, &body, engine)?;
        engine.bulk_insert(&spec, &context.planned_failures)
    })
}

/// Parses the body.
///
/// # Errors
///
/// 400 `required` for missing properties or a missing count, 400 `invalid` for wrong values.
fn read(call: &Call, body: &Map<String, Value>, engine: &Engine) -> Result<BulkSpec, Refusal> {
    let properties = body.object("instanceProperties");
    let properties = properties.ok_or_else(|| Refusal::required("resource.instanceProperties"))?;
    let count = body
        .long("count")
        .ok_or_else(|| Refusal::required("resource.count"))?;
    let count = check_count("count", count, MAX_COUNT)?;
    let min_count = match body.long("minCount") {
        None => count,
        Some(min_count) => check_count("minCount", min_count, count)?,
    };
    let at = "resource.instanceProperties";
    let each = instance_body::read_properties(call, properties, engine, (at, Naming::Bare))?;
    Ok(BulkSpec {
        each,
        names: names(body, count)?,
        count,
        min_count,
    })
}

/// Refuses a number outside 1 to `max` with 400 `invalid`.
fn check_count(field: &str, count: i64, max: usize) -> Result<usize, Refusal> {
    let number = usize::try_from(count).ok();
    number
        .filter(|count| (1..=max).contains(count))
        .ok_or_else(|| {
            let problem = format!("Value must be between 1 and {max}.");
            Refusal::invalid(&format!("resource.{field}"), &count.to_string(), &problem)
        })
}

/// Parses the names: either `namePattern` or one entry of `perInstanceProperties` for each
/// instance.
///
/// # Errors
///
/// 400 `required` if both are missing, 400 `invalid` if both are given or the number of names is
/// not the count.
fn names(body: &Map<String, Value>, count: usize) -> Result<BulkNames, Refusal> {
    // gcloud sends it empty beside a pattern.
    let given = body.object("perInstanceProperties");
    let given = given.filter(|given| !given.is_empty());
    match (body.text("namePattern"), given) {
        (Some(pattern), None) => pattern_of(pattern, count),
        (None, Some(given)) => {
            let field = "resource.perInstanceProperties";
            if given.len() != count {
                let problem = "There must be as many as instances.";
                return Err(Refusal::invalid(field, &given.len().to_string(), problem));
            }
            match given.keys().find(|name| !is_name(name)) {
                Some(invalid) => Err(Refusal::mismatch(field, invalid)),
                None => Ok(BulkNames::Given(given.keys().cloned().collect())),
            }
        }
        (None, None) => Err(Refusal::required("resource.namePattern")),
        (Some(pattern), Some(_)) => {
            let problem = "It can not be given together with perInstanceProperties.";
            Err(Refusal::invalid("resource.namePattern", pattern, problem))
        }
    }
}

/// Parses a name pattern: a name that ends in as many `#` as its number has digits at least.
///
/// # Errors
///
/// 400 `invalid`, also if the longest name would not be a valid name.
fn pattern_of(pattern: &str, count: usize) -> Result<BulkNames, Refusal> {
    let before = pattern.trim_end_matches('#');
    let digits = pattern.len() - before.len();
    let longest = "0".repeat(digits.max(count.to_string().len()));
    if digits > 0 && !before.contains('#') && is_name(&format!("{before}{longest}")) {
        return Ok(BulkNames::Pattern(before.to_owned(), digits));
    }
    let problem = "It must be a name that ends in one or more '#'.";
    Err(Refusal::invalid("resource.namePattern", pattern, problem))
}
