//! Tests of the engine, operation by operation, on a manual clock.

mod catalog;
mod copies;
mod create;
mod delete;
mod determinism;
mod documents;
mod external_actions;
mod failures;
mod fleet;
mod groups;
mod images;
mod lag;
mod limits;
mod lists;
mod omissions;
mod power;
mod random_calls;
mod resources;
mod round_trips;
mod tags;
mod tasks;
mod update;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_chaos::ManualClock;
use serde_json::{Value, json};

use super::{
    actions,
    engine::Engine,
    error::Refusal,
    knobs::Knobs,
    oracle::{Oracle, OracleVm},
    wire::{operation::Operation, request::Request, response::ApiResponse, route::RouteMatch},
};
use crate::cloud::{CloudEngine as _, inject::CallContext};

/// An engine on a manual clock. Every call checks the invariants.
struct Fixture {
    clock: Arc<ManualClock>,
    engine: Engine,
}

/// The path of the virtual machines of most tests.
const VMS: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines";
const COMPUTE: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";
const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates an engine with changed knobs.
    fn with(change: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        // A failure takes as long as a success, unless a test sets it.
        knobs.timing.shortage = Duration::ZERO;
        change(&mut knobs);
        let clock = Arc::new(ManualClock::new());
        let engine = Engine::new(knobs, clock.clone());
        Self { clock, engine }
    }

    /// Executes a call, for example `PUT /path?query`. A null document means no body.
    fn call(&mut self, text: &str, body: Value) -> Result<ApiResponse, Refusal> {
        self.call_as(text, body, &CallContext::default())
    }

    /// Executes a call with injected faults.
    fn call_as(
        &mut self,
        text: &str,
        body: Value,
        context: &CallContext,
    ) -> Result<ApiResponse, Refusal> {
        let request = request(text, body);
        self.engine.catch_up();
        let response = actions::execute(&request, &mut self.engine, context);
        self.engine.check_invariants();
        response
    }

    /// Executes a call that must succeed, and returns the document.
    fn ok(&mut self, text: &str, body: Value) -> Value {
        let response = self.call(text, body);
        let response = response.unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        serde_json::from_str(&response.body).unwrap_or(Value::Null)
    }

    fn get(&mut self, path: &str) -> Value {
        self.ok(&format!("GET {path}"), Value::Null)
    }

    /// Executes a call that must be refused, and returns status and code.
    fn refused(&mut self, text: &str, body: Value) -> (u16, String) {
        match self.call(text, body) {
            Ok(response) => panic!("{text}: {response:?}"),
            Err(refusal) => (refusal.status, refusal.code.into_owned()),
        }
    }

    /// Creates or changes a virtual machine, and returns the response.
    fn put(&mut self, name: &str, body: Value) -> ApiResponse {
        let text = format!("PUT {VMS}/{name}");
        let response = self.call(&text, body);
        response.unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))
    }

    /// Creates a virtual machine and waits until it runs.
    fn running(&mut self, name: &str) {
        self.put(name, vm_body());
        self.advance(100);
        assert_eq!(self.vm(name).power_state.as_deref(), Some("running"));
    }

    /// Sends a `POST` to a virtual machine and waits for the operation.
    fn post(&mut self, name: &str, operation: &str) {
        self.ok(&format!("POST {VMS}/{name}/{operation}"), Value::Null);
        self.advance(100);
    }

    /// Deletes a virtual machine and waits for the operation.
    fn delete(&mut self, name: &str) {
        self.ok(&format!("DELETE {VMS}/{name}"), Value::Null);
        self.advance(100);
    }

    /// Advances the clock, and processes the events that are due.
    fn advance(&mut self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.engine.catch_up();
        self.engine.check_invariants();
    }

    /// Returns the true state.
    fn oracle(&self) -> Oracle {
        Oracle::new(&self.engine, BTreeMap::new(), Vec::new())
    }

    /// Returns the true state of a virtual machine.
    fn vm(&self, name: &str) -> OracleVm {
        let vms = self.oracle().vms;
        let vm = vms.into_iter().find(|vm| vm.name == name);
        vm.unwrap_or_else(|| panic!("no {name}"))
    }

    /// Polls the URL in a header of a response.
    fn follow(&mut self, response: &ApiResponse, header: &str) -> Result<ApiResponse, Refusal> {
        let url =
            header_of(response, header).unwrap_or_else(|| panic!("no {header}: {response:?}"));
        let path = url.strip_prefix("http://here").unwrap_or(&url).to_owned();
        self.call(&format!("GET {path}"), Value::Null)
    }

    /// Returns the status document of the operation that a response started.
    fn status(&mut self, response: &ApiResponse) -> Value {
        let status = self.follow(response, "azure-asyncoperation").unwrap();
        serde_json::from_str(&status.body).unwrap()
    }
}

