//! What a backend declares in its first reply: its capabilities, and what its test environment offers.
//!
//! Owns the form of the declaration and its defaults. A field that the protocol does not have is refused, so that
//! a typing error never turns a part of the contract off.

use std::{collections::BTreeSet, time::Duration};

use fleetwright::{
    Capabilities, ImageId, InstanceConfig, InstanceId, InstanceType, Operation, Placement,
    TagLimits, Zone,
};
use fleetwright_contract_tests::{NotApplicable, Time, waiver::Peer};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{fault::FaultKind, message::PROTOCOL};

/// The declaration of a backend, checked.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub(crate) name: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) config: InstanceConfig,
    pub(crate) unknown_id: InstanceId,
    pub(crate) unknown_image: Option<ImageId>,
    pub(crate) unknown_type: Option<InstanceType>,
    pub(crate) other_image: Option<ImageId>,
    pub(crate) other_type: Option<InstanceType>,
    pub(crate) zone: Option<Zone>,
    pub(crate) not_applicable: Vec<NotApplicable>,
    pub(crate) policy_tag_keys: Vec<String>,
    pub(crate) placement: Option<Placement>,
    pub(crate) time: Time,
    pub(crate) budget: Duration,
    /// The calls with a default body that the backend implements itself.
    pub(crate) methods: BTreeSet<Operation>,
    pub(crate) oracle: bool,
    pub(crate) faults: BTreeSet<FaultKind>,
    pub(crate) late_failure_code: Option<String>,
    pub(crate) late_capacity_code: Option<String>,
    pub(crate) external_actor: bool,
    /// Whether the account survives the death of the process.
    pub(crate) restart: bool,
    pub(crate) peer: Option<Peer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(rename = "protocol")]
    _protocol: u32,
    name: String,
    capabilities: Map<String, Value>,
    config: InstanceConfig,
    unknown_id: InstanceId,
    unknown_image: Option<ImageId>,
    unknown_type: Option<InstanceType>,
    other_image: Option<ImageId>,
    other_type: Option<InstanceType>,
    zone: Option<Zone>,
    placement: Option<Placement>,
    #[serde(default)]
    not_applicable: Vec<NotApplicable>,
    #[serde(default)]
    policy_tag_keys: Vec<String>,
    #[serde(default)]
    time: TimeForm,
    budget_ms: Option<u64>,
    #[serde(default)]
    methods: BTreeSet<Operation>,
    #[serde(default)]
    oracle: bool,
    #[serde(default)]
    faults: BTreeSet<FaultKind>,
    late_failure_code: Option<String>,
    late_capacity_code: Option<String>,
    #[serde(default)]
    external_actor: bool,
    #[serde(default)]
    restart: bool,
    peer: Option<PeerForm>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimeForm {
    #[default]
    Real,
    Virtual,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerForm {
    name: String,
    version: String,
}

/// The calls that have a default body.
const WITH_DEFAULT_BODY: [Operation; 7] = [
    Operation::LaunchInstances,
    Operation::TerminateInstances,
    Operation::StopInstances,
    Operation::StartInstances,
    Operation::DescribeInstances,
    Operation::StreamInstances,
    Operation::AccountId,
];

impl Hello {
    /// Checks what a backend declared.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        // First of all: a later version may have another form.
        let spoken = value.get("protocol");
        if spoken.and_then(Value::as_u64) != Some(u64::from(PROTOCOL)) {
            let spoken = spoken.map_or_else(|| "none".to_owned(), Value::to_string);
            return Err(format!(
                "the backend speaks protocol version {spoken}, and this program {PROTOCOL}"
            ));
        }
        let form = Form::deserialize(value).map_err(|error| error.to_string())?;
        let known = |operation: &Operation| WITH_DEFAULT_BODY.contains(operation);
        if let Some(wrong) = form.methods.iter().find(|operation| !known(operation)) {
            return Err(format!(
                "methods: {wrong} has no default body; only those that have one are listed there"
            ));
        }
        let time = match form.time {
            TimeForm::Real => Time::Real,
            TimeForm::Virtual => Time::Virtual,
        };
        let budget = form.budget_ms.map(Duration::from_millis);
        Ok(Self {
            capabilities: capabilities(form.capabilities)?,
            name: form.name,
            config: form.config,
            unknown_id: form.unknown_id,
            unknown_image: form.unknown_image,
            unknown_type: form.unknown_type,
            other_image: form.other_image,
            other_type: form.other_type,
            zone: form.zone,
            not_applicable: form.not_applicable,
            policy_tag_keys: form.policy_tag_keys,
            placement: form.placement,
            time,
            budget: budget.unwrap_or(time.default_budget()),
            methods: form.methods,
            oracle: form.oracle,
            faults: form.faults,
            late_failure_code: form.late_failure_code,
            late_capacity_code: form.late_capacity_code,
            external_actor: form.external_actor,
            restart: form.restart,
            peer: form
                .peer
                .map(|PeerForm { name, version }| Peer { name, version }),
        })
    }
}

