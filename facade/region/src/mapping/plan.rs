//! The question that a server's controller asks before every launch, and its answers.

use std::collections::BTreeSet;

use fleetwright::{InstanceConfig, InvalidValue, LaunchToken, PublicAddress, Tags, UserData};

use crate::{
    catalog::{ByteSize, ImageState, Incompatible},
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId},
};

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
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError>;
}

/// Why a spec cannot be launched in a region. Nothing was asked of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
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
    /// The image was made of a server and is where that was.
    #[error(
        "image {image} was made in region {created_in} and is not in region {region}: choose one that is"
    )]
    OtherRegion {
        /// Which image.
        image: ImageId,
        /// Where it would have to be.
        region: RegionId,
        /// Where it is.
        created_in: RegionId,
    },
    /// The image is not there yet, or never will be.
    #[error("image {image} cannot be booted: it is {state}")]
    NotReady {
        /// Which image.
        image: ImageId,
        /// How far it is.
        state: ImageState,
    },
    /// The image does not boot on the flavor.
    #[error("image {image} does not boot on flavor {flavor}")]
    Incompatible {
        /// Which flavor.
        flavor: FlavorId,
        /// Which image.
        image: ImageId,
        /// Every reason.
        source: Incompatible,
    },
    /// A planner that is given native names as it plans was given one that is none.
    #[error("the launch as it is mapped in region {region} is refused")]
    Refused {
        /// Where.
        region: RegionId,
        /// What is wrong with it.
        source: InvalidValue,
    },
    /// The disk is larger than can be asked for.
    #[error("the disk of flavor {flavor}, {disk}, is larger than any provider can be asked for")]
    DiskTooLarge {
        /// Which flavor.
        flavor: FlavorId,
        /// How large.
        disk: ByteSize,
    },
}
