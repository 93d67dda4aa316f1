//! DescribeAvailabilityZones.
//!
//! The zones come from the knobs and are always `available`.

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        Engine,
        filter::{self, Filtered},
        record::Tags,
    },
    error::Refusal,
    shapes::catalog as shape,
    wire::xml::Set,
};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Zones {
    /// The zones, in the order of the knobs.
    availability_zone_info: Set<shape::Zone>,
}

/// A zone that can be filtered.
#[derive(Debug)]
struct Zone<'a> {
    /// The name, for example `us-east-1a`.
    name: &'a str,
    /// The id, for example `use1-az1`.
    id: String,
    /// The region.
    region: &'a str,
}

/// Describes zones by name, id and filters. `AllAvailabilityZones` has no effect, because every
/// zone is available to the account.
///
/// # Errors
///
/// `InvalidParameterValue` for an unknown name, id or filter.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (names, ids) = (root.list("ZoneName"), root.list("ZoneId"));
    let _all = root.flag("AllAvailabilityZones")?;
    let filters = call.filters()?;
    call.finish_read()?;
    filter::check::<Zone<'_>>(&filters)?;
    let region = engine.core.knobs.region.as_str();
    let zones: Vec<Zone<'_>> = engine
        .core
        .knobs
        .zones
        .iter()
        .map(|name| Zone {
            name,
            id: zone_id(engine, name),
            region,
        })
        .collect();
    let unknown: Vec<&str> = names
        .iter()
        .filter(|name| !zones.iter().any(|zone| zone.name == **name))
        .chain(
            ids.iter()
                .filter(|id| !zones.iter().any(|zone| zone.id == **id)),
        )
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        let message = format!("Invalid availability zones: [{}]", unknown.join(", "));
        return Err(Refusal::invalid(message));
    }
    let requested = |zone: &&Zone<'_>| {
        (names.is_empty() || names.iter().any(|name| name == zone.name))
            && (ids.is_empty() || ids.contains(&zone.id))
            && filter::passes(*zone, &filters)
    };
    let shapes = zones.iter().filter(requested).map(|zone| shape::Zone {
        zone_name: zone.name.to_owned(),
        zone_state: "available",
        region_name: region.to_owned(),
        zone_id: zone.id.clone(),
        group_name: region.to_owned(),
        network_border_group: region.to_owned(),
        zone_type: "availability-zone",
        opt_in_status: "opt-in-not-required",
        message_set: Set::default(),
    });
    call.respond(&Zones {
        availability_zone_info: shapes.collect(),
    })
}

/// Returns the id of a zone, which is the same in all accounts, unlike its name.
///
/// It has the region's short form and the position of the zone in the knobs.
pub(super) fn zone_id(engine: &Engine, zone: &str) -> String {
    let number = engine
        .core
        .knobs
        .zones
        .iter()
        .position(|other| other == zone)
        .unwrap_or_default()
        + 1;
    format!(
        "{}-az{number}",
        engine
            .core
            .knobs
            .region
            .replace("-east-", "e")
            .replace("-west-", "w")
    )
}

impl Filtered for Zone<'_> {
    /// The filters that the emulator has for zones.
    const NAMES: &'static [&'static str] = &[
        "opt-in-status",
        "region-name",
        "state",
        "zone-id",
        "zone-name",
        "zone-type",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let one = |value: &str| vec![value.to_owned()];
        match name {
            "opt-in-status" => one("opt-in-not-required"),
            "region-name" => one(self.region),
            "state" => one("available"),
            "zone-id" => one(&self.id),
            "zone-name" => one(self.name),
            "zone-type" => one("availability-zone"),
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}
