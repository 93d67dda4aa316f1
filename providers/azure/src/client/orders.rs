//! Requests as the SDK's documents. Pure.
//!
//! Owns the delete options: everything that is created with a machine is deleted with it, so that
//! nothing is left over.
//!
//! One document creates the machine, its system disk, its interface and its public address. The
//! interface and the address get the name of the machine with the suffixes `-nic` and `-ip`.
//! Related traps in the README: 7 (dynamic addresses), 8 and 9 (delete options), 12 (one call).

use std::collections::BTreeMap;

use azure_mgmt_compute::package_2024_07_01::models::{
    self, BillingProfile, BootDiagnostics, Caching, CreateOption, DataDisk, DeleteOption,
    DiagnosticsProfile, DiffDiskOption, DiffDiskPlacement, DiffDiskSettings, EvictionPolicy,
    HardwareProfile, Image, ImageDisk, ImageOsDisk, ImageProperties, ImageReference,
    ImageStorageProfile, LinuxConfiguration, ManagedDiskParameters, NetworkProfile, OsDisk,
    OsProfile, Plan, Priority, PublicIpAddressSku, Resource, SecurityProfile, SshConfiguration,
    SshPublicKey, StorageAccountType, StorageProfile, SubResource, UefiSettings, UpdateResource,
    VirtualMachine, VirtualMachineIdentity, VirtualMachineNetworkInterfaceConfiguration,
    VirtualMachineNetworkInterfaceConfigurationProperties,
    VirtualMachineNetworkInterfaceIpConfiguration,
    VirtualMachineNetworkInterfaceIpConfigurationProperties, VirtualMachineProperties,
    VirtualMachinePublicIpAddressConfiguration,
    VirtualMachinePublicIpAddressConfigurationProperties, VirtualMachineUpdate, hardware_profile,
    image_os_disk, network_profile, public_ip_address_sku, security_profile,
    virtual_machine_identity,
    virtual_machine_network_interface_configuration_properties as interface,
    virtual_machine_public_ip_address_configuration_properties as public,
};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    AcceleratedNetworking, BootSecurity, Eviction, MarketplacePlan,
    error::{Cause, Failure},
    machine::{Edit, MachineSpec, Source},
};

/// The API version of the documents.
pub(super) const VERSION: &str = "2024-07-01";

/// Returns the document of a machine.
///
/// The SDK has no field for user-assigned identities, and writes fields that only Azure may write.
/// Both are corrected here, so the SDK does not send this document itself.
pub(super) fn document(order: &MachineSpec, name: &str) -> Result<Bytes, Failure> {
    let not_encoded =
        |_| Failure::new(Cause::NotSent, "the request of a machine cannot be encoded");
    let mut document = serde_json::to_value(machine(order, name)).map_err(not_encoded)?;
    if let Some(properties) = document["properties"].as_object_mut() {
        properties.retain(|_, value| !value.is_null());
    }
    if !order.user_identities.is_empty() {
        let each = order.user_identities.iter();
        let all: serde_json::Map<_, _> = each.map(|id| (id.clone(), json!({}))).collect();
        document["identity"]["userAssignedIdentities"] = Value::Object(all);
    }
    let bytes = serde_json::to_vec(&document).map_err(not_encoded)?;
    Ok(bytes.into())
}

/// Returns the document of a change.
pub(super) fn update(edit: &Edit) -> VirtualMachineUpdate {
    let mut update = VirtualMachineUpdate::new();
    match edit {
        Edit::Tags(tags) => {
            update.update_resource = UpdateResource {
                tags: Some(json!(tags)),
            };
        }
        Edit::Size(size) => {
            update.properties = Some(VirtualMachineProperties {
                hardware_profile: Some(hardware(size)),
                ..VirtualMachineProperties::default()
            });
        }
    }
    update
}

/// Returns the document of an image of a disk, with the hardware generation of its machine if that
/// is known.
pub(super) fn image(
    location: &str,
    disk: &str,
    generation: Option<&str>,
    tags: &BTreeMap<String, String>,
) -> Image {
    let mut os_disk = ImageOsDisk::new(
        image_os_disk::OsType::Linux,
        image_os_disk::OsState::Generalized,
    );
    os_disk.image_disk = ImageDisk {
        managed_disk: Some(reference(disk)),
        ..ImageDisk::default()
    };
    let mut resource = Resource::new(location.to_owned());
    resource.tags = Some(json!(tags));
    let mut image = Image::new(resource);
    image.properties = Some(ImageProperties {
        storage_profile: Some(ImageStorageProfile {
            os_disk: Some(os_disk),
            ..ImageStorageProfile::default()
        }),
        hyper_v_generation: generation
            .map(|name| models::HyperVGenerationType::UnknownValue(name.to_owned())),
        ..ImageProperties::default()
    });
    image
}

