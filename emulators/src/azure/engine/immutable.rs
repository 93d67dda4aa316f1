//! The properties of a virtual machine that never change.
//!
//! A document that would change one is refused with 409 `PropertyChangeNotAllowed` and the property
//! as `target`. An omitted property stays as it is, and a repeated one is no change, so a client
//! can send back the document that it has read.

use super::{Engine, vm::Vm};
use crate::azure::{
    catalog::{normalize_location, same},
    error::Refusal,
    wire::{
        id::{Id, Kind},
        vm_body::{NetworkProfile, OsProfile, StorageProfile, VmBody, VmDisk},
    },
};

impl Engine {
    /// Refuses a document that would change an immutable property.
    ///
    /// # Errors
    ///
    /// 409 `InvalidResourceLocation` for another location; 409 `PropertyChangeNotAllowed` for every
    /// other property.
    pub(super) fn check_immutable(&self, vm: &Vm, body: &VmBody) -> Result<(), Refusal> {
        let properties = &body.properties;
        if let Some(location) = &body.location {
            if normalize_location(location) != vm.location {
                let message = format!(
                    "The resource '{}' already exists in location '{}'. A resource with the same name cannot be \
                     created in location '{location}'.",
                    vm.id.name, vm.location
                );
                return Err(Refusal::new(409, "InvalidResourceLocation", message));
            }
        }
        check_rest(vm, body)?;
        check_storage(vm, properties.storage_profile.as_ref())?;
        let disk = properties.storage_profile.as_ref();
        self.check_os_disk(vm, disk.and_then(|storage| storage.os_disk.as_ref()))?;
        let before = vm.body.properties.os_profile.as_ref();
        check_os_profile(before, properties.os_profile.as_ref(), vm)?;
        check_network(vm, properties.network_profile.as_ref())
    }

    /// Refuses another OS disk, and another size or SKU of the OS disk.
    fn check_os_disk(&self, vm: &Vm, requested: Option<&VmDisk>) -> Result<(), Refusal> {
        let Some(requested) = requested else {
            return Ok(());
        };
        let Some(own) = vm.os_disk() else {
            return Ok(());
        };
        if requested
            .name
            .as_ref()
            .is_some_and(|name| !same(&own.id.name, name))
        {
            return Err(Refusal::immutable("osDisk.name"));
        }
        let Some((_, disk)) = self.disks.find(&own.id) else {
            return Ok(());
        };
        if requested.disk_size_gb.is_some_and(|gib| gib != disk.gib) {
            return Err(Refusal::immutable("osDisk.diskSizeGB"));
        }
        let managed = requested.managed_disk.as_ref();
        let sku = managed.and_then(|managed| managed.storage_account_type.as_ref());
        if sku.is_some_and(|sku| *sku != disk.sku) {
            return Err(Refusal::immutable("osDisk.managedDisk.storageAccountType"));
        }
        Ok(())
    }
}

/// Refuses changes of zones, priority, eviction policy, profiles and plan.
fn check_rest(vm: &Vm, body: &VmBody) -> Result<(), Refusal> {
    let (properties, before) = (&body.properties, &vm.body.properties);
    let zones = body.zones.as_ref();
    let changed =
        |before: &Option<String>, after: &Option<String>| after.is_some() && after != before;
    for (property, changes) in [
        (
            "zones",
            zones.is_some_and(|zones| zones.first() != vm.zone.as_ref()),
        ),
        ("priority", changed(&before.priority, &properties.priority)),
        (
            "licenseType",
            changed(&before.license_type, &properties.license_type),
        ),
        (
            "extensionsTimeBudget",
            changed(
                &before.extensions_time_budget,
                &properties.extensions_time_budget,
            ),
        ),
        (
            "evictionPolicy",
            properties
                .eviction_policy
                .is_some_and(|policy| policy != vm.eviction),
        ),
        (
            "billingProfile",
            properties.billing_profile.is_some()
                && properties.billing_profile != before.billing_profile,
        ),
        (
            "securityProfile",
            properties.security_profile.is_some()
                && properties.security_profile != before.security_profile,
        ),
        (
            "additionalCapabilities",
            properties.additional_capabilities.is_some()
                && properties.additional_capabilities != before.additional_capabilities,
        ),
        ("plan", body.plan.is_some() && body.plan != vm.body.plan),
    ] {
        if changes {
            return Err(Refusal::immutable(property));
        }
    }
    Ok(())
}

/// Refuses another image. Only the names or the id of the image count, not its exact version.
fn check_storage(vm: &Vm, storage: Option<&StorageProfile>) -> Result<(), Refusal> {
    let Some(storage) = storage else {
        return Ok(());
    };
    let before = vm.body.properties.storage_profile.as_ref();
    if let Some(image) = &storage.image_reference {
        let before = before.and_then(|it| it.image_reference.as_ref());
        let same = before.is_some_and(|before| {
            (&before.id, &before.publisher, &before.offer, &before.sku)
                == (&image.id, &image.publisher, &image.offer, &image.sku)
                && before.version == image.version
        });
        if !same {
            return Err(Refusal::immutable("imageReference"));
        }
    }
    Ok(())
}

/// Refuses another computer name, administrator, custom data or other SSH keys. A password is
/// ignored, because the engine does not keep it.
fn check_os_profile(
    before: Option<&OsProfile>,
    after: Option<&OsProfile>,
    vm: &Vm,
) -> Result<(), Refusal> {
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(());
    };
    let changes = |before: Option<&String>, after: Option<&String>| {
        after.is_some_and(|after| before != Some(after))
    };
    let name = Some(before.computer_name.as_ref().unwrap_or(&vm.id.name));
    for (property, before, after) in [
        ("osProfile.computerName", name, after.computer_name.as_ref()),
        (
            "osProfile.adminUsername",
            before.admin_username.as_ref(),
            after.admin_username.as_ref(),
        ),
        (
            "osProfile.customData",
            before.custom_data.as_ref(),
            after.custom_data.as_ref(),
        ),
    ] {
        if changes(before, after) {
            return Err(Refusal::immutable(property));
        }
    }
    let keys = |profile: &OsProfile| {
        let linux = profile.linux_configuration.as_ref()?;
        linux.ssh.as_ref()?.public_keys.clone()
    };
    if keys(after).is_some_and(|after| Some(after) != keys(before)) {
        return Err(Refusal::immutable(
            "osProfile.linuxConfiguration.ssh.publicKeys",
        ));
    }
    Ok(())
}

/// Refuses other interfaces. Their order does not matter.
fn check_network(vm: &Vm, network: Option<&NetworkProfile>) -> Result<(), Refusal> {
    let Some(network) = network else {
        return Ok(());
    };
    let before = vm.body.properties.network_profile.as_ref();
    let before = before.and_then(|it| it.network_interface_configurations.as_ref());
    if let Some(after) = &network.network_interface_configurations {
        if Some(after) != before {
            return Err(Refusal::immutable(
                "networkProfile.networkInterfaceConfigurations",
            ));
        }
    }
    let Some(listed) = &network.network_interfaces else {
        return Ok(());
    };
    let mut listed_ids: Vec<String> = Vec::new();
    for nic in listed {
        let path = nic.id.as_deref().unwrap_or_default();
        listed_ids.push(Id::read(Kind::Nic, path)?.key());
    }
    let mut own: Vec<String> = vm.nics.iter().map(|nic| nic.id.key()).collect();
    listed_ids.sort_unstable();
    own.sort_unstable();
    if listed_ids == own {
        Ok(())
    } else {
        Err(Refusal::immutable("networkProfile.networkInterfaces"))
    }
}
