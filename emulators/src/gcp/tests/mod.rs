//! Tests of the engine, method by method, on a manual clock.

mod bulk;
mod changes;
mod determinism;
mod disks;
mod external_actions;
mod fleet;
mod insert;
mod lag;
mod lifecycles;
mod limits;
mod lists;
mod operations;
mod power;
mod requests;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use fleetwright_chaos::ManualClock;
use hyper::Method as Verb;
use serde_json::{Value, json};

use super::{
    engine::Engine,
    error::Refusal,
    knobs::Knobs,
    methods::{self, Call},
    oracle::{Oracle, OracleInstance},
    wire::{query::Query, route},
};
use crate::cloud::{CloudEngine as _, inject::CallContext};

/// The zone of most tests.
const ZONE: &str = "zones/us-central1-a";

/// A cloud on a manual clock.
struct Fixture {
    clock: Arc<ManualClock>,
    engine: Engine,
}

/// The minimal body of an insert.
fn body(name: &str) -> Value {
    json!({
        "name": name,
        "machineType": format!("{ZONE}/machineTypes/e2-small"),
        "disks": [{
            "boot": true,
            "autoDelete": true,
            "initializeParams": { "sourceImage": "projects/debian-cloud/global/images/family/debian-12" },
        }],
        "networkInterfaces": [{ "accessConfigs": [{ "type": "ONE_TO_ONE_NAT" }] }],
    })
}

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        // A failure takes as long as a success, unless a test sets it.
        knobs.timing.shortage = Duration::ZERO;
        configure(&mut knobs);
        let clock = Arc::new(ManualClock::new());
        let engine = Engine::new(knobs, clock.clone());
        Self { clock, engine }
    }

    /// Executes a call: a verb and a path below the project `p` (or from `/projects` on), and a body.
    fn call(&mut self, request: &str, body: &Value) -> Result<Value, Refusal> {
        self.call_with_context(request, body, &CallContext::default())
    }

    fn call_with_context(
        &mut self,
        request: &str,
        body: &Value,
        context: &CallContext,
    ) -> Result<Value, Refusal> {
        let (verb, path) = request.split_once(' ').unwrap();
        let path = match path.strip_prefix('/') {
            Some(absolute) => format!("/{absolute}"),
            None if path.is_empty() => "/projects/p".to_owned(),
            None => format!("/projects/p/{path}"),
        };
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let verb = Verb::from_bytes(verb.as_bytes()).unwrap();
        let (method, target) = route::find(&verb, path)?;
        let body = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        let call = Call {
            method,
            target,
            query: Query::read(method, query)?,
            body,
        };
        self.engine.catch_up();
        let response = methods::execute(&call, &mut self.engine, context)?;
        Ok(serde_json::from_str(&response).unwrap())
    }

    fn get(&mut self, path: &str) -> Value {
        self.ok(&format!("GET {path}"), &Value::Null)
    }

    fn post(&mut self, path: &str) -> Value {
        self.ok(&format!("POST {path}"), &Value::Null)
    }

    fn ok(&mut self, request: &str, body: &Value) -> Value {
        self.call(request, body)
            .unwrap_or_else(|refusal| panic!("{request}: {refusal:?}"))
    }

    /// Returns status and reason of the refusal of a call. Panics if the call succeeds.
    fn refusal(&mut self, request: &str, body: &Value) -> (u16, String) {
        match self.call(request, body) {
            Ok(response) => panic!("{request}: {response}"),
            Err(refusal) => (refusal.status, refusal.reason.into_owned()),
        }
    }

    fn insert(&mut self, body: &Value) -> Value {
        self.ok(&format!("POST {ZONE}/instances"), body)
    }

    /// Creates an instance and waits until it runs.
    fn insert_running(&mut self, name: &str) {
        self.insert(&body(name));
        self.advance(200);
    }

    /// Creates an instance and waits until it is stopped.
    fn insert_stopped(&mut self, name: &str) {
        self.insert_running(name);
        self.post(&format!("{ZONE}/instances/{name}/stop"));
        self.advance(200);
    }

    fn advance(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.engine.catch_up();
    }

    /// Returns an operation as it is now.
    fn operation(&mut self, response: &Value) -> Value {
        let name = response["name"].as_str().unwrap();
        self.get(&format!("{ZONE}/operations/{name}"))
    }

    fn oracle(&self) -> Oracle {
        Oracle::new(&self.engine, std::collections::BTreeMap::new(), Vec::new())
    }

    /// Returns the true state of an instance.
    fn oracle_instance(&self, name: &str) -> Option<OracleInstance> {
        let instances = self.oracle().instances;
        instances.into_iter().find(|instance| instance.name == name)
    }

    /// Returns the true state of an instance.
    fn status(&self, name: &str) -> String {
        self.oracle_instance(name)
            .map_or_else(|| "gone".to_owned(), |instance| instance.status)
    }
}

/// Returns the names of a list's items.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice);
    let items = items.unwrap_or_default().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

/// Returns the codes of an operation's errors.
fn codes(operation: &Value) -> Vec<&str> {
    let errors = operation["error"]["errors"].as_array().map(Vec::as_slice);
    let errors = errors.unwrap_or_default().iter();
    errors
        .map(|error| error["code"].as_str().unwrap())
        .collect()
}

fn reason(status: u16, reason: &str) -> (u16, String) {
    (status, reason.to_owned())
}
