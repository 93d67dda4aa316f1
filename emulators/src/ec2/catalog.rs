//! What a region offers before anybody launches anything: types, images, networks, keys.
//!
//! Owns plain values and their defaults. What clients make (instances, volumes, their own images) is
//! the engine's.

use std::collections::BTreeMap;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// The network that everything is in.
pub(crate) const VPC: &str = "vpc-00000000000000001";

/// An instance type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TypeSpec {
    /// Its name, such as `m5.large`.
    pub name: String,
    /// How many virtual processors it has.
    pub vcpus: u32,
    /// How much memory it has.
    pub memory_mib: u64,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// The zones that offer it; empty, all do.
    #[serde(default)]
    pub zones: Vec<String>,
}

impl TypeSpec {
    /// A type that every zone offers.
    pub fn new(name: &str, vcpus: u32, memory_mib: u64, architecture: &str) -> Self {
        Self {
            name: name.to_owned(),
            vcpus,
            memory_mib,
            architecture: architecture.to_owned(),
            zones: Vec::new(),
        }
    }

    /// A small choice of EC2's.
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

    /// Whether a zone offers it.
    pub(crate) fn is_in(&self, zone: &str) -> bool {
        self.zones.is_empty() || self.zones.iter().any(|other| other == zone)
    }
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is, in words.
    #[serde(default)]
    pub description: String,
    /// Whose it is; empty, Amazon's.
    #[serde(default)]
    pub owner: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Where its root volume is.
    pub root_device: String,
    /// How large its root volume is at least.
    pub root_gib: u32,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl Image {
    /// An image of Amazon's.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Its addresses. EC2 keeps the first four and the last for itself.
    pub cidr: Ipv4Net,
    /// Whether instances get a public address unless they ask for none.
    #[serde(default)]
    pub public: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl Subnet {
    /// A subnet whose instances get public addresses.
    pub fn new(id: impl Into<String>, zone: impl Into<String>, cidr: Ipv4Net) -> Self {
        Self {
            id: id.into(),
            zone: zone.into(),
            cidr,
            public: true,
            tags: BTreeMap::new(),
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

/// A security group. The emulator filters no packets, so its rules are not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl SecurityGroup {
    /// A group.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyPair {
    /// Its name.
    pub name: String,
}

impl KeyPair {
    /// A key pair of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// One called `default`.
    pub(crate) fn standard() -> Self {
        Self::new("default")
    }
}
