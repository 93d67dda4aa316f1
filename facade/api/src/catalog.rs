//! What is on offer: regions, flavors and images.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Tag;

/// A region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// Its id.
    pub id: String,
    /// The provider of its cloud.
    pub provider: String,
    /// What its cloud offers beyond the basic calls: `reboot`, `console-output` and others.
    pub verbs: Vec<String>,
}

/// The regions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegionList {
    /// The regions.
    pub items: Vec<Region>,
}

/// A flavor: the size of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its processors.
    pub cpus: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// Its root disk.
    pub disk_bytes: u64,
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    /// Whether it is a whole machine.
    pub baremetal: bool,
    /// Its GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// The GPUs of a flavor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Their vendor.
    pub vendor: String,
    /// Their model.
    pub model: String,
    /// The memory of each.
    pub memory_bytes: u64,
    /// How many.
    pub count: u32,
}

/// The flavors of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlavorList {
    /// The flavors.
    pub items: Vec<Flavor>,
}

/// An image: what a machine boots from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// A text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    /// The smallest disk that it fits on.
    pub size_bytes: u64,
    /// `virtualized`, `baremetal` or `any`.
    pub virtualization: String,
    /// Its operating system.
    pub os: ImageOs,
    /// `ready`, or why it cannot be used yet.
    pub state: String,
    /// The organization that created it as a snapshot.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// The project that created it as a snapshot.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// When the snapshot was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<DateTime<Utc>>,
}

/// The operating system of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageOs {
    /// `linux`.
    pub kernel: String,
    /// `debian`.
    pub family: String,
    /// `debian`, `ubuntu` and others.
    pub distro: String,
    /// `13`.
    pub version: String,
    /// `trixie`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codename: Option<String>,
}

/// The images of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageList {
    /// The images.
    pub items: Vec<Image>,
}

/// What answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `fleetwright-server`.
    pub name: String,
    /// Its version.
    pub version: String,
}
