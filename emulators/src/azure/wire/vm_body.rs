//! The documents that create and change virtual machines.
//!
//! Every field is optional, because one type serves `PUT` (a whole virtual machine) and `PATCH`
//! (only what changes). The engine decides which field is required, which can change, and which
//! never changes. A member that no struct here lists is refused with 400 `BadRequest`. Names in
//! JSON are the field names in camel case, except where a `serde(rename)` says otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{DeleteOption, Reference, Sku, Tags};

/// The document of a virtual machine: what `VirtualMachines_CreateOrUpdate` and
/// `VirtualMachines_Update` accept.
///
/// The engine stores the document of the creation without the administrator's password, and returns
/// most of it unchanged in later reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VmBody {
    /// The location, for example `eastus` or `East US`. Required to create; never changes.
    pub(crate) location: Option<String>,
    /// The tags. `PUT` without tags removes them all; `PATCH` without tags keeps them.
    pub(crate) tags: Option<Tags>,
    /// The availability zone, as a list of at most one. Never changes.
    pub(crate) zones: Option<Vec<String>>,
    /// The managed identity. Can be replaced at any time.
    pub(crate) identity: Option<Identity>,
    /// The purchase plan of a marketplace image. Stored and returned, never interpreted.
    pub(crate) plan: Option<Value>,
    /// Everything else.
    pub(crate) properties: VmProperties,
}

/// The managed identity of a virtual machine, with which it authenticates to other services.
///
/// The emulator checks the type and invents stable ids from the machine's GUID.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Identity {
    /// `None`, `SystemAssigned`, `UserAssigned` or `SystemAssigned, UserAssigned`.
    pub(crate) r#type: Option<String>,
    /// The resource ids of user-assigned identities. The values are ignored.
    pub(crate) user_assigned_identities: Option<std::collections::BTreeMap<String, Option<Value>>>,
    /// Written by the cloud. Accepted so that a document that was read can be sent back.
    pub(crate) principal_id: Option<String>,
    /// Written by the cloud, like `principal_id`.
    pub(crate) tenant_id: Option<String>,
}

/// The `properties` of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmProperties {
    /// The size. Required to create.
    pub(crate) hardware_profile: Option<HardwareProfile>,
    /// The image and the disks. Required to create.
    pub(crate) storage_profile: Option<StorageProfile>,
    /// The administrator and the first-boot data. Required unless the image is specialized.
    pub(crate) os_profile: Option<OsProfile>,
    /// The interfaces. Required to create.
    pub(crate) network_profile: Option<NetworkProfile>,
    /// Whether the serial console can be read. Default: it cannot.
    pub(crate) diagnostics_profile: Option<DiagnosticsProfile>,
    /// `Regular` (default), `Spot` or `Low`; the last two mean a spot machine. Never changes.
    pub(crate) priority: Option<String>,
    /// What an eviction does to a spot machine. Refused for a regular machine.
    pub(crate) eviction_policy: Option<Eviction>,
    /// The maximum price of a spot machine. Stored and returned only.
    pub(crate) billing_profile: Option<BillingProfile>,
    /// User data in Base64. Returned only with `$expand=userData`.
    pub(crate) user_data: Option<String>,
    /// The license that the owner brings. Stored and returned only; never changes.
    pub(crate) license_type: Option<String>,
    /// The security profile. Stored and returned only; never changes.
    pub(crate) security_profile: Option<Value>,
    /// Additional capabilities. Stored and returned only; never changes.
    pub(crate) additional_capabilities: Option<Value>,
    /// The time budget of extensions, an ISO 8601 duration. Stored and returned only; never
    /// changes.
    pub(crate) extensions_time_budget: Option<String>,
}

/// What an eviction does to a spot machine. The default is `Deallocate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Eviction {
    /// The virtual machine is deallocated: it stays, without a machine and without a dynamic
    /// address.
    #[default]
    Deallocate,
    /// The virtual machine is deleted, with the resources whose delete option is `Delete`.
    Delete,
}

/// The hardware of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HardwareProfile {
    /// The name of a size in the catalog, in any case. Changes only while deallocated.
    pub(crate) vm_size: Option<String>,
}

/// The price that the owner of a spot machine accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BillingProfile {
    /// US dollars per hour; -1 means the regular price. The emulator never evicts by price.
    pub(crate) max_price: Option<f64>,
}

/// The diagnostics of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiagnosticsProfile {
    /// Whether and where the serial console is recorded.
    pub(crate) boot_diagnostics: Option<BootDiagnostics>,
}

/// The boot diagnostics of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BootDiagnostics {
    /// Whether the console can be retrieved. Also accepted as text, `"true"`.
    #[serde(deserialize_with = "super::body::flag")]
    pub(crate) enabled: Option<bool>,
    /// The storage account. Accepted and ignored: the emulator serves the console itself.
    pub(crate) storage_uri: Option<String>,
}

