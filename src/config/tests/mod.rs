//! What a builder takes and refuses, and what a backend refuses.

mod fingerprint;

use super::*;
use crate::{
    Market, NetworkId, PlacementField, PublicAddress, RESERVED_PREFIX, SecurityGroupId, TagLimits,
    Zone,
};

fn builder() -> ConfigBuilder {
    InstanceConfig::builder("image-7", "small")
}

/// A placement with every field set.
fn placed() -> Placement {
    Placement {
        zone: Some(Zone::new("eu-1a").unwrap()),
        network: Some(NetworkId::new("net-1").unwrap()),
        security_groups: ["web", "db"]
            .map(|group| SecurityGroupId::new(group).unwrap())
            .into(),
        public_address: Some(PublicAddress::Assigned),
        market: Some(Market::Spot),
    }
}

/// A config with every field set.
fn full() -> InstanceConfig {
    builder()
        .user_data(b"#!/bin/sh\n\0\xff")
        .tag("ManagedBy", "my-fleet")
        .tag("Größe", "")
        .disk_size_gb(20)
        .launch_token("runner-17/attempt-1")
        .placement(placed())
        .build()
        .unwrap()
}

/// Capabilities under which `full` passes, with no room to spare.
fn enough() -> Capabilities {
    let mut declared = Capabilities::new("x", TagLimits::new(2, 9, 8), 12);
    declared.placement = PlacementField::ALL.into();
    declared
}

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

#[test]
fn builder_names_the_invalid_field() {
    let long = "x".repeat(129);
    let cases = [
        (
            InstanceConfig::builder("", "small"),
            "image: is empty; give a value or leave the field out",
        ),
        (
            InstanceConfig::builder("image-7", " "),
            "instance type: is empty; give a value or leave the field out",
        ),
        (
            builder().disk_size_gb(0),
            "disk size: is zero; give at least 1 or leave the field out",
        ),
        (
            builder().user_data(""),
            "user data: is empty; give a value or leave the field out",
        ),
        (
            builder().launch_token("a b"),
            "launch token: contains ' '; use only visible ASCII characters",
        ),
        (
            builder().launch_token(long),
            "launch token: has 129 characters; the limit is 128",
        ),
        (
            builder().tag("", "v"),
            "tags: is empty; give a value or leave the field out",
        ),
        (
            builder().tag(format!("{RESERVED_PREFIX}token"), "v"),
            "tags[\"fleetwright:token\"]: starts with the reserved prefix \"fleetwright:\"; choose another name",
        ),
    ];
    for (builder, message) in cases {
        assert_eq!(builder.build().unwrap_err().to_string(), message);
    }
}

#[test]
fn builder_returns_the_first_invalid_value() {
    let wrong = [
        InstanceConfig::builder("", "").disk_size_gb(0),
        InstanceConfig::builder("i", "")
            .disk_size_gb(0)
            .user_data(""),
        builder().disk_size_gb(0).user_data("").launch_token(""),
        builder().user_data("").disk_size_gb(0).tag("", ""),
        builder().launch_token("").tag("", "").placement(placed()),
        builder().tag("", "").launch_token("").tags(&full().tags),
    ];
    let fields = wrong.map(|builder| builder.build().unwrap_err().field().to_owned());
    let expected = [
        "image",
        "instance type",
        "disk size",
        "user data",
        "launch token",
        "tags",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn builder_sets_each_field_and_the_last_value_wins() {
    let InstanceConfig {
        image,
        instance_type,
        user_data,
        tags,
        disk_size_gb,
        launch_token,
        placement,
        batch,
    } = builder()
        .user_data("old")
        .user_data("new")
        .tag("kept", "1")
        .tag("ManagedBy", "nobody")
        .tags(&full().tags)
        .disk_size_gb(1)
        .disk_size_gb(20)
        .launch_token("old")
        .launch_token("new")
        .placement(Placement::default())
        .placement(placed())
        .build()
        .unwrap();
    assert_eq!(
        (image.as_str(), instance_type.as_str()),
        ("image-7", "small")
    );
    assert_eq!(user_data.unwrap().as_bytes(), b"new");
    assert_eq!(tags, full().tags.with("kept", "1").unwrap());
    assert_eq!(disk_size_gb, Some(count(20)));
    assert_eq!(launch_token.unwrap().as_str(), "new");
    assert_eq!(placement, placed());
    assert_eq!(batch, None);
}

#[test]
fn config_within_the_limits_passes() {
    assert_eq!(full().check(&enough()), Ok(()));
    let nothing = Capabilities::new("x", TagLimits::new(0, 0, 0), 0);
    assert_eq!(builder().build().unwrap().check(&nothing), Ok(()));
}

#[test]
fn config_beyond_a_limit_is_refused_with_field_and_limit() {
    let mut few_tags = enough();
    few_tags.tags.max_tags = 1;
    let mut little_data = enough();
    little_data.max_user_data_bytes = 11;
    for (declared, message) in [
        (few_tags, "tags: has 2 entries; the limit is 1"),
        (little_data, "user data: has 12 bytes; the limit is 11"),
    ] {
        let error = full().check(&declared).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn each_placement_field_that_is_not_offered_is_refused() {
    for field in PlacementField::ALL {
        let mut declared = enough();
        declared.placement.remove(&field);
        let error = full().check(&declared).unwrap_err();
        let message = format!(
            "{}: is not supported by this backend; leave it unset",
            field.path()
        );
        assert_eq!(error.to_string(), message);
    }
    let mut none = enough();
    none.placement.clear();
    let error = full().check(&none).unwrap_err();
    assert_eq!(error.field(), "placement.zone");
    let on_demand = Placement {
        market: Some(Market::OnDemand),
        ..Placement::default()
    };
    let config = builder().placement(on_demand).build().unwrap();
    assert_eq!(config.check(&none), Ok(()), "it is what every cloud sells");
}

#[test]
fn user_data_is_never_shown() {
    let builder = builder().user_data("export TOKEN=hunter2");
    let config = builder.clone().build().unwrap();
    let nothing = Capabilities::new("x", TagLimits::new(0, 0, 0), 0);
    let error = config.check(&nothing).unwrap_err();
    let shown = format!("{builder:?} {config:?} {config:#?} {error} {error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("UserData(20 bytes)"), "{shown}");
}
