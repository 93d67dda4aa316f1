//! The interface between a server's controller and the planner of its region: the spec to launch, and why it cannot be.

use std::{collections::BTreeSet, fmt};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InvalidValue, LaunchToken, PublicAddress, Tags, UserData};

use crate::{
    catalog::{ByteSize, ImageState, Incompatible},
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId},
};
use fleetwright_store::StoreError;

/// A launch in terms of the catalog and of the tenants' resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The flavor.
    pub flavor: FlavorId,
    /// The image that it boots from.
    pub image: ImageId,
    /// The network.
    pub network: NetworkId,
    /// The security groups.
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether it gets a public address.
    pub public_ip: PublicAddress,
    /// The user data of its first boot, assembled.
    pub user_data: Option<UserData>,
    /// The tags of the instance.
    pub tags: Tags,
    /// The launch token, which is stored before the launch is sent.
    pub token: LaunchToken,
}

/// Turns the spec of a server into the configuration that its region's provisioner launches.
///
/// # Contract
///
/// Planning is a function of the spec, the catalog and the mapping: it has no effect, reads no clock and does not block. The
/// same spec gives the same configuration until the catalog or the mapping changes.
///
/// [`RegionPlanner`](super::RegionPlanner) plans by a mapping file. A planner of your own, where catalog and cloud use the same names:
///
/// ```
/// use fleetwright::InstanceConfig;
/// use fleetwright_region::{ids::RegionId, mapping::{LaunchPlanner, LaunchSpec, PlanError}};
///
/// struct SameNames(RegionId);
///
/// impl LaunchPlanner for SameNames {
///     fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
///         let config = InstanceConfig::builder(spec.image.as_str(), spec.flavor.as_str())
///             .tags(&spec.tags)
///             .launch_token(&spec.token)
///             .build();
///         config.map_err(|source| PlanError::Refused { region: self.0.clone(), source })
///     }
/// }
/// ```
#[async_trait]
pub trait LaunchPlanner: Send + Sync {
    /// Returns the configuration to launch.
    ///
    /// # Errors
    ///
    /// Why it cannot be launched. The message says what the tenant or the operator has to change.
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError>;

    /// Reads what planning needs to know of a flavor and an image, if others may have changed it. Called before each
    /// [`plan`](Self::plan). The default does nothing.
    ///
    /// # Errors
    ///
    /// The store fails.
    async fn prepare(&self, flavor: &FlavorId, image: &ImageId) -> Result<(), StoreError> {
        let _ = (flavor, image);
        Ok(())
    }
}

/// An entry of a region's mapping. `Display` is its kind and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedEntry {
    /// A flavor of the catalog.
    Flavor(FlavorId),
    /// An image of the catalog.
    Image(ImageId),
    /// A network.
    Network(NetworkId),
    /// A security group.
    SecurityGroup(SecurityGroupId),
}

impl MappedEntry {
    /// Returns the table of the mapping file to which it belongs.
    pub fn table(&self) -> String {
        match self {
            Self::Flavor(_) => "flavors".to_owned(),
            Self::Image(_) => "images".to_owned(),
            Self::Network(id) => format!("networks.{id}"),
            Self::SecurityGroup(_) => "security-groups".to_owned(),
        }
    }
}

impl fmt::Display for MappedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flavor(id) => write!(f, "flavor {id}"),
            Self::Image(id) => write!(f, "image {id}"),
            Self::Network(id) => write!(f, "network {id}"),
            Self::SecurityGroup(id) => write!(f, "security group {id}"),
        }
    }
}

/// Why a spec cannot be launched in a region. No request was sent to a cloud.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The flavor is not in the catalog.
    #[error("flavor {flavor} is not in the catalog of region {region}: choose one that is")]
    NoFlavor {
        /// The flavor.
        flavor: FlavorId,
        /// The region.
        region: RegionId,
    },
    /// The image is not in the catalog.
    #[error("image {image} is not in the catalog of region {region}: choose one that is")]
    NoImage {
        /// The image.
        image: ImageId,
        /// The region.
        region: RegionId,
    },
    /// The region's mapping has no entry. The operator can add it.
    #[error(
        "region {region} has no mapping for {entry}: choose another, or ask an operator to add it under [{}]",
        entry.table()
    )]
    Unmapped {
        /// The missing entry.
        entry: MappedEntry,
        /// The region.
        region: RegionId,
    },
    /// The image was created from a server of another region, and exists only there.
    #[error("image {image} was created in region {created_in}: choose an image of region {region}")]
    OtherRegion {
        /// The image.
        image: ImageId,
        /// The region of the launch.
        region: RegionId,
        /// The region of the image.
        created_in: RegionId,
    },
    /// The image is not ready, or its creation failed.
    #[error("image {image} is {state}, not ready: wait until it is ready, or choose another")]
    NotReady {
        /// The image.
        image: ImageId,
        /// Its state.
        state: ImageState,
    },
    /// The image does not boot on the flavor.
    #[error("image {image} does not boot on flavor {flavor}: choose another image or flavor")]
    Incompatible {
        /// The flavor.
        flavor: FlavorId,
        /// The image.
        image: ImageId,
        /// Every reason.
        source: Incompatible,
    },
    /// A native name that the planner got from elsewhere is not valid.
    #[error("the mapped launch in region {region} is invalid")]
    Refused {
        /// The region.
        region: RegionId,
        /// The value that is not valid.
        source: InvalidValue,
    },
    /// The disk of the flavor has 2^32 GiB or more.
    #[error(
        "the disk of flavor {flavor}, {disk}, is larger than any provider accepts: choose another flavor"
    )]
    DiskTooLarge {
        /// The flavor.
        flavor: FlavorId,
        /// Its disk.
        disk: ByteSize,
    },
}