/// The image and the disks of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StorageProfile {
    /// The image. Required to create; never changes.
    pub(crate) image_reference: Option<ImageReference>,
    /// The OS disk. By default it has the image's size and is detached on deletion.
    pub(crate) os_disk: Option<VmDisk>,
    /// The data disks. An update attaches and detaches disks so that this list holds.
    pub(crate) data_disks: Option<Vec<VmDisk>>,
    /// `SCSI` (default) or `NVMe`. Stored and returned only.
    pub(crate) disk_controller_type: Option<String>,
}

/// An image: either the `id` of a managed image, or the four names of a marketplace image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageReference {
    /// The publisher of a marketplace image.
    pub(crate) publisher: Option<String>,
    /// The offer of a marketplace image.
    pub(crate) offer: Option<String>,
    /// The SKU of a marketplace image.
    pub(crate) sku: Option<String>,
    /// The version, or `latest`, which is also the default.
    pub(crate) version: Option<String>,
    /// Written by the cloud: the version that `latest` stood for at the creation.
    pub(crate) exact_version: Option<String>,
    /// The resource id of a managed image.
    pub(crate) id: Option<String>,
}

/// A disk in the document of a virtual machine: the OS disk, or a data disk, which has a `lun`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmDisk {
    /// The logical unit number of a data disk, 0 to 63, unique in its virtual machine.
    pub(crate) lun: Option<u32>,
    /// The name of the disk resource. By default derived from the machine's name.
    pub(crate) name: Option<String>,
    /// Written by the cloud, and ignored in requests.
    pub(crate) os_type: Option<String>,
    /// `FromImage` for an OS disk; `Empty` or `Attach` for a data disk.
    pub(crate) create_option: Option<String>,
    /// The host caching. Stored and returned only; default `ReadWrite`.
    pub(crate) caching: Option<String>,
    /// The size in GiB. An OS disk is at least as large as its image.
    #[serde(rename = "diskSizeGB")]
    pub(crate) disk_size_gb: Option<u32>,
    /// What happens to the disk when its virtual machine is deleted. Default: detached.
    pub(crate) delete_option: Option<DeleteOption>,
    /// The disk resource and its SKU.
    pub(crate) managed_disk: Option<ManagedDisk>,
    /// Makes an OS disk ephemeral: it is on the host of the machine. Never changes.
    pub(crate) diff_disk_settings: Option<DiffDiskSettings>,
    /// Not emulated: `true` is refused with 400 `NotSupported`.
    pub(crate) write_accelerator_enabled: Option<bool>,
    /// Detaches a data disk when `true`.
    pub(crate) to_be_detached: Option<bool>,
}

/// The settings of an ephemeral OS disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiffDiskSettings {
    /// `Local`. Required.
    pub(crate) option: Option<String>,
    /// `CacheDisk`, `ResourceDisk` or `NvmeDisk`. Stored and returned.
    pub(crate) placement: Option<String>,
}

/// The disk resource behind a disk of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ManagedDisk {
    /// The resource id of an existing disk. Required for `Attach`.
    pub(crate) id: Option<String>,
    /// The SKU, for example `Premium_LRS`. Default `Standard_LRS`.
    pub(crate) storage_account_type: Option<String>,
}

/// The operating system's settings. They are applied at the first boot and never change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OsProfile {
    /// The host name. Default: the name of the virtual machine.
    pub(crate) computer_name: Option<String>,
    /// The administrator's name. Names such as `admin` and `root` are refused.
    pub(crate) admin_username: Option<String>,
    /// The administrator's password. Required without an SSH key, and never returned.
    pub(crate) admin_password: Option<String>,
    /// Data for the first boot in Base64, at most 65,535 bytes. Never returned.
    pub(crate) custom_data: Option<String>,
    /// The settings of a Linux system.
    pub(crate) linux_configuration: Option<LinuxConfiguration>,
    /// The settings of a Windows system. Stored and returned only.
    pub(crate) windows_configuration: Option<Value>,
    /// Certificates to install. Stored and returned only.
    pub(crate) secrets: Option<Vec<Value>>,
    /// Whether extensions are allowed. Stored and returned; default `true`.
    pub(crate) allow_extension_operations: Option<bool>,
    /// Whether the guest must report. Stored and returned; default `true`.
    pub(crate) require_guest_provision_signal: Option<bool>,
}

/// The settings of a Linux system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LinuxConfiguration {
    /// Whether only keys are accepted. Also accepted as text, `"true"`. Default `false`.
    #[serde(deserialize_with = "super::body::flag")]
    pub(crate) disable_password_authentication: Option<bool>,
    /// The SSH keys.
    pub(crate) ssh: Option<Ssh>,
    /// Whether the guest agent is installed. Stored and returned; default `true`.
    #[serde(rename = "provisionVMAgent")]
    pub(crate) provision_vm_agent: Option<bool>,
    /// How the guest is patched. Stored and returned only.
    pub(crate) patch_settings: Option<Value>,
    /// Whether the agent updates itself. Stored and returned only.
    #[serde(rename = "enableVMAgentPlatformUpdates")]
    pub(crate) enable_vm_agent_platform_updates: Option<bool>,
}

