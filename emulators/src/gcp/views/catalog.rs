//! Documents of the catalog: `Zone`, `Region`, `MachineType`, `DiskType`, `Network`, `Subnetwork`,
//! `Project`.
//!
//! These resources exist from the start and never change; their ids are derived from their paths.

use serde_json::{Value, json};

use super::{derived_id, without_empty, zone_link};
use crate::gcp::{
    catalog::{MachineType, Subnetwork, region_of},
    engine::Engine,
    wire::link::link,
};

/// The creation time of everything in the catalog: the start of 1970, in Pacific time.
const CATALOG_CREATED: &str = "1969-12-31T16:00:00.000-08:00";

/// Returns the document of a zone: `UP`, or `DOWN` if the knobs make it unreachable.
pub(crate) fn zone(engine: &Engine, project: &str, zone: &str) -> Value {
    let path = format!("projects/{project}/zones/{zone}");
    let unreachable = engine.core.knobs.unreachable_zones.contains(zone);
    json!({
        "kind": "compute#zone",
        "id": derived_id(&path),
        "creationTimestamp": CATALOG_CREATED,
        "name": zone,
        "description": zone,
        "status": if unreachable { "DOWN" } else { "UP" },
        "region": link(&format!("projects/{project}/regions/{}", region_of(zone))),
        "selfLink": link(&path),
        "availableCpuPlatforms": ["Unknown CPU Platform"],
        "supportsPzs": false,
    })
}

/// Returns the document of a region, with its zones and quotas.
pub(crate) fn region(engine: &Engine, project: &str, region: &str) -> Value {
    let path = format!("projects/{project}/regions/{region}");
    let zones = engine
        .core
        .knobs
        .zones
        .iter()
        .filter(|zone| region_of(zone) == region);
    let zones: Vec<_> = zones.map(|zone| zone_link(project, zone)).collect();
    json!({
        "kind": "compute#region",
        "id": derived_id(&path),
        "creationTimestamp": CATALOG_CREATED,
        "name": region,
        "description": region,
        "status": "UP",
        "zones": zones,
        "quotas": quotas(engine, region),
        "selfLink": link(&path),
        "supportsPzs": false,
    })
}

/// Returns the quotas of a region with their usage. A quota that no knob sets has the limit
/// 1000000.
#[expect(
    clippy::cast_precision_loss,
    reason = "quotas are doubles on the wire, and far below 2^53"
)]
fn quotas(engine: &Engine, region: &str) -> Vec<Value> {
    let limit = |knob: Option<u64>| knob.map_or(1e6, |limit| limit as f64);
    let knobs = &engine.core.knobs;
    engine
        .quota_usage(region)
        .into_iter()
        .zip([knobs.cpu_quota, knobs.spot_cpu_quota, knobs.instance_quota])
        .map(|((metric, usage), knob)| {
            json!({ "metric": metric, "limit": limit(knob), "usage": usage as f64 })
        })
        .collect()
}

/// Returns the document of a machine type in a zone. `zone` is the bare name in this document.
pub(crate) fn machine_type(project: &str, zone: &str, spec: &MachineType) -> Value {
    let path = format!("projects/{project}/zones/{zone}/machineTypes/{}", spec.name);
    json!({
        "kind": "compute#machineType",
        "id": derived_id(&spec.name),
        "creationTimestamp": CATALOG_CREATED,
        "name": spec.name,
        "description": format!("{} vCPUs, {} MB RAM", spec.cpus, spec.memory_mb),
        "guestCpus": spec.cpus,
        "memoryMb": spec.memory_mb,
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "zone": zone,
        "selfLink": link(&path),
        "isSharedCpu": spec.shared,
        "architecture": spec.architecture,
    })
}

/// Returns the document of a disk type in a zone.
pub(crate) fn disk_type(project: &str, zone: &str, name: &str) -> Value {
    let path = format!("projects/{project}/zones/{zone}/diskTypes/{name}");
    json!({
        "kind": "compute#diskType",
        "id": derived_id(name),
        "creationTimestamp": CATALOG_CREATED,
        "name": name,
        "description": name,
        "validDiskSize": "10GB-65536GB",
        "defaultDiskSizeGb": "10",
        "zone": zone_link(project, zone),
        "selfLink": link(&path),
    })
}

/// Returns the document of a network, with its subnetworks.
pub(crate) fn network(engine: &Engine, project: &str, network: &str) -> Value {
    let path = format!("projects/{project}/global/networks/{network}");
    let members = engine
        .core
        .knobs
        .subnetworks
        .iter()
        .filter(|known| known.network == network);
    let subnetworks: Vec<_> = members
        .map(|known| link(&subnetwork_path(project, known)))
        .collect();
    json!({
        "kind": "compute#network",
        "id": derived_id(&path),
        "creationTimestamp": CATALOG_CREATED,
        "name": network,
        "autoCreateSubnetworks": true,
        "subnetworks": subnetworks,
        "routingConfig": { "routingMode": "REGIONAL" },
        "selfLink": link(&path),
        "selfLinkWithId": link(&format!("projects/{project}/global/networks/{}", derived_id(&path))),
        "mtu": 1460,
    })
}

/// Returns the document of a subnetwork. The gateway is the first address after the network's.
pub(crate) fn subnetwork(project: &str, known: &Subnetwork) -> Value {
    let path = subnetwork_path(project, known);
    let gateway = u32::from(known.cidr.network()).saturating_add(1);
    without_empty(json!({
        "kind": "compute#subnetwork",
        "id": derived_id(&path),
        "creationTimestamp": CATALOG_CREATED,
        "name": known.name,
        "network": link(&format!("projects/{project}/global/networks/{}", known.network)),
        "ipCidrRange": known.cidr,
        "gatewayAddress": std::net::Ipv4Addr::from(gateway),
        "region": link(&format!("projects/{project}/regions/{}", known.region)),
        "selfLink": link(&path),
        "privateIpGoogleAccess": false,
        "purpose": "PRIVATE",
        "stackType": "IPV4_ONLY",
    }))
}

/// Returns the path of a subnetwork below the API root.
fn subnetwork_path(project: &str, known: &Subnetwork) -> String {
    format!(
        "projects/{project}/regions/{}/subnetworks/{}",
        known.region, known.name
    )
}

/// Returns the document of a project, which any valid name has.
pub(crate) fn project(name: &str) -> Value {
    let path = format!("projects/{name}");
    let number = derived_id(&path);
    json!({
        "kind": "compute#project",
        "id": number,
        "creationTimestamp": CATALOG_CREATED,
        "name": name,
        "commonInstanceMetadata": { "kind": "compute#metadata", "fingerprint": "AAAAAAAAAAA=" },
        "quotas": [],
        "selfLink": link(&path),
        "defaultServiceAccount": format!("{number}-compute@developer.gserviceaccount.com"),
        "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
        "defaultNetworkTier": "PREMIUM",
    })
}
