//! The control endpoint: the methods of [`Emulator`](super::emulator::Emulator), for other
//! processes.
//!
//! Everything under `/_emulator` is JSON. These requests need no signature, are not counted, and
//! get no faults. An error is `{"error": "…"}` with status 400, or 404 for an unknown path.
//!
//! ```sh
//! curl http://127.0.0.1:4566/_emulator/oracle
//! curl -X PATCH -d '{"lag": {"reads": 2000}}' http://127.0.0.1:4566/_emulator/knobs
//! curl -d '{"millis": 5000}' http://127.0.0.1:4566/_emulator/advance
//! ```

use std::time::Duration;

use hyper::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Cloud, Operation, RefusalInfo as _,
    fault::FaultRule,
    service::{LAST_YEAR, Service},
};
use crate::server::{HttpRequest, HttpResponse};

const ROOT: &str = "/_emulator";

/// Whether a request is for the control endpoint.
pub(super) fn is_control(request: &HttpRequest) -> bool {
    let rest = request.uri.path().strip_prefix(ROOT);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Handles a request to the control endpoint.
pub(super) fn handle<C: Cloud>(service: &Service<C>, request: &HttpRequest) -> HttpResponse {
    let body = request.body.as_deref().unwrap_or_default();
    let path = request.uri.path();
    let resource = path.strip_prefix(ROOT).unwrap_or(path).trim_matches('/');
    let result = match (&request.method, resource) {
        (&Method::GET, "") => Ok(C::describe(&service.knobs())),
        (&Method::GET, "knobs") => value(&service.knobs()),
        (&Method::PATCH, "knobs") => patch_knobs(service, body),
        (&Method::GET, "faults") => value(&service.unused_faults()),
        (&Method::POST, "faults") => add_faults(service, body),
        (&Method::DELETE, "faults") => {
            service.clear_faults();
            Ok(json!({}))
        }
        (&Method::POST, "external-actions") => read::<C::ExternalAction>(body).and_then(|action| {
            let result = service.perform_external(action);
            result.map(|ids| json!({ "ids": ids })).map_err(|refusal| {
                bad_request(&format!("{}: {}", refusal.code(), refusal.message()))
            })
        }),
        (&Method::POST, "advance") => read(body).and_then(|Advance { millis }| {
            let max = service.max_advance();
            if Duration::from_millis(millis) > max {
                return Err(bad_request(&format!(
                    "{millis} milliseconds are too many: the time would be after the year {LAST_YEAR}, whose dates clients \
                     cannot parse; at most {} are possible",
                    max.as_millis()
                )));
            }
            service.advance(Duration::from_millis(millis));
            Ok(json!({}))
        }),
        (&Method::POST, "reset") => read_or_default(body).map(|Reset { seed }| {
            service.reset(seed);
            json!({})
        }),
        (&Method::GET, "oracle") => value(&service.oracle()),
        (&Method::GET, "calls") => value(&service.call_records()),
        _ => Err((
            404,
            format!("unknown control request {} {path}", request.method),
        )),
    };
    let (status, body) = match result {
        Ok(body) => (200, body),
        Err((status, message)) => (status, json!({ "error": message })),
    };
    HttpResponse::new(status, "application/json", body.to_string())
}

type ControlResult<T> = Result<T, (u16, String)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    millis: u64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    #[serde(default)]
    seed: Option<u64>,
}

/// One rule, or a list of them.
struct OneOrMany<O>(Vec<FaultRule<O>>);

impl<'de, O: Operation> Deserialize<'de> for OneOrMany<O> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let list = if value.is_array() {
            value
        } else {
            Value::Array(vec![value])
        };
        serde_json::from_value(list)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// Adds all rules, or none of them if one is not supported.
fn add_faults<C: Cloud>(service: &Service<C>, body: &[u8]) -> ControlResult<Value> {
    let OneOrMany(rules) = read(body)?;
    if let Some(rule) = rules.iter().find(|rule| !C::supports_fault(&rule.fault)) {
        let message = format!("the fault {:?} is not supported by {}", rule.fault, C::NAME);
        return Err(bad_request(&message));
    }
    for rule in rules {
        service.add_fault(rule);
    }
    Ok(json!({}))
}

/// Applies a JSON merge patch (RFC 7396) to the knobs: objects are merged, null restores the
/// default, and everything else is replaced.
fn patch_knobs<C: Cloud>(service: &Service<C>, body: &[u8]) -> ControlResult<Value> {
    let patch: Value = read(body)?;
    let mut knobs = value(&service.knobs())?;
    merge(&mut knobs, patch);
    let knobs = serde_json::from_value(knobs).map_err(|error| bad_request(&error.to_string()))?;
    service.set_knobs(knobs);
    value(&service.knobs())
}

fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch,
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> ControlResult<T> {
    serde_json::from_slice(body).map_err(|error| bad_request(&error.to_string()))
}

fn read_or_default<T: DeserializeOwned + Default>(body: &[u8]) -> ControlResult<T> {
    if body.is_empty() {
        Ok(T::default())
    } else {
        read(body)
    }
}

fn value<T: Serialize>(it: &T) -> ControlResult<Value> {
    serde_json::to_value(it).map_err(|error| (500, error.to_string()))
}

fn bad_request(message: &str) -> (u16, String) {
    (400, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_merges_objects_and_replaces_lists() {
        let mut knobs = json!({ "timing": { "boot": 1, "stop": 2 }, "zones": ["a"], "seed": 7 });
        let patch =
            json!({ "timing": { "boot": 9 }, "zones": ["b", "c"], "seed": null, "new": {} });
        merge(&mut knobs, patch);
        let expected =
            json!({ "timing": { "boot": 9, "stop": 2 }, "zones": ["b", "c"], "new": {} });
        assert_eq!(knobs, expected);
    }
}
