//! Serialization: values round-trip, unknown fields are ignored, invalid values are rejected.

use std::fmt::Debug;

use fleetwright::{
    Capabilities, InstanceConfig, InstanceFilter, InstanceInfo, InstanceStatus, LaunchRecord,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};

use crate::arbitrary;

/// Checks that `value` round-trips, also with an unknown field at each of `places`.
fn round_trips<T>(value: &T, places: &[&str]) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = serde_json::to_string(value).unwrap();
    prop_assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    let mut later: Value = serde_json::from_str(&text).unwrap();
    for place in places {
        let object = later.pointer_mut(place).and_then(Value::as_object_mut);
        let before = object.unwrap().insert("later".into(), json!({"x": [1]}));
        prop_assert!(before.is_none());
    }
    prop_assert_eq!(&from_value::<T>(later).unwrap(), value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_config_round_trips(config in arbitrary::config()) {
        round_trips(&config, &["", "/placement"])?;
    }

    #[test]
    fn any_info_and_its_status_round_trip(info in arbitrary::info()) {
        round_trips(&info, &["", "/placement"])?;
        round_trips(&InstanceStatus::from(info), &[""])?;
    }

    #[test]
    fn any_filter_round_trips(filter in arbitrary::filter()) {
        round_trips(&filter, &[""])?;
    }

    #[test]
    fn any_capabilities_round_trip(declared in arbitrary::capabilities()) {
        round_trips(&declared, &["", "/tags"])?;
    }

    #[test]
    fn any_launch_record_round_trips(record in arbitrary::record()) {
        let (kind, count) = match &record {
            LaunchRecord::Found(instances) => ("found", instances.len()),
            LaunchRecord::Terminated(instances) => ("terminated", instances.len()),
            LaunchRecord::NotFound => ("not_found", 0),
        };
        let places: Vec<_> = (0..count)
            .flat_map(|at| ["", "/placement"].map(|part| format!("/{kind}/{at}{part}")))
            .collect();
        let places: Vec<_> = places.iter().map(String::as_str).collect();
        round_trips(&record, &places)?;
    }
}

#[test]
fn optional_fields_may_be_left_out() {
    let config = InstanceConfig::builder("image-7", "small").build().unwrap();
    let least = json!({"image": "image-7", "instance_type": "small"});
    assert_eq!(from_value::<InstanceConfig>(least).unwrap(), config);
    let written = json!({"image": "image-7", "instance_type": "small", "placement": {}});
    assert_eq!(to_value(config).unwrap(), written);
    let least = json!({"id": "i-1", "state": "running"});
    let info: InstanceInfo = from_value(least.clone()).unwrap();
    let status: InstanceStatus = from_value(least).unwrap();
    assert_eq!(InstanceStatus::from(info), status);
    let filter: InstanceFilter = from_value(json!({})).unwrap();
    assert_eq!(filter, InstanceFilter::new());
}

#[test]
fn invalid_config_is_not_deserialized() {
    let cases = [
        (json!({"image": ""}), "image: is empty"),
        (json!({"image": null}), "expected a string"),
        (json!({"instance_type": " "}), "instance type: is empty"),
        (json!({"user_data": ""}), "user data: is empty"),
        (json!({"user_data": "?"}), "user data: is not base64"),
        (json!({"disk_size_gb": 0}), "nonzero u32"),
        (json!({"disk_size_gb": -1}), "nonzero u32"),
        (
            json!({"launch_token": "x".repeat(129)}),
            "launch token: has 129 characters; the limit is 128",
        ),
        (json!({"launch_token": "é"}), "launch token: contains 'é'"),
        (
            json!({"tags": {"Fleetwright:fp": "x"}}),
            "reserved prefix \"fleetwright:\"",
        ),
        (json!({"tags": {"": "x"}}), "tags: is empty"),
        (
            json!({"placement": {"zone": ""}}),
            "placement.zone: is empty",
        ),
        (
            json!({"placement": {"security_groups": ["a b"]}}),
            "placement.security_groups: contains ' '",
        ),
        (json!({"placement": {"market": "Spot"}}), "unknown variant"),
    ];
    for (wrong, part) in cases {
        let mut json = json!({"image": "image-7", "instance_type": "small"});
        let fields = json.as_object_mut().unwrap();
        fields.extend(wrong.as_object().unwrap().clone());
        let error = from_value::<InstanceConfig>(json).unwrap_err().to_string();
        assert!(error.contains(part), "{wrong}: {error}");
    }
    for missing in [json!({"image": "image-7"}), json!({"instance_type": "s"})] {
        let error = from_value::<InstanceConfig>(missing).unwrap_err();
        assert!(error.to_string().contains("missing field"), "{error}");
    }
}

#[test]
fn capabilities_are_deserialized_completely_or_refused() {
    let error = from_value::<Capabilities>(json!({"provider": "x"})).unwrap_err();
    assert!(error.to_string().contains("missing field"), "{error}");
}
