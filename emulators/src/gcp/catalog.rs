//! The catalog: machine types, disk types, public images, subnetworks.
//!
//! Owns plain values and their defaults. The engine owns what clients create. Nothing here changes
//! during a run, except through the knobs.

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// A machine type that instances can use.
///
/// ```
/// use fleetwright_emulators::gcp::{Knobs, MachineType};
///
/// let mut large = MachineType::new("n2-standard-32", 32, 131_072);
/// large.zones = vec!["us-central1-b".to_owned()];
/// let mut knobs = Knobs::default();
/// knobs.machine_types.push(large);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MachineType {
    /// Its name, for example `e2-standard-2`.
    pub name: String,
    /// The number of its vCPUs. Quotas count these.
    pub cpus: u32,
    /// Its memory in MB.
    pub memory_mb: u32,
    /// Whether its vCPUs are shared with other customers (`isSharedCpu`). Default false.
    #[serde(default)]
    pub shared: bool,
    /// `X86_64` or `ARM64`. Default `X86_64`. An image of the other architecture is refused.
    #[serde(default = "x86_64")]
    pub architecture: String,
    /// The zones that offer it. Default: empty, which means every zone.
    #[serde(default)]
    pub zones: Vec<String>,
}

impl MachineType {
    /// Creates a type of the `X86_64` architecture with dedicated vCPUs, in all zones.
    pub fn new(name: impl Into<String>, cpus: u32, memory_mb: u32) -> Self {
        Self {
            name: name.into(),
            cpus,
            memory_mb,
            shared: false,
            architecture: x86_64(),
            zones: Vec::new(),
        }
    }

    /// Returns whether a zone offers the type.
    pub(crate) fn is_in(&self, zone: &str) -> bool {
        self.zones.is_empty() || self.zones.iter().any(|only| only == zone)
    }

    /// Returns the default machine types: three shared `e2` types, six dedicated types with 4 GiB
    /// per vCPU, and one `ARM64` type.
    pub(crate) fn standard() -> Vec<Self> {
        let shared = ["e2-micro", "e2-small", "e2-medium"]
            .into_iter()
            .zip([1, 2, 4]);
        let shared = shared.map(|(name, gib)| Self {
            shared: true,
            ..Self::new(name, 2, gib * 1024)
        });
        let whole = [
            ("e2-standard-2", 2, 8),
            ("e2-standard-4", 4, 16),
            ("n1-standard-1", 1, 4),
            ("n2-standard-2", 2, 8),
            ("n2-standard-4", 4, 16),
            ("c2-standard-4", 4, 16),
        ];
        let whole = whole.map(|(name, cpus, gib)| Self::new(name, cpus, gib * 1024));
        let arm = Self {
            architecture: "ARM64".to_owned(),
            ..Self::new("t2a-standard-1", 1, 4096)
        };
        shared.chain(whole).chain([arm]).collect()
    }
}

/// The default architecture.
fn x86_64() -> String {
    "X86_64".to_owned()
}

/// The disk types, the same in every zone. An insert with another one is refused.
pub(crate) const DISK_TYPES: [&str; 6] = [
    "hyperdisk-balanced",
    "local-ssd",
    "pd-balanced",
    "pd-extreme",
    "pd-ssd",
    "pd-standard",
];

/// A public image.
///
/// ```
/// use fleetwright_emulators::gcp::{Image, Knobs};
///
/// let mut image = Image::new("my-project", "runner-v7", 20);
/// image.family = Some("runner".to_owned());
/// let mut knobs = Knobs::default();
/// knobs.images.push(image);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Image {
    /// The project that owns it, for example `debian-cloud`.
    pub project: String,
    /// Its name, unique in its project.
    pub name: String,
    /// Its family. The newest image of a family is the last one in the list of images.
    #[serde(default)]
    pub family: Option<String>,
    /// The size of its disk in GiB. A boot disk cannot be smaller.
    pub gib: u32,
    /// `X86_64` or `ARM64`. Default `X86_64`.
    #[serde(default = "x86_64")]
    pub architecture: String,
}

impl Image {
    /// Creates an image of the `X86_64` architecture without a family.
    pub fn new(project: impl Into<String>, name: impl Into<String>, gib: u32) -> Self {
        Self {
            project: project.into(),
            name: name.into(),
            family: None,
            gib,
            architecture: x86_64(),
        }
    }

    /// Returns the image as a member of a family.
    fn of_family(self, family: &str) -> Self {
        Self {
            family: Some(family.to_owned()),
            ..self
        }
    }

    /// Returns the default images, with names in the form that Google's have.
    ///
    /// The family `debian-12` has two images, so that a test can check that the newest one is
    /// used.
    pub(crate) fn standard() -> Vec<Self> {
        let debian = |name: &str| Self::new("debian-cloud", name, 10);
        vec![
            debian("debian-12-bookworm-v20260101").of_family("debian-12"),
            debian("debian-12-bookworm-v20260201").of_family("debian-12"),
            Self {
                architecture: "ARM64".to_owned(),
                ..debian("debian-12-bookworm-arm64-v20260201").of_family("debian-12-arm64")
            },
            Self::new("ubuntu-os-cloud", "ubuntu-2404-noble-amd64-v20260201", 10)
                .of_family("ubuntu-2404-lts-amd64"),
            Self::new("windows-cloud", "windows-server-2022-dc-v20260201", 50)
                .of_family("windows-2022"),
        ]
    }
}

/// A subnetwork.
///
/// ```
/// use fleetwright_emulators::gcp::{Knobs, Subnetwork};
///
/// let mut runners = Subnetwork::new("us-central1", "10.9.0.0/20".parse()?);
/// runners.name = "runners".to_owned();
/// let mut knobs = Knobs::default();
/// knobs.subnetworks.push(runners);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Subnetwork {
    /// Its name, unique in its region.
    pub name: String,
    /// The name of the network that it belongs to.
    pub network: String,
    /// Its region.
    pub region: String,
    /// Its address range. Compute Engine reserves the first two and the last two addresses.
    pub cidr: Ipv4Net,
}

impl Subnetwork {
    /// Creates a subnetwork of the network `default` that is called `default` itself.
    pub fn new(region: impl Into<String>, cidr: Ipv4Net) -> Self {
        Self {
            name: "default".to_owned(),
            network: "default".to_owned(),
            region: region.into(),
            cidr,
        }
    }
}

/// Returns one subnetwork `default` for each region of the default zones, as a network in auto
/// mode has them.
pub(crate) fn default_subnetworks() -> Vec<Subnetwork> {
    [("us-central1", 128), ("europe-west1", 132)]
        .map(|(region, second)| {
            Subnetwork::new(region, Ipv4Net::new_assert([10, second, 0, 0].into(), 20))
        })
        .into()
}

/// Returns the region of a zone: its name without the last part, so `us-central1` for
/// `us-central1-a`.
pub(crate) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}
