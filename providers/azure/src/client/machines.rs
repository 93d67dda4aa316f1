//! Conversion of the SDK's documents of machines and images. Pure.
//!
//! Owns which fields must be present. Everything but the identity of a machine may be missing.

use std::collections::BTreeMap;

use azure_mgmt_compute::package_2024_07_01::models::{
    Image, ImageReference, Priority, VirtualMachine, VirtualMachineProperties,
};
use chrono::DateTime;
use serde_json::Value;

use crate::{
    address::last_part,
    error::{Cause, Failure},
    machine::{ImageRecord, Machine, Status},
};

/// Converts a machine. The error says what is missing in the document.
pub(super) fn machine(document: VirtualMachine) -> Result<Machine, Failure> {
    let machine = status(document)?;
    if machine.vm_id.is_empty() {
        let message = "a virtual machine without a vmId";
        return Err(Failure::new(Cause::Unreadable, message));
    }
    Ok(machine)
}

/// Converts the entry of a list of states, which omits most fields.
pub(super) fn status(document: VirtualMachine) -> Result<Machine, Failure> {
    let unreadable = |message: &str| Failure::new(Cause::Unreadable, message);
    let path = document.resource.id;
    let path = path.ok_or_else(|| unreadable("a virtual machine without a resource id"))?;
    let name = document.resource.name;
    let name = name.unwrap_or_else(|| last_part(&path).to_owned());
    let properties = document.properties.unwrap_or_default();
    let vm_id = properties.vm_id.clone().unwrap_or_default();
    let created = properties.time_created;
    let created = created.and_then(|created| {
        let millis = created.unix_timestamp_nanos() / 1_000_000;
        DateTime::from_timestamp_millis(i64::try_from(millis).ok()?)
    });
    let view = properties.instance_view.as_ref();
    let statuses = view.into_iter().flat_map(|view| &view.statuses);
    let statuses = statuses.filter_map(|status| {
        Some(Status {
            code: status.code.clone()?,
            message: status.message.clone(),
        })
    });
    let storage = properties.storage_profile.as_ref();
    let disk = storage.and_then(|storage| storage.os_disk.as_ref());
    let disk = disk.and_then(|disk| disk.managed_disk.as_ref());
    Ok(Machine {
        name,
        // It is compared, and Azure returns it in different letter cases.
        vm_id: vm_id.to_ascii_lowercase(),
        created,
        location: document.resource.location,
        zone: document
            .zones
            .into_iter()
            .next()
            .filter(|zone| !zone.is_empty()),
        size: size(&properties),
        image: storage
            .and_then(|storage| storage.image_reference.as_ref())
            .and_then(image_name),
        spot: matches!(properties.priority, Some(Priority::Spot | Priority::Low)),
        tags: tags(document.resource.tags.as_ref()),
        provisioning: properties.provisioning_state.clone().unwrap_or_default(),
        statuses: statuses.collect(),
        interfaces: interfaces(&properties),
        disk: disk.and_then(|disk| disk.sub_resource.id.clone()),
        generation: view
            .and_then(|view| view.hyper_v_generation.as_ref())
            .and_then(|one| {
                serde_json::to_value(one)
                    .ok()?
                    .as_str()
                    .map(ToOwned::to_owned)
            }),
        etag: document.etag,
        path,
    })
}

/// Converts an image.
pub(super) fn image(document: Image) -> ImageRecord {
    ImageRecord {
        path: document.resource.id.unwrap_or_default(),
        tags: tags(document.resource.tags.as_ref()),
        provisioning: document.properties.and_then(|it| it.provisioning_state),
    }
}

/// Returns the size by its name at Azure.
fn size(properties: &VirtualMachineProperties) -> Option<String> {
    let size = properties.hardware_profile.as_ref()?.vm_size.as_ref()?;
    // The SDK has its own names of sizes; its serialized form is Azure's.
    let text = serde_json::to_value(size).ok()?;
    text.as_str().map(ToOwned::to_owned)
}