/// Returns the machine with its disk, system, network and diagnostics.
fn machine(order: &MachineSpec, name: &str) -> VirtualMachine {
    let mut resource = Resource::new(order.location.clone());
    resource.tags = Some(json!(order.tags));
    let mut machine = VirtualMachine::new(resource);
    machine.zones = order.zone.iter().cloned().collect();
    machine.plan = order.plan.as_ref().map(plan);
    machine.identity = identity(order);
    machine.properties = Some(VirtualMachineProperties {
        hardware_profile: Some(hardware(&order.size)),
        storage_profile: Some(storage(order)),
        os_profile: Some(system(order, name)),
        network_profile: Some(network(order, name)),
        diagnostics_profile: Some(DiagnosticsProfile {
            boot_diagnostics: Some(BootDiagnostics {
                enabled: Some(order.console),
                storage_uri: None,
            }),
        }),
        priority: order.spot.map(|_| Priority::Spot),
        eviction_policy: order.spot.map(|eviction| match eviction {
            Eviction::Deleted => EvictionPolicy::Delete,
            Eviction::Deallocated => EvictionPolicy::Deallocate,
        }),
        // The on-demand price is the limit, so that no price evicts the machine.
        billing_profile: order.spot.map(|_| BillingProfile {
            max_price: Some(-1.0),
        }),
        user_data: order.user_data.clone(),
        security_profile: order.boot_security.map(security),
        ..VirtualMachineProperties::default()
    });
    machine
}

/// Returns the protection of the boot.
fn security(security: BootSecurity) -> SecurityProfile {
    SecurityProfile {
        security_type: Some(security_profile::SecurityType::TrustedLaunch),
        uefi_settings: Some(UefiSettings {
            secure_boot_enabled: Some(match security {
                BootSecurity::TrustedLaunch => true,
                BootSecurity::TrustedLaunchWithoutSecureBoot => false,
            }),
            v_tpm_enabled: Some(true),
        }),
        ..SecurityProfile::default()
    }
}

/// Returns the marketplace plan.
fn plan(plan: &MarketplacePlan) -> Plan {
    Plan {
        name: Some(plan.name.clone()),
        publisher: Some(plan.publisher.clone()),
        product: Some(plan.product.clone()),
        promotion_code: None,
    }
}

/// Returns the types of identities, or `None` if there are none.
fn identity(order: &MachineSpec) -> Option<VirtualMachineIdentity> {
    let of_users = !order.user_identities.is_empty();
    let kind = match (order.system_identity, of_users) {
        (false, false) => return None,
        (true, false) => virtual_machine_identity::Type::SystemAssigned,
        (false, true) => virtual_machine_identity::Type::UserAssigned,
        (true, true) => virtual_machine_identity::Type::SystemAssignedUserAssigned,
    };
    Some(VirtualMachineIdentity {
        type_: Some(kind),
        ..VirtualMachineIdentity::default()
    })
}

/// Returns the size.
fn hardware(size: &str) -> HardwareProfile {
    HardwareProfile {
        vm_size: Some(hardware_profile::VmSize::UnknownValue(size.to_owned())),
        vm_size_properties: None,
    }
}

/// Returns the image and the disks. All disks are deleted with the machine.
fn storage(order: &MachineSpec) -> StorageProfile {
    let mut disk = OsDisk::new(CreateOption::FromImage);
    disk.delete_option = Some(DeleteOption::Delete);
    disk.disk_size_gb = order.disk_gib;
    disk.managed_disk = order.disk_type.as_deref().map(disk_type);
    if let Some(placement) = order.system_disk.placement() {
        disk.diff_disk_settings = Some(DiffDiskSettings {
            option: Some(DiffDiskOption::Local),
            placement: Some(DiffDiskPlacement::UnknownValue(placement.to_owned())),
        });
        // An ephemeral disk has no other caching.
        disk.caching = Some(Caching::ReadOnly);
    }
    let data_disks = (0..).zip(&order.data_disks).map(|(lun, requested)| {
        let mut disk = DataDisk::new(lun, CreateOption::Empty);
        disk.delete_option = Some(DeleteOption::Delete);
        disk.disk_size_gb = i32::try_from(requested.size_gib.get()).ok();
        disk.managed_disk = requested.disk_type.as_deref().map(disk_type);
        disk
    });
    StorageProfile {
        image_reference: Some(source(&order.source)),
        os_disk: Some(disk),
        data_disks: data_disks.collect(),
        ..StorageProfile::default()
    }
}

