//! A virtual machine as a document.
//!
//! Most of it is the document of the creation. Password and custom data are never returned, and
//! user data only on request.

use serde_json::{Value, json};

use super::view;
use crate::azure::{
    engine::{Engine, vm::Vm},
    knobs::Market,
    wire::{
        body::without_nulls,
        id::{Id, Kind},
        vm_body::VmDisk,
    },
};

/// How much of a virtual machine a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The virtual machine without its instance view.
    Plain,
    /// The virtual machine with its instance view, `$expand=instanceView`.
    InstanceView,
    /// The virtual machine with its user data, `$expand=userData`.
    UserData,
    /// Only names and states, `statusOnly=true`. Tags, zones, size and creation time are left out,
    /// as in the responses that the public repository thammarongg/ThalassaOps has captured.
    StatusOnly,
}

/// Renders virtual machines for one call.
#[derive(Debug)]
pub(crate) struct VmRenderer<'a> {
    /// The engine, for disks and dates.
    pub(crate) engine: &'a Engine,
    /// How much is returned.
    pub(crate) detail: Detail,
    /// An unknown state that a fault puts in place of the true one.
    pub(crate) state: Option<&'a str>,
}

impl VmRenderer<'_> {
    /// Returns the document of a virtual machine.
    pub(crate) fn vm(&self, vm: &Vm) -> Value {
        if self.detail == Detail::StatusOnly {
            return self.status(vm);
        }
        let document = json!({
            "name": vm.id.name,
            "id": vm.id.path(),
            "type": Kind::VirtualMachine.name(),
            "location": vm.location,
            "zones": vm.zone.as_ref().map(|zone| [zone]),
            "tags": (!vm.tags.is_empty()).then_some(&*vm.tags),
            "identity": self.identity(vm),
            "plan": vm.body.plan,
            "etag": format!("\"{}\"", vm.version),
            "properties": self.properties(vm),
        });
        without_nulls(document)
    }

    /// Returns the document of a list of states. It has an empty hardware profile.
    fn status(&self, vm: &Vm) -> Value {
        json!({
            "name": vm.id.name,
            "id": vm.id.path(),
            "type": Kind::VirtualMachine.name(),
            "location": vm.location,
            "properties": {
                "vmId": vm.vm_id,
                "hardwareProfile": {},
                "provisioningState": vm.provisioning.name(),
                "instanceView": view::instance_view(self.engine, vm, self.detail, self.state),
            },
        })
    }

    /// Returns the `properties`. An unknown state replaces the power state of the instance view, or
    /// the provisioning state of a document without a view.
    fn properties(&self, vm: &Vm) -> Value {
        let body = &vm.body.properties;
        let has_view = self.detail == Detail::InstanceView;
        // Without a view, the provisioning state is the only one that a fault can replace.
        let unknown = self.state.filter(|_| !has_view);
        let status = json!({
            "vmId": vm.vm_id,
            "hardwareProfile": { "vmSize": vm.size },
            "provisioningState": unknown.unwrap_or(vm.provisioning.name()),
            "timeCreated": self.engine.timestamp(vm.created),
            "instanceView": has_view.then(|| view::instance_view(self.engine, vm, self.detail, self.state)),
        });
        let user_data = (self.detail == Detail::UserData).then_some(&vm.user_data);
        let spot = vm.market == Market::Spot;
        let mut properties = json!({
            "storageProfile": self.storage(vm),
            "osProfile": os_profile(vm),
            "networkProfile": network_profile(vm),
            "diagnosticsProfile": diagnostics(vm),
            "priority": body.priority,
            "evictionPolicy": spot.then_some(vm.eviction),
            "billingProfile": body.billing_profile,
            "licenseType": body.license_type,
            "securityProfile": body.security_profile,
            "additionalCapabilities": body.additional_capabilities,
            "extensionsTimeBudget": body.extensions_time_budget,
            "userData": user_data,
        });
        if let (Value::Object(all), Value::Object(status)) = (&mut properties, status) {
            all.extend(status);
        }
        properties
    }

    /// Returns the managed identity. The invented ids are the machine's GUID, so that they never
    /// change.
    fn identity(&self, vm: &Vm) -> Option<Value> {
        let identity = vm.body.identity.as_ref()?;
        let kind = identity.r#type.clone().unwrap_or_default();
        let system = kind.contains("SystemAssigned");
        let tenant = "11111111-1111-1111-1111-111111111111";
        let assigned = identity.user_assigned_identities.as_ref().map(|all| {
            let one = |path: &String| {
                (
                    path.clone(),
                    json!({ "principalId": vm.vm_id, "clientId": vm.vm_id }),
                )
            };
            all.keys().map(one).collect::<serde_json::Map<_, _>>()
        });
        Some(json!({
            "type": kind,
            "principalId": system.then_some(&vm.vm_id),
            "tenantId": system.then_some(tenant),
            "userAssignedIdentities": assigned,
        }))
    }

    /// Returns the `storageProfile`: the requested image and disks, with the true sizes and SKUs.
    fn storage(&self, vm: &Vm) -> Value {
        let requested = vm
            .body
            .properties
            .storage_profile
            .clone()
            .unwrap_or_default();
        let image = requested.image_reference.map(|mut image| {
            image.exact_version.clone_from(&vm.image.exact_version);
            image
        });
        let system = requested.os_disk.unwrap_or_default();
        let os_disk = vm.os_disk().map(|disk| {
            let mut document = self.disk(&disk.id, &system);
            document["osType"] = json!(vm.image.os_type);
            document["createOption"] = json!("FromImage");
            document["deleteOption"] = json!(disk.delete);
            document["diffDiskSettings"] = json!(system.diff_disk_settings);
            document
        });
        let more = requested.data_disks.unwrap_or_default();
        let data = vm.disks.iter().filter_map(|disk| {
            let lun = disk.lun?;
            let requested = more.iter().find(|it| it.lun == Some(lun));
            let mut document = self.disk(&disk.id, &requested.cloned().unwrap_or_default());
            document["lun"] = json!(lun);
            document["createOption"] = json!(
                requested
                    .and_then(|it| it.create_option.clone())
                    .unwrap_or_else(|| "Attach".to_owned())
            );
            document["deleteOption"] = json!(disk.delete);
            document["toBeDetached"] = json!(false);
            Some(document)
        });
        json!({
            "imageReference": image,
            "osDisk": os_disk,
            "dataDisks": data.collect::<Vec<_>>(),
            "diskControllerType": requested.disk_controller_type.unwrap_or_else(|| "SCSI".to_owned()),
        })
    }

    /// Returns the members that all disks of a virtual machine have.
    fn disk(&self, id: &Id, requested: &VmDisk) -> Value {
        let found = self.engine.disks.find(id);
        json!({
            "name": id.name,
            "caching": requested.caching.clone().unwrap_or_else(|| "ReadWrite".to_owned()),
            "diskSizeGB": found.map(|(_, disk)| disk.gib),
            "managedDisk": {
                "id": id.path(),
                "storageAccountType": found.map(|(_, disk)| disk.sku.clone()),
            },
        })
    }
}