fn header_of(response: &ApiResponse, name: &str) -> Option<String> {
    let header = response.headers.iter().find(|(known, _)| *known == name);
    header.map(|(_, value)| value.clone())
}

/// Parses a text such as `PUT /path?query` into a request.
fn request(text: &str, body: Value) -> Request {
    let (method, uri) = text.split_once(' ').unwrap_or(("GET", text));
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let segments: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(str::to_owned)
        .collect();
    let RouteMatch::Operation(operation, names) = Operation::route(method, &segments) else {
        panic!("no operation {text}");
    };
    let pairs = form_urlencoded::parse(query.as_bytes());
    let mut query: BTreeMap<String, String> = pairs
        .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
        .collect();
    query
        .entry("api-version".to_owned())
        .or_insert_with(|| "2024-11-01".to_owned());
    Request {
        operation: Some(operation),
        origin: "http://here".to_owned(),
        path: path.to_owned(),
        names,
        query,
        if_match: None,
        if_none_match: None,
        body: Some(body).filter(|body| !body.is_null()),
    }
}

/// Returns a valid document: one interface with a public address, all deleted with the machine.
fn vm_body() -> Value {
    json!({
        "location": "eastus",
        "tags": { "Owner": "me" },
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_B1s" },
            "storageProfile": {
                "imageReference": image(),
                "osDisk": { "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": {
                "adminUsername": "me",
                "customData": "aGVsbG8=",
                "linuxConfiguration": {
                    "disablePasswordAuthentication": true,
                    "ssh": { "publicKeys": [{ "path": "/home/me/.ssh/authorized_keys", "keyData": "ssh-rsa A" }] },
                },
            },
            "networkProfile": {
                "networkApiVersion": "2020-11-01",
                "networkInterfaceConfigurations": [{
                    "name": "nic",
                    "properties": {
                        "primary": true,
                        "deleteOption": "Delete",
                        "ipConfigurations": [{
                            "name": "ip",
                            "properties": {
                                "subnet": { "id": subnet() },
                                "publicIPAddressConfiguration": {
                                    "name": "public",
                                    "properties": { "deleteOption": "Delete" },
                                },
                            },
                        }],
                    },
                }],
            },
        },
    })
}

fn image() -> Value {
    json!({
        "publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy", "sku": "22_04-lts-gen2",
        "version": "latest",
    })
}

fn subnet() -> String {
    format!("{NETWORK}/virtualNetworks/vnet/subnets/default")
}

/// Returns the valid document with another value at a JSON pointer; null removes it.
fn vm_body_with(place: &str, value: Value) -> Value {
    let mut vm_body = vm_body();
    let (parent, name) = place.rsplit_once('/').unwrap();
    let parent = vm_body
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("no {parent}"));
    parent[name] = value;
    vm_body
}

/// The JSON pointer of the document's only interface.
const NIC: &str = "/properties/networkProfile/networkInterfaceConfigurations/0/properties";
