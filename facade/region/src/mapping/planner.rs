//! The planner of one region: the catalog in force, seen through the region's mapping.

use std::{
    num::NonZeroU32,
    sync::{Arc, PoisonError, RwLock},
};

use fleetwright::{ImageId, InstanceConfig, Placement};
use fleetwright_identity::{Principal, Refused};

use super::{LaunchPlanner, LaunchSpec, NetworkMapping, PlanError, RegionMapping};
use crate::{
    catalog::{Catalog, CatalogService, EntryId, Flavor, Image, Origin, Unit, check_compatible},
    file::Problems,
    ids::NetworkId,
};

/// Plans the launches of one region. What is retired is planned as before, for as long as it is mapped.
#[derive(Debug)]
pub struct RegionPlanner {
    catalog: Arc<CatalogService>,
    mapping: RwLock<Arc<RegionMapping>>,
}

impl RegionPlanner {
    /// Begins with a mapping, or tells everything that is wrong with it.
    pub fn new(catalog: Arc<CatalogService>, text: &str) -> Result<Self, Problems> {
        let mapping = RegionMapping::parse(text, &catalog.current())?;
        Ok(Self {
            catalog,
            mapping: RwLock::new(Arc::new(mapping)),
        })
    }

    /// Puts another mapping of the same region into force. On an error the one before stays.
    pub fn load(&self, text: &str) -> Result<(), Problems> {
        let next = RegionMapping::parse(text, &self.catalog.current())?;
        let region = &self.mapping().region;
        if next.region != *region {
            return Err(Problems::only(&format!(
                "it is the mapping of region {}: want that of region {region}",
                next.region
            )));
        }
        let mut mapping = self.mapping.write().unwrap_or_else(PoisonError::into_inner);
        *mapping = Arc::new(next);
        Ok(())
    }

    /// The flavors on offer in this region.
    pub fn flavors(&self, principal: &Principal) -> Result<Vec<Flavor>, Refused> {
        let mapping = self.mapping();
        let mut flavors = self.catalog.flavors(principal)?;
        flavors.retain(|flavor| mapping.flavors.contains_key(&flavor.id));
        Ok(flavors)
    }

    /// The images on offer in this region, of those that the principal may see.
    pub fn images(&self, principal: &Principal) -> Result<Vec<Image>, Refused> {
        let mapping = self.mapping();
        let mut images = self.catalog.images(principal)?;
        images.retain(|image| mapping.has_image(image));
        Ok(images)
    }

    /// What the catalog offers and this region does not have.
    pub fn unmapped(&self) -> Vec<EntryId> {
        self.mapping().unmapped(&self.catalog.current())
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Arc<RegionMapping> {
        let mapping = self.mapping.read();
        Arc::clone(&mapping.unwrap_or_else(PoisonError::into_inner))
    }
}

impl LaunchPlanner for RegionPlanner {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, PlanError> {
        self.mapping().plan(&self.catalog.current(), spec)
    }
}

impl RegionMapping {
    /// What is launched for a spec under a catalog. Pure.
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
            .ok_or_else(|| self.missing(format!("flavor {}", spec.flavor), "flavors"))?;
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

    /// What the provider calls an image, if the region has it.
    fn native_image<'m>(&'m self, image: &'m Image) -> Result<&'m ImageId, PlanError> {
        match &image.origin {
            Origin::File => self
                .images
                .get(&image.id)
                .ok_or_else(|| self.missing(format!("image {}", image.id), "images")),
            Origin::Snapshot { region, native } if *region == self.region => {
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
            let native = self.security_groups.get(group).ok_or_else(|| {
                self.missing(format!("security group {group}"), "security-groups")
            })?;
            placement.security_groups.insert(native.clone());
        }
        placement.public_address = Some(spec.public_ip);
        Ok(placement)
    }

    fn network(&self, id: &NetworkId) -> Result<&NetworkMapping, PlanError> {
        let found = self.networks.get(id).or(self.default_network.as_ref());
        found.ok_or_else(|| self.missing(format!("network {id}"), &format!("networks.{id}")))
    }

    /// Whether the region has an image.
    fn has_image(&self, image: &Image) -> bool {
        match &image.origin {
            Origin::File => self.images.contains_key(&image.id),
            Origin::Snapshot { region, .. } => *region == self.region,
        }
    }

    fn missing(&self, what: String, place: &str) -> PlanError {
        PlanError::Unmapped {
            what,
            region: self.region.clone(),
            place: place.to_owned(),
        }
    }
}

/// How large a disk is asked for. Clouds count disks in GiB, whatever they call the unit: rounded up, so that a server
/// never has less than its flavor says. A machine of its own has the disks that it has.
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
