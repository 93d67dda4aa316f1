//! The documents that create and change virtual machines.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{DeleteOption, Reference, Sku, Tags};

/// A virtual machine to make or to change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VmBody {
    pub(crate) location: Option<String>,
    pub(crate) tags: Option<Tags>,
    pub(crate) zones: Option<Vec<String>>,
    pub(crate) identity: Option<Identity>,
    pub(crate) plan: Option<Value>,
    pub(crate) properties: VmProperties,
}

/// Who a virtual machine is to other services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) r#type: Option<String>,
    pub(crate) user_assigned_identities: Option<std::collections::BTreeMap<String, Option<Value>>>,
    pub(crate) principal_id: Option<String>,
    pub(crate) tenant_id: Option<String>,
}

/// What a virtual machine is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmProperties {
    pub(crate) hardware_profile: Option<HardwareProfile>,
    pub(crate) storage_profile: Option<StorageProfile>,
    pub(crate) os_profile: Option<OsProfile>,
    pub(crate) network_profile: Option<NetworkProfile>,
    pub(crate) diagnostics_profile: Option<DiagnosticsProfile>,
    pub(crate) priority: Option<String>,
    pub(crate) eviction_policy: Option<Eviction>,
    pub(crate) billing_profile: Option<BillingProfile>,
    pub(crate) user_data: Option<String>,
    pub(crate) license_type: Option<String>,
    pub(crate) security_profile: Option<Value>,
    pub(crate) additional_capabilities: Option<Value>,
    pub(crate) extensions_time_budget: Option<String>,
}

/// What becomes of a spot machine that Azure wants back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Eviction {
    #[default]
    Deallocate,
    Delete,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HardwareProfile {
    pub(crate) vm_size: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BillingProfile {
    pub(crate) max_price: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiagnosticsProfile {
    pub(crate) boot_diagnostics: Option<BootDiagnostics>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BootDiagnostics {
    #[serde(deserialize_with = "super::body::flag")]
    pub(crate) enabled: Option<bool>,
    pub(crate) storage_uri: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StorageProfile {
    pub(crate) image_reference: Option<ImageReference>,
    pub(crate) os_disk: Option<VmDisk>,
    pub(crate) data_disks: Option<Vec<VmDisk>>,
    pub(crate) disk_controller_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageReference {
    pub(crate) publisher: Option<String>,
    pub(crate) offer: Option<String>,
    pub(crate) sku: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) exact_version: Option<String>,
    pub(crate) id: Option<String>,
}

/// The system's disk, or a further one, which has a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmDisk {
    pub(crate) lun: Option<u32>,
    pub(crate) name: Option<String>,
    pub(crate) os_type: Option<String>,
    pub(crate) create_option: Option<String>,
    pub(crate) caching: Option<String>,
    #[serde(rename = "diskSizeGB")]
    pub(crate) disk_size_gb: Option<u32>,
    pub(crate) delete_option: Option<DeleteOption>,
    pub(crate) managed_disk: Option<ManagedDisk>,
    pub(crate) write_accelerator_enabled: Option<bool>,
    pub(crate) to_be_detached: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ManagedDisk {
    pub(crate) id: Option<String>,
    pub(crate) storage_account_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OsProfile {
    pub(crate) computer_name: Option<String>,
    pub(crate) admin_username: Option<String>,
    pub(crate) admin_password: Option<String>,
    pub(crate) custom_data: Option<String>,
    pub(crate) linux_configuration: Option<LinuxConfiguration>,
    pub(crate) windows_configuration: Option<Value>,
    pub(crate) secrets: Option<Vec<Value>>,
    pub(crate) allow_extension_operations: Option<bool>,
    pub(crate) require_guest_provision_signal: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LinuxConfiguration {
    #[serde(deserialize_with = "super::body::flag")]
    pub(crate) disable_password_authentication: Option<bool>,
    pub(crate) ssh: Option<Ssh>,
    #[serde(rename = "provisionVMAgent")]
    pub(crate) provision_vm_agent: Option<bool>,
    pub(crate) patch_settings: Option<Value>,
    #[serde(rename = "enableVMAgentPlatformUpdates")]
    pub(crate) enable_vm_agent_platform_updates: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Ssh {
    pub(crate) public_keys: Option<Vec<SshKey>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SshKey {
    pub(crate) path: Option<String>,
    pub(crate) key_data: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NetworkProfile {
    pub(crate) network_api_version: Option<String>,
    pub(crate) network_interfaces: Option<Vec<NicReference>>,
    pub(crate) network_interface_configurations: Option<Vec<NicConfiguration>>,
}

/// An interface that is there already.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicReference {
    pub(crate) id: Option<String>,
    pub(crate) properties: NicReferenceProperties,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicReferenceProperties {
    pub(crate) primary: Option<bool>,
    pub(crate) delete_option: Option<DeleteOption>,
}

/// An interface that is made with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicConfiguration {
    pub(crate) name: Option<String>,
    pub(crate) properties: NicConfigurationProperties,
    pub(crate) tags: Option<Tags>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicConfigurationProperties {
    pub(crate) primary: Option<bool>,
    pub(crate) delete_option: Option<DeleteOption>,
    pub(crate) enable_accelerated_networking: Option<bool>,
    #[serde(rename = "enableIPForwarding")]
    pub(crate) enable_ip_forwarding: Option<bool>,
    pub(crate) network_security_group: Option<Reference>,
    pub(crate) dns_settings: Option<Value>,
    pub(crate) ip_configurations: Vec<VmIpConfiguration>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VmIpConfiguration {
    pub(crate) name: Option<String>,
    pub(crate) properties: VmIpConfigurationProperties,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VmIpConfigurationProperties {
    pub(crate) subnet: Option<Reference>,
    pub(crate) primary: Option<bool>,
    #[serde(rename = "privateIPAddressVersion")]
    pub(crate) private_ip_address_version: Option<String>,
    #[serde(rename = "publicIPAddressConfiguration")]
    pub(crate) public_ip_address_configuration: Option<PublicIpConfiguration>,
}

/// A public address that is made with its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PublicIpConfiguration {
    pub(crate) name: Option<String>,
    pub(crate) sku: Option<Sku>,
    pub(crate) tags: Option<Tags>,
    pub(crate) properties: PublicIpConfigurationProperties,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PublicIpConfigurationProperties {
    pub(crate) delete_option: Option<DeleteOption>,
    pub(crate) idle_timeout_in_minutes: Option<u32>,
    #[serde(rename = "publicIPAddressVersion")]
    pub(crate) version: Option<String>,
    #[serde(rename = "publicIPAllocationMethod")]
    pub(crate) allocation: Option<String>,
}
