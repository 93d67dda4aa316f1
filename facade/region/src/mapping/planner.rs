//! The planner of one region: the current catalog with the region's mapping.

use std::{
    num::NonZeroU32,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use fleetwright::{ImageId, InstanceConfig, Placement};
use fleetwright_identity::{Principal, Refused};
use fleetwright_store::StoreError;

use super::{LaunchPlanner, LaunchSpec, MappedEntry, NetworkMapping, PlanError, RegionMapping};
use crate::{
    catalog::{Catalog, CatalogService, EntryId, Flavor, Image, Origin, Unit, check_compatible},
    file::Problems,
    ids::{FlavorId, NetworkId},
};

/// Why a mapping was not loaded again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file has problems.
    #[error(transparent)]
    Refused(#[from] Problems),
    /// The catalog could not be read.
    #[error("the mapping is unchanged: the catalog could not be read")]
    Store(#[from] StoreError),
}

/// Plans the launches of one region. Retired flavors and images are planned like others as long as they are mapped.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright::{LaunchToken, PublicAddress, Tags};
/// use fleetwright_region::{
///     catalog::CatalogService,
///     ids::{FlavorId, ImageId, NetworkId},
///     mapping::{LaunchPlanner, LaunchSpec, RegionPlanner},
///     schema,
/// };
/// use fleetwright_store::{MemoryStore, Schema};
///
/// # const CATALOG: &str = include_str!("../../catalog.example.toml");
/// # const MAPPING: &str = r#"
/// #     region = "eu-1"
/// #     provider = "ec2"
/// #     flavors = { standard-4 = "m7i.xlarge" }
/// #     images = { "ubuntu-24.04" = "ami-0123456789abcdef0" }
/// #     [networks.default]
/// #     subnet = "subnet-0a1b"
/// # "#;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let (catalog, _) = CatalogService::open(store).await?;
/// catalog.load(CATALOG).await?;
/// let planner = RegionPlanner::new(Arc::new(catalog), MAPPING)?;
/// let mut spec = LaunchSpec {
///     flavor: FlavorId::new("standard-4")?,
///     image: ImageId::new("ubuntu-24.04")?,
///     network: NetworkId::new("b059b3e6-9ae5-42b7-94b4-f42fb7a6baee")?,
///     security_groups: Default::default(),
///     public_ip: PublicAddress::Absent,
///     user_data: None,
///     tags: Tags::new(),
///     token: LaunchToken::new("web-1")?,
/// };
/// assert_eq!(planner.plan(&spec)?.instance_type.as_str(), "m7i.xlarge");
///
/// spec.flavor = FlavorId::new("huge")?;
/// let error = planner.plan(&spec).unwrap_err();
/// assert_eq!(error.to_string(), "flavor huge is not in the catalog of region eu-1: choose one that is");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RegionPlanner {
    catalog: Arc<CatalogService>,
    mapping: RwLock<Arc<RegionMapping>>,
}

impl RegionPlanner {
    /// Creates a planner from the text of a mapping file.
    ///
    /// # Errors
    ///
    /// Every problem of the file; see [`RegionMapping::parse`].
    pub fn new(catalog: Arc<CatalogService>, text: &str) -> Result<Self, Problems> {
        let mapping = RegionMapping::parse(text, &catalog.current())?;
        Ok(Self {
            catalog,
            mapping: RwLock::new(Arc::new(mapping)),
        })
    }

    /// Replaces the mapping by the text of another file for the same region. It is checked against the catalog as this process has last
    /// read or followed it; [`reload`](Self::reload) reads it first.
    ///
    /// # Errors
    ///
    /// Every problem of the file, or it is for another region. The mapping is unchanged.
    pub fn load(&self, text: &str) -> Result<(), Problems> {
        let next = RegionMapping::parse(text, &self.catalog.current())?;
        let region = &self.mapping().region;
        if next.region != *region {
            return Err(Problems::single(&format!(
                "it is the mapping of region {}: expected that of region {region}",
                next.region
            )));
        }
        let mut mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner);
        *mapping = Arc::new(next);
        Ok(())
    }

    /// Reads the catalog from the store, and then replaces the mapping as [`load`](Self::load) does. For operators: another process may
    /// have loaded the catalog that the file is for.
    ///
    /// # Errors
    ///
    /// The store fails, or those of [`load`](Self::load). The mapping is unchanged.
    pub async fn reload(&self, text: &str) -> Result<(), ReloadError> {
        self.catalog.refresh().await?;
        Ok(self.load(text)?)
    }

    /// Returns the flavors that are offered in this region.
    ///
    /// # Errors
    ///
    /// The principal may not list flavors.
    pub fn flavors(&self, principal: &Principal) -> Result<Vec<Flavor>, Refused> {
        let mapping = self.mapping();
        let mut flavors = self.catalog.flavors(principal)?;
        flavors.retain(|flavor| mapping.flavors.contains_key(&flavor.id));
        Ok(flavors)
    }

    /// Returns the images that are offered in this region and visible to the principal.
    ///
    /// # Errors
    ///
    /// The principal may not list images.
    pub fn images(&self, principal: &Principal) -> Result<Vec<Image>, Refused> {
        let mapping = self.mapping();
        let mut images = self.catalog.images(principal)?;
        images.retain(|image| mapping.has_image(image));
        Ok(images)
    }

    /// Returns the entries that the catalog offers and that this region has no mapping for.
    pub fn unmapped(&self) -> Vec<EntryId> {
        self.mapping().unmapped(&self.catalog.current())
    }

    /// Returns the current mapping.
    pub fn mapping(&self) -> Arc<RegionMapping> {
        let mapping = self.mapping.read();
        Arc::clone(&mapping.unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl LaunchPlanner for RegionPlanner {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
        self.mapping().plan(&self.catalog.current(), spec)
    }

    async fn prepare(
        &self,
        flavor: &FlavorId,
        image: &crate::ids::ImageId,
    ) -> Result<(), StoreError> {
        self.catalog.renew(flavor, image).await
    }
}

impl RegionMapping {
    /// Returns the configuration to launch for a spec. Pure.
    ///
    /// # Errors
    ///
    /// See [`PlanError`].
    pub fn plan(&self, catalog: &Catalog, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
        let region = || self.region.clone();
        let flavor = catalog
            .flavor(&spec.flavor)
            .ok_or_else(|| PlanError::NoFlavor {
                flavor: spec.flavor.clone(),
                region: region(),
            })?;
        let image = catalog
            .image(&spec.image)
            .ok_or_else(|| PlanError::NoImage {
                image: spec.image.clone(),
                region: region(),
            })?;
        let instance_type = self
            .flavors
            .get(&spec.flavor)
            .ok_or_else(|| self.missing(MappedEntry::Flavor(spec.flavor.clone())))?;
        let native_image = self.native_image(image)?;
        check_compatible(flavor, image).map_err(|source| PlanError::Incompatible {
            flavor: spec.flavor.clone(),
            image: spec.image.clone(),
            source,
        })?;
        let mut config = InstanceConfig::new(native_image.clone(), instance_type.clone());
        config.disk_size_gb = disk(flavor)?;
        config.placement = self.placement(spec)?;
        config.user_data.clone_from(&spec.user_data);
        config.tags.clone_from(&spec.tags);
        config.launch_token = Some(spec.token.clone());
        Ok(config)
    }

    /// Returns the native id of an image.
    fn native_image<'m>(&'m self, image: &'m Image) -> Result<&'m ImageId, PlanError> {
        match &image.origin {
            Origin::File => self
                .images
                .get(&image.id)
                .ok_or_else(|| self.missing(MappedEntry::Image(image.id.clone()))),
            Origin::Snapshot { region, native, .. } if *region == self.region => {
                native.as_ref().ok_or_else(|| PlanError::NotReady {
                    image: image.id.clone(),
                    state: image.state,
                })
            }
            Origin::Snapshot { region, .. } => Err(PlanError::OtherRegion {
                image: image.id.clone(),
                region: self.region.clone(),
                created_in: region.clone(),
            }),
        }
    }

    fn placement(&self, spec: &LaunchSpec) -> Result<Placement, PlanError> {
        let network = self.network(&spec.network)?;
        let mut placement = Placement::default();
        placement.zone = network.zone.clone().or_else(|| self.zone.clone());
        placement.network = Some(network.subnet.clone());
        placement
            .security_groups
            .clone_from(&network.security_groups);
        for group in &spec.security_groups {
            let native = self.security_groups.get(group);
            let native = native.ok_or_else(|| self.missing(MappedEntry::SecurityGroup(*group)))?;
            placement.security_groups.insert(native.clone());
        }
        placement.public_address = Some(spec.public_ip);
        Ok(placement)
    }

    fn network(&self, id: &NetworkId) -> Result<&NetworkMapping, PlanError> {
        let found = self.networks.get(id).or(self.default_network.as_ref());
        found.ok_or_else(|| self.missing(MappedEntry::Network(*id)))
    }

    /// Returns whether the region has an image.
    fn has_image(&self, image: &Image) -> bool {
        match &image.origin {
            Origin::File => self.images.contains_key(&image.id),
            Origin::Snapshot { region, .. } => *region == self.region,
        }
    }

    fn missing(&self, entry: MappedEntry) -> PlanError {
        PlanError::Unmapped {
            entry,
            region: self.region.clone(),
        }
    }
}

/// Returns the disk size to request, in GiB, which is the unit of all clouds whatever they call it. It is rounded up, so that
/// a server never has less than its flavor promises. `None` for bare metal, whose disks are given.
fn disk(flavor: &Flavor) -> Result<Option<NonZeroU32>, PlanError> {
    if flavor.baremetal {
        return Ok(None);
    }
    let size = u32::try_from(flavor.disk.at_least(Unit::GiB));
    match size {
        Ok(size) => Ok(NonZeroU32::new(size)),
        Err(_) => Err(PlanError::DiskTooLarge {
            flavor: flavor.id.clone(),
            disk: flavor.disk,
        }),
    }
}

#[cfg(test)]
mod tests;
