//! The catalog of a region: instance types, images, networks, keys.
//!
//! Owns plain values and their defaults. The engine owns what clients create: instances, volumes,
//! their own images.

use std::{collections::BTreeMap, net::Ipv4Addr};

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// The default VPC, which contains all subnets and groups of the knobs by default.
pub(crate) const VPC: &str = "vpc-00000000000000001";

/// The address range of that VPC, as of every default VPC (Amazon VPC user guide, "Default VPC components").
pub(crate) const DEFAULT_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(172, 31, 0, 0), 16);

/// An instance type.
///
/// ```
/// use fleetwright_emulators::ec2::{Knobs, TypeSpec};
///
/// let mut gpu = TypeSpec::new("p5.48xlarge", 192, 2_097_152, "x86_64");
/// gpu.zones = vec!["us-east-1b".to_owned()];
/// let mut knobs = Knobs::default();
/// knobs.types.push(gpu);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TypeSpec {
    /// The name, for example `m5.large`.
    pub name: String,
    /// The number of virtual processors. Quotas count these.
    pub vcpus: u32,
    /// The memory in MiB.
    pub memory_mib: u64,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// The zones that offer the type; if empty, all zones do.
    #[serde(default)]
    pub zones: Vec<String>,
}

impl TypeSpec {
    /// Creates a type that every zone offers.
    pub fn new(name: &str, vcpus: u32, memory_mib: u64, architecture: &str) -> Self {
        Self {
            name: name.to_owned(),
            vcpus,
            memory_mib,
            architecture: architecture.to_owned(),
            zones: Vec::new(),
        }
    }

    /// A small selection of EC2's types.
    pub(crate) fn standard() -> Vec<Self> {
        vec![
            Self::new("c5.large", 2, 4096, "x86_64"),
            Self::new("c5.xlarge", 4, 8192, "x86_64"),
            Self::new("m1.small", 1, 1740, "x86_64"),
            Self::new("m5.large", 2, 8192, "x86_64"),
            Self::new("m5.xlarge", 4, 16384, "x86_64"),
            Self::new("m6g.large", 2, 8192, "arm64"),
            Self::new("r5.large", 2, 16384, "x86_64"),
            Self::new("t2.micro", 1, 1024, "x86_64"),
            Self::new("t3.micro", 2, 1024, "x86_64"),
            Self::new("t3.small", 2, 2048, "x86_64"),
            Self::new("t4g.micro", 2, 1024, "arm64"),
        ]
    }

    /// Whether a zone offers the type.
    pub(crate) fn is_in(&self, zone: &str) -> bool {
        self.zones.is_empty() || self.zones.iter().any(|other| other == zone)
    }
}

/// A machine image.
///
/// ```
/// use fleetwright_emulators::ec2::{Image, Knobs};
///
/// let mut knobs = Knobs::default();
/// knobs.images.push(Image::new("ami-0000000000000000a", "debian-12", "x86_64", "/dev/xvda", 8));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The description; empty by default.
    #[serde(default)]
    pub description: String,
    /// The owner's account; if empty, Amazon's.
    #[serde(default)]
    pub owner: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// The device name of the root volume, for example `/dev/xvda`.
    pub root_device: String,
    /// The minimum size of the root volume in GiB.
    pub root_gib: u32,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl Image {
    /// Creates an image that Amazon owns.
    pub fn new(id: &str, name: &str, architecture: &str, root_device: &str, root_gib: u32) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            owner: String::new(),
            architecture: architecture.to_owned(),
            root_device: root_device.to_owned(),
            root_gib,
            tags: BTreeMap::new(),
        }
    }

    /// `ami-00000000000000001` and two more.
    pub(crate) fn standard() -> Vec<Self> {
        vec![
            Self::new(
                "ami-00000000000000001",
                "linux-x86_64",
                "x86_64",
                "/dev/xvda",
                8,
            ),
            Self::new(
                "ami-00000000000000002",
                "linux-x86_64-large",
                "x86_64",
                "/dev/sda1",
                30,
            ),
            Self::new(
                "ami-00000000000000003",
                "linux-arm64",
                "arm64",
                "/dev/xvda",
                8,
            ),
        ]
    }
}

/// A subnet.
///
/// ```
/// use fleetwright_emulators::ec2::{Knobs, Subnet};
///
/// let mut private = Subnet::new("subnet-0000000000000000a", "us-east-1a", "10.0.9.0/24".parse()?);
/// private.public = false;
/// let mut knobs = Knobs::default();
/// knobs.subnets.push(private);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// The address range. EC2 reserves the first four addresses and the last one.
    pub cidr: Ipv4Net,
    /// Whether instances get a public address by default.
    #[serde(default)]
    pub public: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Its VPC. Default: the default VPC.
    #[serde(default = "default_vpc")]
    pub vpc: String,
}

/// Returns the id of the default VPC.
fn default_vpc() -> String {
    VPC.to_owned()
}

impl Subnet {
    /// Creates a subnet whose instances get public addresses.
    pub fn new(id: impl Into<String>, zone: impl Into<String>, cidr: Ipv4Net) -> Self {
        Self {
            id: id.into(),
            zone: zone.into(),
            cidr,
            public: true,
            tags: BTreeMap::new(),
            vpc: default_vpc(),
        }
    }
}

/// One public subnet for each zone, `subnet-00000000000000001` and so on, of 4091 addresses each.
pub(crate) fn default_subnets(zones: &[String]) -> Vec<Subnet> {
    let network = |number: usize| u8::try_from(number * 16).unwrap_or(u8::MAX);
    zones
        .iter()
        .enumerate()
        .map(|(number, zone)| {
            let cidr = Ipv4Net::new_assert([172, 31, network(number), 0].into(), 20);
            Subnet::new(format!("subnet-{:017x}", number + 1), zone, cidr)
        })
        .collect()
}

/// A security group, with the rule of every new group. The emulator filters no packets.
///
/// ```
/// use fleetwright_emulators::ec2::{Knobs, SecurityGroup};
///
/// let mut knobs = Knobs::default();
/// knobs.security_groups.push(SecurityGroup::new("sg-0000000000000000a", "runners"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl SecurityGroup {
    /// Creates a group.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: String::new(),
            tags: BTreeMap::new(),
        }
    }

    /// `sg-00000000000000001`, called `default`.
    pub(crate) fn standard() -> Self {
        Self {
            description: "default VPC security group".to_owned(),
            ..Self::new("sg-00000000000000001", "default")
        }
    }
}

/// A key pair.
///
/// ```
/// use fleetwright_emulators::ec2::{KeyPair, Knobs};
///
/// let mut knobs = Knobs::default();
/// knobs.key_pairs.push(KeyPair::new("ops"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyPair {
    /// Its name.
    pub name: String,
}

impl KeyPair {
    /// Creates a key pair with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// The key pair `default`.
    pub(crate) fn standard() -> Self {
        Self::new("default")
    }
}
