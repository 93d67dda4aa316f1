//! Resource groups, locations, sizes, quotas and networks as documents.

use serde_json::{Value, json};

use crate::azure::{
    catalog::{Location, ResourceGroup, SecurityGroup, SizeSpec, VirtualNetwork},
    engine::Engine,
    knobs::Market,
    shapes::rules::default_rules,
};

/// The limit that is reported where no knob sets a quota.
const UNLIMITED: u64 = 100_000;

/// Returns the document of a resource group.
pub(crate) fn group(subscription: &str, group: &ResourceGroup) -> Value {
    json!({
        "id": format!("/subscriptions/{subscription}/resourceGroups/{}", group.name),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": group.location,
        "properties": { "provisioningState": "Succeeded" },
    })
}

/// Returns the document of a location. The display name is the name.
pub(crate) fn location(subscription: &str, location: &Location) -> Value {
    let name = &location.name;
    json!({
        "id": format!("/subscriptions/{subscription}/locations/{name}"),
        "name": name,
        "type": "Region",
        "displayName": name,
        "regionalDisplayName": name,
    })
}

/// Returns the document of a size.
pub(crate) fn size(size: &SizeSpec) -> Value {
    json!({
        "name": size.name,
        "numberOfCores": size.cores,
        "osDiskSizeInMB": 1_047_552,
        "resourceDiskSizeInMB": 16_384,
        "memoryInMB": size.memory_mib,
        "maxDataDiskCount": size.cores.saturating_mul(4),
    })
}

/// Returns a size as one location offers it, with its zones and restrictions. A restricted size has
/// the reason `NotAvailableForSubscription`.
pub(crate) fn sku(size: &SizeSpec, location: &Location) -> Value {
    let (name, place) = (&size.name, &location.name);
    let zones = location.zones.iter().filter(|zone| size.is_in(Some(zone)));
    let short = name.strip_prefix("Standard_").unwrap_or(name);
    let capability = |name: &str, value: String| json!({ "name": name, "value": value });
    let gib = u32::try_from(size.memory_mib).map_or(f64::MAX, |mib| f64::from(mib) / 1024.0);
    let restrictions = size.restricted.then(|| {
        json!({
            "type": "Location",
            "values": [place],
            "restrictionInfo": { "locations": [place] },
            "reasonCode": "NotAvailableForSubscription",
        })
    });
    json!({
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": short,
        "family": size.family,
        "locations": [place],
        "locationInfo": [{ "location": place, "zones": zones.collect::<Vec<_>>(), "zoneDetails": [] }],
        "capabilities": [
            capability("vCPUs", size.cores.to_string()),
            capability("MemoryGB", gib.to_string()),
            capability("CpuArchitectureType", size.architecture.clone()),
            capability("HyperVGenerations", "V1,V2".to_owned()),
            capability("LowPriorityCapable", "True".to_owned()),
        ],
        "restrictions": restrictions.into_iter().collect::<Vec<_>>(),
    })
}

/// Returns the quotas of a location: vCPUs, machines, spot vCPUs, and vCPUs by family.
pub(crate) fn usages(engine: &Engine, location: &str) -> Vec<Value> {
    let usage = |name: &str, label: &str, limit: Option<u64>, used: u64| {
        json!({
            "limit": limit.unwrap_or(UNLIMITED),
            "unit": "Count",
            "currentValue": used,
            "name": { "value": name, "localizedValue": label },
        })
    };
    let knobs = &engine.core.knobs;
    let (regular, spot) = (
        engine.cores_in(location, Market::OnDemand),
        engine.cores_in(location, Market::Spot),
    );
    let mut usages = vec![
        usage("cores", "Total Regional vCPUs", knobs.vcpu_quota, regular),
        usage(
            "virtualMachines",
            "Virtual Machines",
            knobs.vm_quota,
            engine.vms_in(location),
        ),
        usage(
            "lowPriorityCores",
            "Total Regional Low-priority vCPUs",
            knobs.spot_vcpu_quota,
            spot,
        ),
    ];
    let mut families: Vec<_> = knobs.sizes.iter().map(|size| &size.family).collect();
    families.sort_unstable();
    families.dedup();
    usages.extend(families.into_iter().map(|family| {
        let limit = knobs.family_quota.get(family).copied();
        let used = engine.cores_of_family(location, family);
        usage(family, &format!("{family} vCPUs"), limit, used)
    }));
    usages
}

/// Returns the document of a virtual network with its subnets.
pub(crate) fn network(subscription: &str, network: &VirtualNetwork) -> Value {
    let path = network_path(
        subscription,
        &network.resource_group,
        "virtualNetworks",
        &network.name,
    );
    let subnets = network.subnets.iter().map(|subnet| {
        json!({
            "name": subnet.name,
            "id": format!("{path}/subnets/{}", subnet.name),
            "type": "Microsoft.Network/virtualNetworks/subnets",
            "properties": {
                "provisioningState": "Succeeded",
                "addressPrefix": subnet.cidr,
                "privateEndpointNetworkPolicies": "Disabled",
                "privateLinkServiceNetworkPolicies": "Enabled",
            },
        })
    });
    let prefixes: Vec<_> = network.subnets.iter().map(|subnet| subnet.cidr).collect();
    json!({
        "name": network.name,
        "id": path,
        "type": "Microsoft.Network/virtualNetworks",
        "location": network.location,
        "properties": {
            "provisioningState": "Succeeded",
            "addressSpace": { "addressPrefixes": prefixes },
            "subnets": subnets.collect::<Vec<_>>(),
            "virtualNetworkPeerings": [],
            "enableDdosProtection": false,
        },
    })
}

/// Returns the document of a network security group of the catalog, which has only default rules.
pub(crate) fn security_group(subscription: &str, group: &SecurityGroup) -> Value {
    let kind = "networkSecurityGroups";
    let path = network_path(subscription, &group.resource_group, kind, &group.name);
    json!({
        "name": group.name,
        "id": path,
        "type": "Microsoft.Network/networkSecurityGroups",
        "location": group.location,
        "properties": {
            "provisioningState": "Succeeded",
            "securityRules": [],
            "defaultSecurityRules": default_rules(&path),
        },
    })
}

/// Returns the resource id of a network resource of the catalog.
fn network_path(subscription: &str, group: &str, kind: &str, name: &str) -> String {
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/{kind}/{name}"
    )
}