/// Returns the `osProfile` with its defaults, without the password and the custom data.
fn os_profile(vm: &Vm) -> Option<Value> {
    let mut profile = vm.body.properties.os_profile.clone()?;
    profile.custom_data = None;
    profile
        .computer_name
        .get_or_insert_with(|| vm.id.name.clone());
    profile.secrets.get_or_insert_with(Vec::new);
    profile.allow_extension_operations.get_or_insert(true);
    profile.require_guest_provision_signal.get_or_insert(true);
    if let Some(linux) = &mut profile.linux_configuration {
        linux.provision_vm_agent.get_or_insert(true);
        linux.disable_password_authentication.get_or_insert(false);
        let image = "ImageDefault";
        linux
            .patch_settings
            .get_or_insert_with(|| json!({ "patchMode": image, "assessmentMode": image }));
    }
    Some(json!(profile))
}

/// Returns the `networkProfile`: the ids of the interfaces. `primary` is set if there are several.
fn network_profile(vm: &Vm) -> Value {
    let several = vm.nics.len() > 1;
    let nics = vm.nics.iter().enumerate().map(|(place, nic)| {
        json!({
            "id": nic.id.path(),
            "properties": {
                "deleteOption": nic.delete,
                "primary": several.then_some(place == 0),
            },
        })
    });
    json!({ "networkInterfaces": nics.collect::<Vec<_>>() })
}

/// Returns the `diagnosticsProfile`, if one was requested.
fn diagnostics(vm: &Vm) -> Option<Value> {
    let requested = vm.body.properties.diagnostics_profile.is_some();
    (requested || vm.diagnostics)
        .then(|| json!({ "bootDiagnostics": { "enabled": vm.diagnostics } }))
}
