//! What an account has: attributes, regions, offerings of instance types.

use super::{Call, zones::zone_id};
use crate::ec2::{
    catalog::VPC,
    engine::{Engine, filter::Filtered, record::Tags},
    error::Refusal,
    wire::tree::Tree,
};

/// The attributes of the account. The limits are those of a new account (Amazon EC2 API reference, "AccountAttribute"); the emulator
/// enforces those of the knobs.
const ATTRIBUTES: [(&str, &str); 6] = [
    ("supported-platforms", "VPC"),
    ("default-vpc", VPC),
    ("max-instances", "20"),
    ("vpc-max-security-groups-per-interface", "5"),
    ("max-elastic-ips", "5"),
    ("vpc-max-elastic-ips", "5"),
];

/// Describes attributes of the account.
///
/// # Errors
///
/// `InvalidParameterValue` for an unknown name.
pub(super) fn attributes(call: &Call<'_>) -> Result<String, Refusal> {
    let names = call.root().list("AttributeName");
    call.finish_read()?;
    let known = |name: &&String| ATTRIBUTES.iter().any(|(known, _)| known == *name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let message = format!("Value ({name}) for parameter attributeName is invalid.");
        return Err(Refusal::invalid(message));
    }
    let named =
        |(name, _): &&(&str, &str)| names.is_empty() || names.iter().any(|other| other == name);
    let found = ATTRIBUTES.iter().filter(named).map(|(name, value)| {
        Tree::default().text("attributeName", name).set(
            "attributeValueSet",
            [Tree::default().text("attributeValue", value)],
        )
    });
    call.respond_list("accountAttributeSet", found, None)
}

/// The region, as its filters see it.
struct Region(String);

/// Describes the one region.
///
/// # Errors
///
/// `InvalidParameterValue` for another one.
pub(super) fn regions(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let _all = call.root().flag("AllRegions")?;
    let all = vec![Region(engine.core.knobs.region.clone())];
    let missing = |name: &str| Refusal::invalid(format!("Invalid region names provided: {name}"));
    let (found, _) = call.select(engine, all, ("RegionName", |region| &region.0), missing)?;
    let tree = |Region(name): &Region| {
        Tree::default()
            .text("regionName", name)
            .text("regionEndpoint", format!("ec2.{name}.amazonaws.com"))
            .text("optInStatus", "opt-in-not-required")
    };
    call.respond_list("regionInfo", found.iter().map(tree), None)
}

impl Filtered for Region {
    /// The filters of regions.
    const NAMES: &'static [&'static str] = &["endpoint", "opt-in-status", "region-name"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "endpoint" => vec![format!("ec2.{}.amazonaws.com", self.0)],
            "opt-in-status" => vec!["opt-in-not-required".to_owned()],
            "region-name" => vec![self.0.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}

/// An instance type in a location.
struct Offering {
    /// The instance type.
    kind: String,
    /// The region, the zone, or the zone's id.
    location: String,
}

/// Describes where instance types are offered: in the region, in zones or in zone ids.
///
/// # Errors
///
/// `InvalidParameterValue` for another type of location.
pub(super) fn offerings(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let kinds = ["region", "availability-zone", "availability-zone-id"].map(|kind| (kind, kind));
    let kind = call
        .root()
        .choice("LocationType", &kinds)?
        .unwrap_or("region");
    let knobs = &engine.core.knobs;
    let mut all = Vec::new();
    for spec in &knobs.types {
        let zones = knobs.zones.iter().filter(|zone| spec.is_in(zone));
        let locations: Vec<String> = match kind {
            "region" => vec![knobs.region.clone()],
            "availability-zone" => zones.cloned().collect(),
            _ => zones.map(|zone| zone_id(engine, zone)).collect(),
        };
        all.extend(locations.into_iter().map(|location| Offering {
            kind: spec.name.clone(),
            location,
        }));
    }
    // No parameter of the action names one offering.
    let missing = |_: &str| Refusal::internal();
    let by_kind: (_, fn(&Offering) -> &str) = ("InstanceTypeOffering", |offering| &offering.kind);
    let (found, next) = call.select(engine, all, by_kind, missing)?;
    let tree = |offering: &Offering| {
        Tree::default()
            .text("instanceType", &offering.kind)
            .text("locationType", kind)
            .text("location", &offering.location)
    };
    call.respond_list("instanceTypeOfferingSet", found.iter().map(tree), next)
}

impl Filtered for Offering {
    /// The filters of offerings.
    const NAMES: &'static [&'static str] = &["instance-type", "location"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "instance-type" => vec![self.kind.clone()],
            "location" => vec![self.location.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}
