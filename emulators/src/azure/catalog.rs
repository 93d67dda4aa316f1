//! The catalog of a subscription: locations, sizes, images, networks.
//!
//! Owns plain values and their defaults, which are part of [`Knobs`](super::Knobs). The engine owns
//! everything that clients create.

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// A location, for example `eastus`.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, Location};
///
/// let mut knobs = Knobs::default();
/// knobs.locations = vec![Location::new("northeurope", &["1", "2"])];
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Location {
    /// The name, in lower case and without spaces. Clients may also write `East US`.
    pub name: String,
    /// The availability zones; empty for a location without zones.
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

    /// Returns the default: `eastus` with three zones, and `westus` without zones.
    pub(crate) fn standard() -> Vec<Self> {
        vec![
            Self::new("eastus", &["1", "2", "3"]),
            Self::new("westus", &[]),
        ]
    }
}

/// A resource group. It exists in every subscription.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, ResourceGroup};
///
/// let mut knobs = Knobs::default();
/// knobs.resource_groups.push(ResourceGroup::new("fleet", "eastus"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceGroup {
    /// The name, which is not case-sensitive.
    pub name: String,
    /// The location of the group's metadata. Its resources may be in any location.
    pub location: String,
}

impl ResourceGroup {
    /// Creates a resource group.
    pub fn new(name: &str, location: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: location.to_owned(),
        }
    }
}

/// A size of virtual machines.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, SizeSpec};
///
/// let mut large = SizeSpec::new("Standard_D32s_v5", "standardDSv5Family", 32, 131_072);
/// large.zones = vec!["2".to_owned()];
/// let mut knobs = Knobs::default();
/// knobs.sizes.push(large);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SizeSpec {
    /// The name, for example `Standard_D2s_v5`.
    pub name: String,
    /// The family that quota counts by, for example `standardDSv5Family`.
    pub family: String,
    /// The number of virtual processors. Quotas count these.
    pub cores: u32,
    /// The memory in MiB.
    pub memory_mib: u64,
    /// `x64` or `Arm64`.
    #[serde(default = "x64")]
    pub architecture: String,
    /// The zones that offer the size; if empty, all zones do.
    #[serde(default)]
    pub zones: Vec<String>,
    /// Whether this subscription may not use it at all: 409 `SkuNotAvailable`.
    #[serde(default)]
    pub restricted: bool,
    /// Whether its interfaces can have accelerated networking.
    #[serde(default)]
    pub accelerated_networking: bool,
    /// The space for an ephemeral OS disk in GiB; 0 means that it can have none.
    #[serde(default)]
    pub ephemeral_gib: u32,
}

/// The default architecture.
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
            accelerated_networking: false,
            ephemeral_gib: 0,
        }
    }

    /// Returns the default: seven common sizes, one of them with `Arm64`.
    pub(crate) fn standard() -> Vec<Self> {
        let mut arm = Self::new("Standard_D2ps_v5", "standardDPSv5Family", 2, 8192);
        arm.architecture = "Arm64".to_owned();
        let mut cached = Self::new("Standard_DS1_v2", "standardDSv2Family", 1, 3584);
        (cached.accelerated_networking, cached.ephemeral_gib) = (true, 43);
        vec![
            Self::new("Standard_B1s", "standardBSFamily", 1, 1024),
            Self::new("Standard_B2s", "standardBSFamily", 2, 4096),
            cached,
            Self::new("Standard_D2s_v5", "standardDSv5Family", 2, 8192),
            Self::new("Standard_D4s_v5", "standardDSv5Family", 4, 16384),
            arm,
            Self::new("Standard_F2s_v2", "standardFSv2Family", 2, 4096),
        ]
    }

    /// Whether a zone offers the size. A size with a list of zones is not offered without a zone.
    pub(crate) fn is_in(&self, zone: Option<&str>) -> bool {
        let offered = |zone: &str| self.zones.iter().any(|other| other == zone);
        self.zones.is_empty() || zone.is_some_and(offered)
    }
}

/// An image of the marketplace.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, MarketplaceImage};
///
/// let debian = MarketplaceImage::linux("Debian", "debian-12", "12-gen2", "0.20260112.1");
/// let mut knobs = Knobs::default();
/// knobs.images.push(debian);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MarketplaceImage {
    /// The publisher, for example `Canonical`.
    pub publisher: String,
    /// The offer of the publisher.
    pub offer: String,
    /// The SKU of the offer.
    pub sku: String,
    /// The version. A request may also say `latest`.
    pub version: String,
    /// `Linux` or `Windows`.
    pub os_type: String,
    /// `x64` or `Arm64`.
    #[serde(default = "x64")]
    pub architecture: String,
    /// The size in GiB, which is the minimum size of the OS disk.
    pub gib: u32,
}

impl MarketplaceImage {
    /// Creates a Linux image for `x64` of 30 GiB.
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

    /// Returns the default: Linux for `x64` and `Arm64`, and Windows for `x64`.
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

/// A virtual network. It exists in every subscription.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, VirtualNetwork};
///
/// let mut knobs = Knobs::default();
/// let network = VirtualNetwork::new("fleet", "runners", "eastus", "10.9.0.0/16".parse()?);
/// knobs.virtual_networks.push(network);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct VirtualNetwork {
    /// The resource group.
    pub resource_group: String,
    /// The name, which is not case-sensitive.
    pub name: String,
    /// The location. Interfaces must be in the same one.
    pub location: String,
    /// The subnets.
    pub subnets: Vec<Subnet>,
}

/// A subnet of a virtual network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subnet {
    /// The name, which is not case-sensitive.
    pub name: String,
    /// The address range. The first four addresses and the last one are never used.
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

/// A network security group. It exists in every subscription and has no rules.
///
/// ```
/// use fleetwright_emulators::azure::{Knobs, SecurityGroup};
///
/// let mut knobs = Knobs::default();
/// knobs.network_security_groups.push(SecurityGroup::new("fleet", "runners", "eastus"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// The resource group.
    pub resource_group: String,
    /// The name, which is not case-sensitive.
    pub name: String,
    /// The location.
    pub location: String,
}

impl SecurityGroup {
    /// Creates a network security group.
    pub fn new(resource_group: &str, name: &str, location: &str) -> Self {
        Self {
            resource_group: resource_group.to_owned(),
            name: name.to_owned(),
            location: location.to_owned(),
        }
    }
}

/// Whether two names of a resource are equal. Azure ignores their case.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Returns the name of a location in lower case and without spaces.
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
