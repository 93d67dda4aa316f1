//! The document of the protocol, compared with the code: its examples, and the names in its tables.

use std::collections::BTreeMap;

use fleetwright::{
    ErrorKind, InstanceConfig, InstanceFilter, InstanceInfo, InstanceStatus, LaunchRecord,
    Operation, OptionalVerb, PlacementField, Scope,
};
use fleetwright_contract_tests::{WireFault, WireOp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    fault::{FaultKind, operation_name},
    handle::{Item, WireListItem},
    hello::Hello,
    message::{Reply, Request, parse_reply},
    parts::WireTruth,
};

const DOCUMENT: &str = include_str!("../../../docs/exec-protocol.md");

/// Returns the examples that start with `mark`.
fn examples(mark: &str) -> Vec<&'static str> {
    let lines = DOCUMENT.lines();
    let found: Vec<_> = lines.filter_map(|line| line.strip_prefix(mark)).collect();
    assert!(found.len() > 10, "the examples start with {mark}");
    found
}

fn requests() -> BTreeMap<u64, Request> {
    let requests = examples("→ ").into_iter().map(|line| {
        let request: Request = serde_json::from_str(line).unwrap();
        let written: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), written);
        (request.id, request)
    });
    requests.collect()
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

#[test]
fn parameters_have_the_core_forms() {
    for request in requests().into_values() {
        if let Some(written) = request.params.get("config") {
            let config: InstanceConfig = read(written);
            assert_eq!(serde_json::to_value(config).unwrap(), *written);
        }
        if let Some(written) = request.params.get("filter") {
            let filter: InstanceFilter = read(written);
            assert_eq!(serde_json::to_value(filter).unwrap(), *written);
        }
    }
}

#[test]
fn every_reply_answers_its_request() {
    let requests = requests();
    for line in examples("← ") {
        let (id, reply) = parse_reply(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let result = match (reply, requests.get(&id)) {
            (Reply::Result(result), Some(request)) => (request.method.as_str(), result),
            (Reply::Page(items), Some(_)) => {
                items
                    .iter()
                    .for_each(|item| drop(read::<WireListItem>(item)));
                continue;
            }
            (Reply::Error(_) | Reply::Hangs, _) => continue,
            (other, None) => panic!("{other:?} answers nothing"),
        };
        match result {
            ("hello", declared) => drop(Hello::parse(&declared).unwrap()),
            ("launch_instance", info) => drop(read::<InstanceInfo>(&info)),
            ("describe_instance", status) => drop(read::<InstanceStatus>(&status)),
            ("list_instances", list) => drop(read::<Vec<InstanceInfo>>(&list)),
            ("find_launch", record) => drop(read::<LaunchRecord>(&record)),
            ("describe_instances", items) => drop(read::<Vec<Item<InstanceStatus>>>(&items)),
            ("oracle.instances", truths) => drop(read::<Vec<WireTruth>>(&truths)),
            ("actor.disconnect", scope) => drop(read::<Scope>(&scope)),
            ("open" | "close" | "stream_instances" | "faults.inject", null) => {
                assert!(null.is_null());
            }
            (other, _) => panic!("the example of {other} is not checked"),
        }
    }
}

#[test]
fn every_name_is_in_the_document() {
    let mut names: Vec<String> = Vec::new();
    names.extend(Operation::ALL.iter().map(ToString::to_string));
    names.extend(OptionalVerb::ALL.map(|verb| Operation::from(verb).to_string()));
    names.extend(ErrorKind::ALL.map(|kind| {
        serde_json::to_value(kind)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }));
    names.extend(PlacementField::ALL.map(|field| field.path().replace("placement.", "")));
    let faults = [
        WireFault::Throttled(std::time::Duration::ZERO),
        WireFault::BadCredentials,
        WireFault::Forbidden,
        WireFault::Capacity,
        WireFault::Quota,
        WireFault::StaleRead,
        WireFault::UnknownState(String::new()),
        WireFault::FailsLate(String::new()),
        WireFault::Hang,
        WireFault::CrashBefore,
        WireFault::CrashAfter,
    ];
    let kinds = faults
        .iter()
        .chain(&WireFault::AMBIGUOUS)
        .map(FaultKind::of);
    names.extend(kinds.map(|kind| kind.name().to_owned()));
    let operations = [
        WireOp::Any,
        WireOp::Launch,
        WireOp::Terminate,
        WireOp::Stop,
        WireOp::Start,
        WireOp::Describe,
        WireOp::List,
        WireOp::FindLaunch,
        WireOp::UpdateTags,
    ];
    names.extend(operations.map(|operation| operation_name(operation).to_owned()));
    for name in names {
        assert!(
            DOCUMENT.contains(&format!("`{name}`")),
            "{name} is not in the document"
        );
    }
}