/// Returns the image in the form in which a launch names it.
fn image_name(image: &ImageReference) -> Option<String> {
    let ImageReference {
        publisher: Some(publisher),
        offer: Some(offer),
        sku: Some(sku),
        version: Some(version),
        ..
    } = image
    else {
        let shared = image.shared_gallery_image_id.clone();
        let community = image.community_gallery_image_id.clone();
        return image.sub_resource.id.clone().or(shared).or(community);
    };
    Some(
        [publisher, offer, sku, version]
            .map(String::as_str)
            .join(":"),
    )
}

/// Returns the resource ids of the interfaces, the primary one first.
fn interfaces(properties: &VirtualMachineProperties) -> Vec<String> {
    let profile = properties.network_profile.as_ref();
    let each = profile
        .into_iter()
        .flat_map(|profile| &profile.network_interfaces);
    let mut each: Vec<_> = each
        .filter_map(|interface| {
            let primary = interface.properties.as_ref().and_then(|it| it.primary);
            Some((primary != Some(true), interface.sub_resource.id.clone()?))
        })
        .collect();
    each.sort_by_key(|(other, _)| *other);
    each.into_iter().map(|(_, path)| path).collect()
}

/// Returns the tags that have text values.
fn tags(tags: Option<&Value>) -> BTreeMap<String, String> {
    let tags = tags.and_then(Value::as_object);
    let each = tags.into_iter().flatten();
    each.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: Value) -> Result<Machine, Failure> {
        machine(serde_json::from_value(document).unwrap())
    }

    #[test]
    fn machine_converts_with_all_native_fields() {
        let path =
            "/subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/fw-1";
        let one = read(json!({
            "id": path, "name": "fw-1", "location": "eastus", "zones": ["2"], "etag": "\"3\"",
            "tags": { "Team": "Blue", "odd": null },
            "properties": {
                "vmId": "61CA152E-8A94-4455-B97F-C3EC52A06884",
                "timeCreated": "2026-11-16T10:00:00.123+00:00",
                "provisioningState": "Succeeded",
                "hardwareProfile": { "vmSize": "Standard_Unheard_v9" },
                "priority": "Spot",
                "storageProfile": {
                    "imageReference": { "publisher": "a", "offer": "b", "sku": "c", "version": "latest",
                                        "exactVersion": "1.2.3" },
                    "osDisk": { "createOption": "FromImage", "managedDisk": { "id": "/disk" } },
                },
                "networkProfile": { "networkInterfaces": [
                    { "id": "/second", "properties": { "primary": false } },
                    { "id": "/first", "properties": { "primary": true } },
                ]},
                "instanceView": { "hyperVGeneration": "V1", "statuses": [{ "code": "PowerState/running" }, { "level": "Info" }] },
            },
        }))
        .unwrap();
        assert_eq!(one.vm_id, "61ca152e-8a94-4455-b97f-c3ec52a06884");
        assert_eq!(one.created.unwrap().timestamp_millis(), 1_794_823_200_123);
        assert_eq!(one.image.as_deref(), Some("a:b:c:latest"));
        assert_eq!(one.size.as_deref(), Some("Standard_Unheard_v9"));
        assert_eq!(one.interfaces, ["/first", "/second"]);
        assert_eq!((one.spot, one.zone.as_deref()), (true, Some("2")));
        assert_eq!(one.disk.as_deref(), Some("/disk"));
        assert_eq!(one.generation.as_deref(), Some("V1"));
        assert_eq!(one.tags.len(), 1);
        assert_eq!(one.statuses.len(), 1);
    }

    #[test]
    fn only_the_identity_of_a_machine_is_required() {
        let location = json!({ "location": "eastus" });
        assert_eq!(read(location).unwrap_err().cause, Cause::Unreadable);
        let path = json!({ "location": "eastus", "id": "/a/b" });
        assert_eq!(read(path).unwrap_err().cause, Cause::Unreadable);
        let bare =
            json!({ "location": "", "id": "/a/b", "zones": [""], "properties": { "vmId": "X" } });
        let bare = read(bare).unwrap();
        assert_eq!((bare.name.as_str(), bare.vm_id.as_str()), ("b", "x"));
        assert_eq!((bare.zone, bare.created, bare.size), (None, None, None));
    }
}
