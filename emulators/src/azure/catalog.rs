//! The catalog of a subscription: locations, sizes, images, networks.
//!
//! Owns plain values and their defaults. The engine owns what clients create.

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// A location, for example `eastus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Location {
    /// Its name, in small letters and without spaces.
    pub name: String,
    /// Its zones; none, it is not divided.
    #[serde(default)]
    pub zones: Vec<String>,
}

impl Location {
    /// Creates a location with these zones.
    pub fn new(name: &str, zones: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
        }
    }

    /// Two places, the first of which has zones.
    pub(crate) fn standard() -> Vec<Self> {
        vec![
            Self::new("eastus", &["1", "2", "3"]),
            Self::new("westus", &[]),
        ]
    }
}

/// A resource group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceGroup {
    /// Its name.
    pub name: String,
    /// Where it is kept; what is in it may be anywhere.
    pub location: String,
}

impl ResourceGroup {
    /// A resource group.
    pub fn new(name: &str, location: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: location.to_owned(),
        }
    }
}

/// A size of virtual machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SizeSpec {
    /// Its name, such as `Standard_D2s_v5`.
    pub name: String,
    /// The family that its quota is counted by, such as `standardDSv5Family`.
    pub family: String,
    /// The number of virtual processors. Quotas count these.
    pub cores: u32,
    /// The memory in MiB.
    pub memory_mib: u64,
    /// `x64` or `Arm64`.
    #[serde(default = "x64")]
    pub architecture: String,
    /// The zones that offer the type; if empty, all zones do.
    #[serde(default)]
    pub zones: Vec<String>,
    /// Whether this subscription may not have it anywhere.
    #[serde(default)]
    pub restricted: bool,
}

fn x64() -> String {
    "x64".to_owned()
}

impl SizeSpec {
    /// Creates a size that every zone offers.
    pub fn new(name: &str, family: &str, cores: u32, memory_mib: u64) -> Self {
        Self {
            name: name.to_owned(),
            family: family.to_owned(),
            cores,
            memory_mib,
            architecture: x64(),
            zones: Vec::new(),
            restricted: false,
        }
    }

    /// A small selection of Azure's sizes.
    pub(crate) fn standard() -> Vec<Self> {
        let mut arm = Self::new("Standard_D2ps_v5", "standardDPSv5Family", 2, 8192);
        arm.architecture = "Arm64".to_owned();
        vec![
            Self::new("Standard_B1s", "standardBSFamily", 1, 1024),
            Self::new("Standard_B2s", "standardBSFamily", 2, 4096),
            Self::new("Standard_DS1_v2", "standardDSv2Family", 1, 3584),
            Self::new("Standard_D2s_v5", "standardDSv5Family", 2, 8192),
            Self::new("Standard_D4s_v5", "standardDSv5Family", 4, 16384),
            arm,
            Self::new("Standard_F2s_v2", "standardFSv2Family", 2, 4096),
        ]
    }

    /// Whether a zone offers the type.
    pub(crate) fn is_in(&self, zone: Option<&str>) -> bool {
        let offered = |zone: &str| self.zones.iter().any(|other| other == zone);
        self.zones.is_empty() || zone.is_some_and(offered)
    }
}

/// An image of the marketplace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MarketplaceImage {
    /// Who publishes it.
    pub publisher: String,
    /// What it belongs to.
    pub offer: String,
    /// Which of the offer it is.
    pub sku: String,
    /// Its version, which `latest` stands for too.
    pub version: String,
    /// `Linux` or `Windows`.
    pub os_type: String,
    /// `x64` or `Arm64`.
    #[serde(default = "x64")]
    pub architecture: String,
    /// The minimum size of its disk in GiB.
    pub gib: u32,
}

impl MarketplaceImage {
    /// Creates a Linux image for x64.
    pub fn linux(publisher: &str, offer: &str, sku: &str, version: &str) -> Self {
        Self {
            publisher: publisher.to_owned(),
            offer: offer.to_owned(),
            sku: sku.to_owned(),
            version: version.to_owned(),
            os_type: "Linux".to_owned(),
            architecture: x64(),
            gib: 30,
        }
    }

    /// Two of Linux and one of Windows.
    pub(crate) fn standard() -> Vec<Self> {
        let jammy = "0001-com-ubuntu-server-jammy";
        let mut arm = Self::linux("Canonical", jammy, "22_04-lts-arm64", "22.04.202601010");
        arm.architecture = "Arm64".to_owned();
        let mut windows = Self::linux(
            "MicrosoftWindowsServer",
            "WindowsServer",
            "2022-datacenter-azure-edition",
            "20348.4529.251206",
        );
        windows.os_type = "Windows".to_owned();
        windows.gib = 127;
        vec![
            Self::linux("Canonical", jammy, "22_04-lts-gen2", "22.04.202601010"),
            arm,
            windows,
        ]
    }
}

/// A virtual network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct VirtualNetwork {
    /// The resource group that it is in.
    pub resource_group: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub location: String,
    /// Its subnets.
    pub subnets: Vec<Subnet>,
}

/// A subnet of a virtual network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subnet {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub cidr: Ipv4Net,
}

impl VirtualNetwork {
    /// Creates a network with one subnet, `default`.
    pub fn new(resource_group: &str, name: &str, location: &str, cidr: Ipv4Net) -> Self {
        Self {
            resource_group: resource_group.to_owned(),
            name: name.to_owned(),
            location: location.to_owned(),
            subnets: vec![Subnet {
                name: "default".to_owned(),
                cidr,
            }],
        }
    }
}

/// A network security group. It has no rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// The resource group that it is in.
    pub resource_group: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub location: String,
}

impl SecurityGroup {
    /// A network security group.
    pub fn new(resource_group: &str, name: &str, location: &str) -> Self {
        Self {
            resource_group: resource_group.to_owned(),
            name: name.to_owned(),
            location: location.to_owned(),
        }
    }
}

/// Whether two names of a resource are the same: Azure folds their case.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// A location's name without what people write into it.
pub(crate) fn normalize_location(name: &str) -> String {
    let letters = name.chars().filter(|c| !c.is_whitespace());
    letters.collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_offered_in_its_zones() {
        let mut size = SizeSpec::new("a", "f", 1, 1);
        assert!(size.is_in(None) && size.is_in(Some("1")));
        size.zones = vec!["2".to_owned()];
        assert!(!size.is_in(None) && !size.is_in(Some("1")) && size.is_in(Some("2")));
    }

    #[test]
    fn location_names_are_normalized() {
        assert_eq!(normalize_location("East US"), "eastus");
    }
}
