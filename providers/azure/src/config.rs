//! What only Azure knows of a launch.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{InvalidValue, NetworkId, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

use crate::{address, tags};

/// How virtual machines are launched on Azure, beside what a launch itself says.
///
/// Loadable with serde from any format; [`check`](Self::check) is called when a provisioner is made. Virtual
/// machines are Linux ones: user data is run by cloud-init, and one logs in with a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AzureLaunchConfig {
    /// The subscription, by its GUID.
    pub subscription: String,
    /// The resource group that everything is made in and listed of. It must be there.
    pub resource_group: String,
    /// Where machines are launched, such as `eastus`.
    pub location: String,
    /// The subnet of launches that name none: a resource id, or `network/subnet` in the resource group.
    pub subnet: NetworkId,
    /// Who logs in by [`ssh_public_key`](Self::ssh_public_key).
    #[serde(default = "admin")]
    pub admin_user: String,
    /// The key to log in with, as in an `authorized_keys` file. Azure makes no Linux machine without one.
    pub ssh_public_key: String,
    /// The network security group of launches that name none: a resource id, or a name in the resource group.
    #[serde(default)]
    pub network_security_group: Option<SecurityGroupId>,
    /// The zone of launches that name none; unset means that Azure chooses no zone at all.
    #[serde(default)]
    pub zone: Option<Zone>,
    /// Whether launches that do not say get a public address.
    #[serde(default = "assigned")]
    pub public_address: PublicAddress,
    /// The type of the system's disk, such as `Premium_LRS`; unset means Azure's choice.
    #[serde(default)]
    pub os_disk_type: Option<String>,
    /// Whether machines get an identity of their own to Azure's services.
    #[serde(default)]
    pub system_identity: SystemIdentity,
    /// The identities, by resource id, that machines can act as.
    #[serde(default)]
    pub user_identities: BTreeSet<String>,
    /// What becomes of a spot machine that Azure wants back.
    #[serde(default)]
    pub eviction: Eviction,
    /// The plan of images of the marketplace that have one. Its terms must have been accepted.
    #[serde(default)]
    pub plan: Option<MarketplacePlan>,
    /// Whether the console is kept, which [`console_output`] reads.
    ///
    /// [`console_output`]: fleetwright::InstanceProvisioner::console_output
    #[serde(default)]
    pub boot_diagnostics: BootDiagnostics,
    /// Where a launch's user data goes.
    #[serde(default)]
    pub user_data: UserDataAs,
    /// More tags for every machine. They are shown as tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

fn admin() -> String {
    "azureuser".to_owned()
}

const fn assigned() -> PublicAddress {
    PublicAddress::Assigned
}

/// Whether machines get an identity of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemIdentity {
    /// They get none.
    #[default]
    Absent,
    /// Each gets one, which is gone with it.
    Assigned,
}

/// What becomes of a spot machine that Azure wants back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// It is deleted, with all that was launched with it.
    #[default]
    Deleted,
    /// It is deallocated, and its disk goes on to cost.
    Deallocated,
}

/// Whether the console of a machine is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootDiagnostics {
    /// By Azure, for as long as the machine is there.
    #[default]
    Kept,
    /// There is none.
    Off,
}

/// Where a launch's user data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserDataAs {
    /// Custom data: cloud-init runs it at the first boot, and nobody reads it later.
    #[default]
    CustomData,
    /// User data: what runs in the machine reads it from the metadata service, as often as it likes.
    UserData,
}

/// The plan of an image of the marketplace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MarketplacePlan {
    /// Its name, which is often the image's SKU.
    pub name: String,
    /// Whose it is.
    pub publisher: String,
    /// What it is of, which is often the image's offer.
    pub product: String,
}