/// Completes the declared capabilities with the weakest promises, which [`Capabilities::new`] has.
fn capabilities(declared: Map<String, Value>) -> Result<Capabilities, String> {
    let wrong = |error: serde_json::Error| format!("capabilities: {error}");
    for required in ["provider", "tags", "max_user_data_bytes"] {
        if !declared.contains_key(required) {
            return Err(format!("capabilities: {required} is missing"));
        }
    }
    let weakest = Capabilities::new("", TagLimits::new(0, 0, 0), 0);
    let mut complete = serde_json::to_value(weakest).map_err(wrong)?;
    for (field, value) in declared {
        match complete.get_mut(&field) {
            Some(slot) => *slot = value,
            None => return Err(format!("capabilities: there is no field {field}")),
        }
    }
    serde_json::from_value(complete).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn smallest() -> Value {
        json!({
            "protocol": 1,
            "name": "mine",
            "capabilities": {
                "provider": "mine",
                "tags": {"max_tags": 10, "max_key_chars": 64, "max_value_chars": 128},
                "max_user_data_bytes": 4096,
            },
            "config": {"image": "image-1", "instance_type": "small"},
            "unknown_id": "i-0",
        })
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut value = smallest();
        change(&mut value);
        Hello::parse(&value).unwrap_err()
    }

    #[test]
    fn smallest_declaration_offers_nothing() {
        let hello = Hello::parse(&smallest()).unwrap();
        let weakest = Capabilities::new("mine", TagLimits::new(10, 64, 128), 4096);
        assert_eq!(hello.capabilities, weakest);
        assert_eq!(
            (hello.time, hello.budget),
            (Time::Real, Duration::from_secs(10))
        );
        assert!(!hello.oracle && !hello.external_actor && !hello.restart);
        assert!(hello.faults.is_empty() && hello.methods.is_empty());
    }

    #[test]
    fn wrong_declarations_are_refused_by_name() {
        let other = refused(|value| value["protocol"] = json!(2));
        assert!(other.contains("version 2"), "{other}");
        let typing_error = refused(|value| value["orakle"] = json!(true));
        assert!(typing_error.contains("orakle"), "{typing_error}");
        let field = refused(|value| value["capabilities"]["poll"] = json!(1));
        assert_eq!(field, "capabilities: there is no field poll");
        let missing = refused(|value| value["capabilities"] = json!({"provider": "mine"}));
        assert_eq!(missing, "capabilities: tags is missing");
        let method = refused(|value| value["methods"] = json!(["launch_instance"]));
        assert!(
            method.contains("launch_instance has no default body"),
            "{method}"
        );
        let fault = refused(|value| value["faults"] = json!(["fire"]));
        assert!(fault.contains("fire"), "{fault}");
    }
}