/// The SSH settings of a Linux system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Ssh {
    /// The keys that the administrator may log in with.
    pub(crate) public_keys: Option<Vec<SshKey>>,
}

/// One SSH public key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SshKey {
    /// The file in the guest that the key is written to.
    pub(crate) path: Option<String>,
    /// The key, for example `ssh-rsa AAAA…`. An empty key does not count as a key.
    pub(crate) key_data: Option<String>,
}

/// The network interfaces of a virtual machine: either existing ones or new ones, never both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NetworkProfile {
    /// The API version of new interfaces. Required if there are any.
    pub(crate) network_api_version: Option<String>,
    /// Existing interfaces to attach.
    pub(crate) network_interfaces: Option<Vec<NicReference>>,
    /// Interfaces to create with the virtual machine.
    pub(crate) network_interface_configurations: Option<Vec<NicConfiguration>>,
}

/// An existing interface to attach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicReference {
    /// The resource id of the interface. Required.
    pub(crate) id: Option<String>,
    /// How the virtual machine uses it.
    pub(crate) properties: NicReferenceProperties,
}

/// How a virtual machine uses an existing interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicReferenceProperties {
    /// Whether it is the primary interface. Exactly one must be, if there are several.
    pub(crate) primary: Option<bool>,
    /// What happens to the interface when the machine is deleted. Default: detached.
    pub(crate) delete_option: Option<DeleteOption>,
}

/// An interface that is created with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicConfiguration {
    /// The beginning of the interface's name; the engine appends a unique suffix. Required.
    pub(crate) name: Option<String>,
    /// The properties of the interface.
    pub(crate) properties: NicConfigurationProperties,
    /// The tags of the interface.
    pub(crate) tags: Option<Tags>,
}

/// The properties of an interface that is created with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicConfigurationProperties {
    /// Whether it is the primary interface. Exactly one must be, if there are several.
    pub(crate) primary: Option<bool>,
    /// What happens to the interface when the machine is deleted. Default: detached.
    pub(crate) delete_option: Option<DeleteOption>,
    /// Stored and returned only. Default `false`.
    pub(crate) enable_accelerated_networking: Option<bool>,
    /// Stored and returned only. Default `false`.
    #[serde(rename = "enableIPForwarding")]
    pub(crate) enable_ip_forwarding: Option<bool>,
    /// The network security group, which must exist.
    pub(crate) network_security_group: Option<Reference>,
    /// Not emulated: own name servers are refused with 400 `NotSupported`.
    pub(crate) dns_settings: Option<Value>,
    /// The addresses. At least one is required.
    pub(crate) ip_configurations: Vec<VmIpConfiguration>,
}

/// An address of an interface that is created with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VmIpConfiguration {
    /// The name of the configuration. Default `ipconfig` and a number from 1.
    pub(crate) name: Option<String>,
    /// The properties of the address.
    pub(crate) properties: VmIpConfigurationProperties,
}

/// The properties of an address of a new interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmIpConfigurationProperties {
    /// The subnet, which must be in the machine's location. Required.
    pub(crate) subnet: Option<Reference>,
    /// Whether it is the primary address. Default: the first one is.
    pub(crate) primary: Option<bool>,
    /// `IPv4`. Anything else is refused with 400 `NotSupported`.
    #[serde(rename = "privateIPAddressVersion")]
    pub(crate) private_ip_address_version: Option<String>,
    /// The public address to create, if any.
    #[serde(rename = "publicIPAddressConfiguration")]
    pub(crate) public_ip_address_configuration: Option<PublicIpConfiguration>,
}

/// A public address that is created with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PublicIpConfiguration {
    /// The beginning of the resource's name; the engine appends a unique suffix.
    pub(crate) name: Option<String>,
    /// `Basic` (default) or `Standard`. A standard address is static.
    pub(crate) sku: Option<Sku>,
    /// The tags of the public address.
    pub(crate) tags: Option<Tags>,
    /// The properties of the public address.
    pub(crate) properties: PublicIpConfigurationProperties,
}

/// The properties of a public address that is created with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PublicIpConfigurationProperties {
    /// What happens to the address when its interface is deleted. Default: detached.
    pub(crate) delete_option: Option<DeleteOption>,
    /// The idle timeout in minutes. Stored and returned; default 4.
    pub(crate) idle_timeout_in_minutes: Option<u32>,
    /// `IPv4`. Anything else is refused with 400 `NotSupported`.
    #[serde(rename = "publicIPAddressVersion")]
    pub(crate) version: Option<String>,
    /// `Static` or `Dynamic`. The default follows from the SKU.
    #[serde(rename = "publicIPAllocationMethod")]
    pub(crate) allocation: Option<String>,
}