impl MarketplacePlan {
    /// A plan.
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
    /// Machines with public addresses, in one subnet, that one logs in to with a key.
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
            admin_user: admin(),
            ssh_public_key: ssh_public_key.into(),
            network_security_group: None,
            zone: None,
            public_address: assigned(),
            os_disk_type: None,
            system_identity: SystemIdentity::default(),
            user_identities: BTreeSet::new(),
            eviction: Eviction::default(),
            plan: None,
            boot_diagnostics: BootDiagnostics::default(),
            user_data: UserDataAs::default(),
            tags: BTreeMap::new(),
        }
    }

    /// Whether Azure could take it; the error says what it could not.
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
        if let Some(odd) = self.user_identities.iter().find(|id| !id.starts_with('/')) {
            let instead = format!("{odd} is no resource id");
            return Err(InvalidValue::new(
                "user_identities",
                Problem::NotOffered { instead },
            ));
        }
        tags::check_own(&self.tags)
    }
}

/// Whether `text` is the public half of a key: its kind, and its bytes.
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
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ fleet";

    fn config() -> AzureLaunchConfig {
        let subnet = NetworkId::new("vnet/default").unwrap();
        let subscription = "00000000-0000-0000-0000-00000000000a";
        AzureLaunchConfig::new(subscription, "rg", "eastus", subnet, KEY)
    }

    fn wrong(change: impl FnOnce(&mut AzureLaunchConfig)) -> String {
        let mut config = config();
        change(&mut config);
        config.check().unwrap_err().field().to_owned()
    }

    #[test]
    fn what_azure_could_not_take_is_named() {
        assert_eq!(config().check(), Ok(()));
        assert_eq!(
            wrong(|config| config.subscription = "mine".to_owned()),
            "subscription"
        );
        for odd in ["", "a.", "a/b", "a b", &"a".repeat(91)] {
            let field = wrong(|config| config.resource_group = odd.to_owned());
            assert_eq!(field, "resource_group", "{odd}");
        }
        assert_eq!(
            wrong(|config| config.location = "East US".to_owned()),
            "location"
        );
        for odd in ["default", "a/b/c", "/subscriptions/x", "../default"] {
            let field = wrong(|config| config.subnet = NetworkId::new(odd).unwrap());
            assert_eq!(field, "subnet", "{odd}");
        }
        let odd = Some(SecurityGroupId::new("a/b").unwrap());
        assert_eq!(
            wrong(|config| config.network_security_group = odd),
            "network_security_group"
        );
        assert_eq!(wrong(|config| config.admin_user.clear()), "admin_user");
        for odd in [
            "",
            "ssh-rsa",
            "password",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5A\nx",
        ] {
            let field = wrong(|config| config.ssh_public_key = odd.to_owned());
            assert_eq!(field, "ssh_public_key", "{odd}");
        }
        let odd = ["mine".to_owned()].into();
        assert_eq!(
            wrong(|config| config.user_identities = odd),
            "user_identities"
        );
        let odd = [("a/b".to_owned(), String::new())].into();
        assert!(wrong(|config| config.tags = odd).starts_with("tag"));
    }

    #[test]
    fn a_file_says_what_it_wants_and_a_typo_is_refused() {
        let text = format!(
            r#"{{"subscription":"00000000-0000-0000-0000-00000000000a","resource_group":"rg","location":"eastus",
            "subnet":"vnet/default","ssh_public_key":"{KEY}","eviction":"deallocated","system_identity":"assigned",
            "user_data":"user-data","plan":{{"name":"a","publisher":"b","product":"c"}}}}"#
        );
        let config: AzureLaunchConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(config.eviction, Eviction::Deallocated);
        assert_eq!(config.plan, Some(MarketplacePlan::new("a", "b", "c")));
        assert_eq!(config.admin_user, "azureuser");
        let back = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<AzureLaunchConfig>(&back).unwrap(),
            config
        );
        let typo = text.replace("eviction", "evicted");
        assert!(serde_json::from_str::<AzureLaunchConfig>(&typo).is_err());
    }
}
