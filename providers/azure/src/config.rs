//! The part of a launch that only Azure knows.
//!
//! Owns the launch config and its validation. It sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{InvalidValue, NetworkId, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

use crate::{AcceleratedNetworking, BootSecurity, DataDisk, SystemDisk, address, hardware, tags};

/// How virtual machines are launched on Azure, beside what an
/// [`InstanceConfig`](fleetwright::InstanceConfig) says.
///
/// Can be loaded with serde from any format; unknown fields are refused. A provisioner
/// [checks](Self::check) it when it is created. Machines run Linux: cloud-init runs the user data,
/// and people log in with an SSH key.
///
/// ```
/// use fleetwright_azure::{AzureLaunchConfig, Eviction, fleetwright::NetworkId};
///
/// let mut launch = AzureLaunchConfig::new(
///     "11111111-2222-3333-4444-555555555555",
///     "fleet",
///     "eastus",
///     NetworkId::new("vnet/default").unwrap(),
///     "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwright me@here",
/// );
/// launch.os_disk_type = Some("Premium_LRS".to_owned());
/// launch.eviction = Eviction::Deallocated;
/// assert!(launch.check().is_ok());
///
/// launch.location = "East US".to_owned();
/// assert_eq!(launch.check().unwrap_err().field(), "location");
/// ```
///
/// The required fields are those of [`new`](Self::new). As JSON:
///
/// ```
/// # use fleetwright_azure::AzureLaunchConfig;
/// let launch: AzureLaunchConfig = serde_json::from_str(r#"{
///     "subscription": "11111111-2222-3333-4444-555555555555",
///     "resource_group": "fleet",
///     "location": "eastus",
///     "subnet": "vnet/default",
///     "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwright me@here",
///     "eviction": "deallocated",
///     "plan": {"name": "sku", "publisher": "vendor", "product": "offer"},
///     "tags": {"team": "blue"}
/// }"#).unwrap();
/// assert_eq!(launch.admin_user, "azureuser");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AzureLaunchConfig {
    /// The subscription, by its GUID. Required.
    /// Errors and ids show it in lower case.
    pub subscription: String,
    /// The resource group that contains everything that is launched and listed. Required. It must exist.
    /// The crate never creates or deletes a group.
    pub resource_group: String,
    /// The location of the machines, such as `eastus`. Required.
    pub location: String,
    /// The subnet of launches that name none: a resource id, or `network/subnet` in the resource
    /// group. A launch's `placement.network` overrides it. Required.
    pub subnet: NetworkId,
    /// The user that logs in with [`ssh_public_key`](Self::ssh_public_key), 1 to 64 characters.
    /// Default: `azureuser`.
    #[serde(default = "default_admin_user")]
    pub admin_user: String,
    /// The key to log in with: one line of an `authorized_keys` file. Required. Azure creates no Linux
    /// machine without one.
    pub ssh_public_key: String,
    /// The network security group of launches that name none: a resource id, or a name in the
    /// resource group. Default: none. A machine has at most one.
    #[serde(default)]
    pub network_security_group: Option<SecurityGroupId>,
    /// The zone of launches that name none, such as `1`. Default: none, and Azure then assigns no
    /// zone.
    #[serde(default)]
    pub zone: Option<Zone>,
    /// Whether a launch that leaves it open gets a public address. Default: `Assigned`. The address is
    /// static, of the Standard SKU, and is kept while the machine is stopped.
    #[serde(default = "assigned")]
    pub public_address: PublicAddress,
    /// The type of the system disk, such as `Premium_LRS`. Default: Azure's choice.
    #[serde(default)]
    pub os_disk_type: Option<String>,
    /// Where the system disk is. Default: it is a managed disk. An ephemeral one excludes
    /// [`Eviction::Deallocated`].
    #[serde(default)]
    pub system_disk: SystemDisk,
    /// Empty disks that every machine gets, in the order of their logical unit numbers. They are deleted
    /// with the machine. Default: none.
    #[serde(default)]
    pub data_disks: Vec<DataDisk>,
    /// How the boot of machines is protected. Default: Azure's choice.
    #[serde(default)]
    pub boot_security: Option<BootSecurity>,
    /// Whether the interfaces of machines bypass the host's virtual switch. Default: they do not.
    #[serde(default)]
    pub accelerated_networking: AcceleratedNetworking,
    /// Whether each machine gets its own identity towards Azure's services. Default: no.
    #[serde(default)]
    pub system_identity: SystemIdentity,
    /// The resource ids of the identities that machines can act as. Default: none.
    #[serde(default)]
    pub user_identities: BTreeSet<String>,
    /// What happens to a spot machine that Azure evicts. Default: it is deleted.
    #[serde(default)]
    pub eviction: Eviction,
    /// The plan of a marketplace image that has one. Its terms must be accepted beforehand.
    /// Default: none. An image with a plan cannot be launched without it, and refuses another one.
    #[serde(default)]
    pub plan: Option<MarketplacePlan>,
    /// Whether Azure keeps the console log, which [`console_output`] reads. Default: it does.
    ///
    /// [`console_output`]: fleetwright::InstanceProvisioner::console_output
    #[serde(default)]
    pub boot_diagnostics: BootDiagnostics,
    /// How a launch's user data reaches the machine. Default: as custom data.
    #[serde(default)]
    pub user_data: UserDataAs,
    /// Tags for every machine, in addition to those of the launch. Reads return them too. Default:
    /// none. They count against the limit of 50, and a tag of the launch with the same name
    /// overrides them.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

fn default_admin_user() -> String {
    "azureuser".to_owned()
}

const fn assigned() -> PublicAddress {
    PublicAddress::Assigned
}