/// Returns the type of a disk.
fn disk_type(name: &str) -> ManagedDiskParameters {
    ManagedDiskParameters {
        storage_account_type: Some(StorageAccountType::UnknownValue(name.to_owned())),
        ..ManagedDiskParameters::default()
    }
}

/// Returns the image reference.
fn source(source: &Source) -> ImageReference {
    let mut reference = ImageReference::default();
    match source {
        Source::Published {
            publisher,
            offer,
            sku,
            version,
        } => {
            reference.publisher = Some(publisher.clone());
            reference.offer = Some(offer.clone());
            reference.sku = Some(sku.clone());
            reference.version = Some(version.clone());
        }
        Source::Resource(id) => reference.sub_resource.id = Some(id.clone()),
        Source::SharedGallery(id) => reference.shared_gallery_image_id = Some(id.clone()),
        Source::CommunityGallery(id) => reference.community_gallery_image_id = Some(id.clone()),
    }
    reference
}

/// Returns host name, login user, key and custom data.
fn system(order: &MachineSpec, name: &str) -> OsProfile {
    let key = SshPublicKey {
        path: Some(format!("/home/{}/.ssh/authorized_keys", order.admin_user)),
        key_data: Some(order.ssh_public_key.clone()),
    };
    OsProfile {
        computer_name: Some(name.to_owned()),
        admin_username: Some(order.admin_user.clone()),
        custom_data: order.custom_data.clone(),
        linux_configuration: Some(LinuxConfiguration {
            disable_password_authentication: Some(true),
            ssh: Some(SshConfiguration {
                public_keys: vec![key],
            }),
            ..LinuxConfiguration::default()
        }),
        ..OsProfile::default()
    }
}

/// Returns the interface with its public address. Both are created and deleted with the machine.
fn network(order: &MachineSpec, name: &str) -> NetworkProfile {
    let address = order.public_address.then(|| {
        let mut address = VirtualMachinePublicIpAddressConfiguration::new(format!("{name}-ip"));
        address.sku = Some(PublicIpAddressSku {
            name: Some(public_ip_address_sku::Name::Standard),
            tier: None,
        });
        address.properties = Some(VirtualMachinePublicIpAddressConfigurationProperties {
            delete_option: Some(public::DeleteOption::Delete),
            public_ip_allocation_method: Some(public::PublicIpAllocationMethod::Static),
            ..VirtualMachinePublicIpAddressConfigurationProperties::default()
        });
        address
    });
    let mut ip = VirtualMachineNetworkInterfaceIpConfiguration::new("primary".to_owned());
    ip.properties = Some(VirtualMachineNetworkInterfaceIpConfigurationProperties {
        subnet: Some(reference(&order.subnet)),
        primary: Some(true),
        public_ip_address_configuration: address,
        ..VirtualMachineNetworkInterfaceIpConfigurationProperties::default()
    });
    let mut properties = VirtualMachineNetworkInterfaceConfigurationProperties::new(vec![ip]);
    properties.primary = Some(true);
    properties.delete_option = Some(interface::DeleteOption::Delete);
    properties.enable_accelerated_networking = match order.accelerated_networking {
        AcceleratedNetworking::Off => None,
        AcceleratedNetworking::On => Some(true),
    };
    properties.network_security_group = order.security_group.as_deref().map(reference);
    let mut card = VirtualMachineNetworkInterfaceConfiguration::new(format!("{name}-nic"));
    card.properties = Some(properties);
    NetworkProfile {
        network_api_version: Some(network_profile::NetworkApiVersion::N2020_11_01),
        network_interface_configurations: vec![card],
        ..NetworkProfile::default()
    }
}

/// Returns a reference to a resource.
fn reference(id: &str) -> SubResource {
    SubResource {
        id: Some(id.to_owned()),
    }
}

#[cfg(test)]
mod tests;
