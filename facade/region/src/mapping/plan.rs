//! The question that a server's controller asks before every launch, and its answers.

use std::collections::BTreeSet;

use fleetwright::{InstanceConfig, InvalidValue, LaunchToken, PublicAddress, Tags, UserData};

use crate::ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId};

/// What is to be launched, in the region's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The size of the server.
    pub flavor: FlavorId,
    /// What it boots from.
    pub image: ImageId,
    /// Where it stands.
    pub network: NetworkId,
    /// The security groups around it.
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether it gets a public address.
    pub public_ip: PublicAddress,
    /// What it runs at its first boot.
    pub user_data: Option<UserData>,
    /// Tags for the cloud.
    pub tags: Tags,
    /// The name of this launch, stored before it is sent.
    pub token: LaunchToken,
}

/// Turns a server's spec into what its region's provisioner launches.
///
/// # Contract
///
/// The answer is a function of the spec and of what the planner was made of: planning has no effect, reads no clock
/// and waits for nothing. The same spec gives the same config until the catalog or the mapping changes.
pub trait LaunchPlanner: Send + Sync {
    /// The config to launch, or why there is none, in words for the one who can mend it.
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, Unplannable>;
}

/// Why a spec cannot be launched in a region. Nothing was asked of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unplannable {
    /// The catalog never had this flavor.
    #[error("flavor {flavor} is not in the catalog of region {region}: choose one that is")]
    NoFlavor {
        /// Which.
        flavor: FlavorId,
        /// Where.
        region: RegionId,
    },
    /// The catalog never had this image.
    #[error("image {image} is not in the catalog of region {region}: choose one that is")]
    NoImage {
        /// Which.
        image: ImageId,
        /// Where.
        region: RegionId,
    },
    /// The mapping has no entry.
    #[error("no mapping for {what} in region {region}: add it under [{place}]")]
    Unmapped {
        /// What, with its id.
        what: String,
        /// Where.
        region: RegionId,
        /// The table of the region's mapping file that it belongs to.
        place: String,
    },
    /// What comes of the spec is no config that any provider takes.
    #[error("the launch as it is mapped in region {region} is refused")]
    Refused {
        /// Where.
        region: RegionId,
        /// What is wrong with it.
        source: InvalidValue,
    },
}
