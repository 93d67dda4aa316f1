//! Disks, images, interfaces and public addresses as documents.

use std::time::Duration;

use serde_json::{Value, json};

use crate::azure::{
    engine::{
        Engine,
        disk::Disk,
        image::Image,
        nic::{Nic, NicAddress},
        public_ip::PublicIp,
    },
    wire::{body::Tags, body::without_nulls, id::Id},
};

/// Returns the members that every resource has, and its properties.
fn resource(id: &Id, location: &str, tags: &Tags, properties: &Value) -> Value {
    json!({
        "name": id.name,
        "id": id.path(),
        "type": id.kind.name(),
        "location": location,
        "tags": (!tags.is_empty()).then_some(tags),
        "properties": properties,
    })
}

/// Returns the document of a disk.
pub(crate) fn disk(engine: &Engine, disk: &Disk) -> Value {
    let from = if disk.os_type.is_some() {
        "FromImage"
    } else {
        "Empty"
    };
    let properties = json!({
        "osType": disk.os_type,
        "creationData": { "createOption": from },
        "diskSizeGB": disk.gib,
        "diskSizeBytes": u64::from(disk.gib) << 30,
        "timeCreated": engine.timestamp(disk.created),
        "provisioningState": disk.provisioning.name(),
        "diskState": engine.disk_state(disk),
        "uniqueId": disk.guid,
    });
    let mut document = resource(&disk.id, &disk.location, &disk.tags, &properties);
    document["zones"] = json!(disk.zone.as_ref().map(|zone| [zone]));
    document["managedBy"] = json!(disk.attached.as_ref().map(Id::path));
    let tier = disk.sku.split(['_', 'S']).next().unwrap_or_default();
    document["sku"] =
        json!({ "name": disk.sku, "tier": if tier.is_empty() { "Standard" } else { tier } });
    without_nulls(document)
}

/// Returns the document of an image.
pub(crate) fn image(image: &Image) -> Value {
    let source = image.source.as_ref().map(|vm| json!({ "id": vm.path() }));
    let disk = image.disk.as_ref().map(|disk| json!({ "id": disk.path() }));
    let properties = json!({
        "sourceVirtualMachine": source,
        "storageProfile": {
            "osDisk": {
                "osType": image.os_type,
                "osState": image.os_state,
                "diskSizeGB": image.gib,
                "managedDisk": disk,
                "caching": "ReadWrite",
                "storageAccountType": image.sku,
            },
            "dataDisks": [],
            "zoneResilient": false,
        },
        "provisioningState": image.provisioning.name(),
        "hyperVGeneration": image.generation.as_deref().unwrap_or("V2"),
    });
    without_nulls(resource(
        &image.id,
        &image.location,
        &image.tags,
        &properties,
    ))
}

/// Returns the document of a public address. `ipAddress` is omitted while none is allocated.
pub(crate) fn public_ip(ip: &PublicIp) -> Value {
    let properties = json!({
        "provisioningState": ip.provisioning.name(),
        "resourceGuid": ip.guid,
        "ipAddress": ip.address,
        "publicIPAddressVersion": "IPv4",
        "publicIPAllocationMethod": if ip.is_static { "Static" } else { "Dynamic" },
        "idleTimeoutInMinutes": ip.idle_minutes,
        "ipTags": [],
        "ipConfiguration": ip.attached.as_ref().map(|path| json!({ "id": path })),
    });
    let mut document = resource(&ip.id, &ip.location, &ip.tags, &properties);
    document["etag"] = json!(etag(&ip.guid));
    document["zones"] = json!((!ip.zones.is_empty()).then_some(&ip.zones));
    document["sku"] = json!({ "name": ip.sku, "tier": "Regional" });
    without_nulls(document)
}

/// Returns the document of an interface. With `publics`, its public addresses are expanded as of
/// that time; otherwise only their ids are returned.
pub(crate) fn nic(nic: &Nic, publics: Option<(&Engine, Option<Duration>)>) -> Value {
    let addresses = nic.addresses.iter();
    let addresses = addresses.map(|address| nic_address(nic, address, publics));
    let properties = json!({
        "provisioningState": nic.provisioning.name(),
        "resourceGuid": nic.guid,
        "ipConfigurations": addresses.collect::<Vec<_>>(),
        "dnsSettings": { "dnsServers": [], "appliedDnsServers": [] },
        "macAddress": nic.mac,
        "primary": nic.attached.as_ref().map(|_| true),
        "enableAcceleratedNetworking": nic.accelerated,
        "enableIPForwarding": nic.forwarding,
        "networkSecurityGroup": nic.group.as_ref().map(|id| json!({ "id": id })),
        "virtualMachine": nic.attached.as_ref().map(|vm| json!({ "id": vm.path() })),
        "hostedWorkloads": [],
        "tapConfigurations": [],
        "nicType": "Standard",
    });
    let mut document = resource(&nic.id, &nic.location, &nic.tags, &properties);
    document["etag"] = json!(etag(&nic.guid));
    without_nulls(document)
}

/// Returns one `ipConfiguration` of an interface.
fn nic_address(
    nic: &Nic,
    address: &NicAddress,
    publics: Option<(&Engine, Option<Duration>)>,
) -> Value {
    let public = address.public.as_ref().map(|(id, delete)| {
        let expanded = publics.and_then(|(engine, moment)| engine.ips.version_at(id, moment));
        let mut document = expanded.map_or_else(|| json!({ "id": id.path() }), |ip| public_ip(&ip));
        document["properties"]["deleteOption"] = json!(delete);
        document
    });
    json!({
        "name": address.name,
        "id": nic.address_path(&address.name),
        "etag": etag(&nic.guid),
        "type": "Microsoft.Network/networkInterfaces/ipConfigurations",
        "properties": {
            "provisioningState": nic.provisioning.name(),
            "privateIPAddress": address.private,
            "privateIPAllocationMethod": if address.is_static { "Static" } else { "Dynamic" },
            "privateIPAddressVersion": "IPv4",
            "subnet": { "id": address.subnet },
            "primary": address.primary,
            "publicIPAddress": public,
        },
    })
}

/// Returns the etag of a network resource. It does not change, unlike that of a virtual machine.
fn etag(guid: &str) -> String {
    format!("W/\"{guid}\"")
}