/// Whether each machine gets its own identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemIdentity {
    /// It gets none.
    /// Serialized as `absent`.
    #[default]
    Absent,
    /// It gets one, which Azure deletes with the machine.
    /// Serialized as `assigned`.
    Assigned,
}

/// What happens to a spot machine that Azure evicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// It is deleted, with its disk, interface and address.
    /// Serialized as `deleted`.
    #[default]
    Deleted,
    /// It is deallocated. Its disk remains and is billed.
    /// Serialized as `deallocated`.
    Deallocated,
}

/// Whether Azure keeps the console log of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootDiagnostics {
    /// It does, in its own storage, until the machine is deleted.
    /// Serialized as `kept`.
    #[default]
    Kept,
    /// It does not, and `console_output` fails with `Conflict`, because Azure refuses the call.
    /// Serialized as `off`.
    Off,
}

/// How a launch's user data reaches the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserDataAs {
    /// As custom data: cloud-init runs it at the first boot. It cannot be read or changed later.
    /// Serialized as `custom-data`.
    #[default]
    CustomData,
    /// As user data: software in the machine can read it from the metadata service at any time.
    /// Serialized as `user-data`.
    UserData,
}

/// The purchase plan of a marketplace image.
///
/// ```
/// use fleetwright_azure::MarketplacePlan;
///
/// let plan = MarketplacePlan::new("9-base", "resf", "rockylinux-x86_64");
/// assert_eq!(plan.publisher, "resf");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MarketplacePlan {
    /// The name, often the SKU of the image.
    pub name: String,
    /// The publisher.
    pub publisher: String,
    /// The product, often the offer of the image.
    pub product: String,
}

impl MarketplacePlan {
    /// Creates a plan from its three names.
    pub fn new(
        name: impl Into<String>,
        publisher: impl Into<String>,
        product: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            publisher: publisher.into(),
            product: product.into(),
        }
    }
}

impl AzureLaunchConfig {
    /// Creates a config with the defaults of every other field: public addresses, the user
    /// `azureuser`, no zone.
    pub fn new(
        subscription: impl Into<String>,
        resource_group: impl Into<String>,
        location: impl Into<String>,
        subnet: NetworkId,
        ssh_public_key: impl Into<String>,
    ) -> Self {
        Self {
            subscription: subscription.into(),
            resource_group: resource_group.into(),
            location: location.into(),
            subnet,
            admin_user: default_admin_user(),
            ssh_public_key: ssh_public_key.into(),
            network_security_group: None,
            zone: None,
            public_address: assigned(),
            os_disk_type: None,
            system_disk: SystemDisk::default(),
            data_disks: Vec::new(),
            boot_security: None,
            accelerated_networking: AcceleratedNetworking::default(),
            system_identity: SystemIdentity::default(),
            user_identities: BTreeSet::new(),
            eviction: Eviction::default(),
            plan: None,
            boot_diagnostics: BootDiagnostics::default(),
            user_data: UserDataAs::default(),
            tags: BTreeMap::new(),
        }
    }

    /// Checks every value without a call to Azure.
    ///
    /// # Errors
    ///
    /// The first value that Azure could not accept, by its field name.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let malformed =
            |field, expected| Err(InvalidValue::new(field, Problem::Malformed { expected }));
        if !address::is_guid(&self.subscription) {
            return malformed(
                "subscription",
                "a GUID, in hexadecimal digits with four hyphens",
            );
        }
        if !address::is_group(&self.resource_group) {
            let expected =
                "at most 90 letters, digits and any of -_.(), without a point at its end";
            return malformed("resource_group", expected);
        }
        if !address::is_word(&self.location) {
            return malformed("location", "a name such as eastus, in letters and digits");
        }
        if address::subnet(self, &self.subnet).is_none() {
            let expected = "a resource id, or network/subnet in the resource group";
            return malformed("subnet", expected);
        }
        let group = self.network_security_group.as_ref();
        if group.is_some_and(|group| address::security_group(self, group).is_none()) {
            let expected = "a resource id, or a name in the resource group";
            return malformed("network_security_group", expected);
        }
        if self.admin_user.is_empty() || self.admin_user.len() > 64 {
            return malformed("admin_user", "a name of 1 to 64 characters");
        }
        if !is_key(&self.ssh_public_key) {
            return malformed(
                "ssh_public_key",
                "one line of an authorized_keys file, such as ssh-ed25519 AAAA…",
            );
        }
        let zone = self.zone.as_ref();
        if zone.is_some_and(|zone| !address::is_word(zone.as_str())) {
            return malformed("zone", "a number such as 1");
        }
        if let Some(invalid) = self.user_identities.iter().find(|id| !id.starts_with('/')) {
            let instead = format!("{invalid} is not a resource id");
            return Err(InvalidValue::new(
                "user_identities",
                Problem::NotOffered { instead },
            ));
        }
        let ephemeral = self.system_disk.placement().is_some();
        if ephemeral && self.eviction == Eviction::Deallocated {
            let instead =
                "a machine with an ephemeral system disk cannot be deallocated: choose deleted"
                    .to_owned();
            return Err(InvalidValue::new(
                "eviction",
                Problem::NotOffered { instead },
            ));
        }
        hardware::check_disks(&self.data_disks)?;
        tags::check_own(&self.tags)
    }
}

/// Whether `text` is a public key: its type and its bytes, on one line.
fn is_key(text: &str) -> bool {
    let mut parts = text.split_ascii_whitespace();
    let kind = parts.next().unwrap_or_default();
    let bytes = parts.next().unwrap_or_default();
    let known = ["ssh-", "ecdsa-", "sk-"];
    known.iter().any(|prefix| kind.starts_with(prefix))
        && bytes.len() > 16
        && !text.contains(['\n', '\r'])
}

#[cfg(test)]
mod tests;
