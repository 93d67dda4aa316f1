//! The plan of a virtual machine: everything it needs, looked up and checked before anything is
//! created.
//!
//! Planning changes nothing, so a refused creation has no effect.

use std::sync::Arc;

use ipnet::Ipv4Net;
use serde_json::Value;

use super::{
    Engine, body_checks,
    disk_plan::{DiskPlan, check_distinct},
    vm::ImageUsed,
};
use crate::{
    azure::{
        catalog::{MarketplaceImage, SizeSpec, normalize_location, same},
        error::Refusal,
        knobs::Market,
        wire::{
            body::DeleteOption,
            id::{Id, Kind},
            vm_body::{Eviction, ImageReference, NicConfiguration, VmBody},
        },
    },
    cloud::index::Seq,
};

/// A document with all its names resolved.
#[derive(Debug)]
pub(super) struct Plan {
    /// The normalized location.
    pub(super) location: String,
    /// The availability zone.
    pub(super) zone: Option<String>,
    /// The size.
    pub(super) size: SizeSpec,
    /// Regular or spot.
    pub(super) market: Market,
    /// What an eviction does.
    pub(super) eviction: Eviction,
    /// The image.
    pub(super) image: ImageUsed,
    /// The decoded custom data.
    pub(super) custom_data: Option<Arc<[u8]>>,
    /// The disks, the OS disk first.
    pub(super) disks: Vec<DiskPlan>,
    /// The interfaces, the primary one first.
    pub(super) nics: Vec<NicPlan>,
}

/// An interface of a planned virtual machine.
#[derive(Clone, Debug)]
pub(super) enum NicPlan {
    /// An existing interface, and what happens to it when the machine is deleted.
    Existing(Seq, DeleteOption),
    /// An interface to create.
    Create(Box<NicConfiguration>),
}

impl Engine {
    /// Resolves and checks the document of a new virtual machine.
    ///
    /// # Errors
    ///
    /// Returns the first problem: name, location, zone, size, image, architecture, administrator,
    /// disks, custom data, priority, interfaces, in this order.
    pub(super) fn plan(&mut self, id: &Id, body: &VmBody) -> Result<Plan, Refusal> {
        body_checks::check_name(&id.name)?;
        body_checks::check_stored(body)?;
        let location = self.location(body.location.as_deref())?;
        let zone = body_checks::zone(body)?;
        self.check_zone(&location, zone.as_deref())?;
        let properties = &body.properties;
        let size = properties
            .hardware_profile
            .as_ref()
            .and_then(|profile| profile.vm_size.as_deref());
        let size = self
            .size(size.ok_or_else(|| Refusal::missing("hardwareProfile.vmSize"))?)?
            .clone();
        self.check_offer(&size, &location, zone.as_deref())?;
        let storage = properties.storage_profile.as_ref();
        let storage = storage.ok_or_else(|| Refusal::missing("storageProfile"))?;
        let reference = storage.image_reference.as_ref();
        let reference =
            reference.ok_or_else(|| Refusal::missing("storageProfile.imageReference"))?;
        let image = self.image_used(reference)?;
        if image.architecture != size.architecture {
            let message = format!(
                "Cannot create a VM of size '{}' because this VM size only supports a CPU Architecture of '{}', but \
                 an image or disk with CPU Architecture '{}' was given.",
                size.name, size.architecture, image.architecture
            );
            return Err(Refusal::client("BadRequest", message));
        }
        if !image.specialized {
            body_checks::check_user(properties.os_profile.as_ref(), &id.name, &image.os_type)?;
        }
        let mut disks = vec![self.os_disk(id, storage.os_disk.as_ref(), &image, &size)?];
        for disk in storage.data_disks.iter().flatten() {
            disks.push(self.data_disk(id, disk)?);
        }
        check_distinct(disks.iter().map(|disk| (&disk.id, disk.lun)))?;
        body_checks::check_accelerated(body, &size)?;
        Ok(Plan {
            custom_data: body_checks::custom_data(properties.os_profile.as_ref())?,
            market: body_checks::market(body)?,
            eviction: properties.eviction_policy.unwrap_or_default(),
            nics: self.nic_plans(id, body, &location)?,
            location,
            zone,
            size,
            image,
            disks,
        })
    }

    /// Returns the normalized name of a location.
    ///
    /// # Errors
    ///
    /// 400 `LocationRequired` without a name; 400 `LocationNotAvailableForResourceType` for an
    /// unknown one.
    pub(crate) fn location(&self, name: Option<&str>) -> Result<String, Refusal> {
        let Some(name) = name else {
            let message = "The location property is required for this definition.";
            return Err(Refusal::client("LocationRequired", message));
        };
        let plain = normalize_location(name);
        if self
            .core
            .knobs
            .locations
            .iter()
            .any(|known| known.name == plain)
        {
            return Ok(plain);
        }
        let message =
            format!("The provided location '{name}' is not available for the resource type.");
        Err(Refusal::client(
            "LocationNotAvailableForResourceType",
            message,
        ))
    }

    /// Refuses a zone that the location does not have, with 400 `InvalidAvailabilityZone`.
    fn check_zone(&self, location: &str, zone: Option<&str>) -> Result<(), Refusal> {
        let Some(zone) = zone else { return Ok(()) };
        let known = self
            .core
            .knobs
            .locations
            .iter()
            .find(|it| it.name == location);
        if known.is_some_and(|known| known.zones.iter().any(|other| other == zone)) {
            return Ok(());
        }
        let message = format!(
            "The zone(s) '{zone}' for resource are not supported in the region '{location}'."
        );
        Err(Refusal::client("InvalidAvailabilityZone", message))
    }

    /// Returns a size of the catalog by its name, in any case.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` with the target `vmSize`.
    pub(super) fn size(&self, name: &str) -> Result<&SizeSpec, Refusal> {
        let known = self
            .core
            .knobs
            .sizes
            .iter()
            .find(|spec| same(&spec.name, name));
        known.ok_or_else(|| {
            let message = format!(
                "The value {name} provided for the VM size is not valid in the current region."
            );
            Refusal::invalid("vmSize", message)
        })
    }

    /// Refuses a size that the subscription may not use or the zone does not offer, with 409
    /// `SkuNotAvailable`.
    pub(super) fn check_offer(
        &self,
        size: &SizeSpec,
        location: &str,
        zone: Option<&str>,
    ) -> Result<(), Refusal> {
        if !size.restricted && size.is_in(zone) {
            return Ok(());
        }
        let place = zone.map_or_else(
            || location.to_owned(),
            |zone| format!("{location}' zone '{zone}"),
        );
        Err(Refusal::sku_not_available(&size.name, &place))
    }

    /// Finds the image: a managed image by its id, or a marketplace image by its four names.
    /// Without a version, or with `latest`, the first match counts.
    ///
    /// # Errors
    ///
    /// 404 `NotFound` for a managed image, 404 `PlatformImageNotFound` for a marketplace image, 400
    /// `LinkedInvalidPropertyId` for an id that is not an image's.
    fn image_used(&self, reference: &ImageReference) -> Result<ImageUsed, Refusal> {
        if let Some(id) = &reference.id {
            let id = Id::read(Kind::Image, id)?;
            let found = self.images.find(&id);
            let (_, image) = found.ok_or_else(|| {
                let message = format!("The image '{}' was not found.", id.path());
                Refusal::new(404, "NotFound", message)
            })?;
            return Ok(image.to_image_used());
        }
        let matches = |image: &&MarketplaceImage| {
            let same = |known: &str, requested: &Option<String>| {
                requested
                    .as_deref()
                    .is_some_and(|requested| same(known, requested))
            };
            let version = reference.version.as_deref();
            same(&image.publisher, &reference.publisher)
                && same(&image.offer, &reference.offer)
                && same(&image.sku, &reference.sku)
                && version.is_none_or(|it| it == "latest" || it == image.version)
        };
        let known = self.core.knobs.images.iter().find(matches).ok_or_else(|| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            let message = format!(
                "The platform image '{}:{}:{}:{}' is not available. Verify that all fields in the storage profile \
                 are correct.",
                part(&reference.publisher),
                part(&reference.offer),
                part(&reference.sku),
                part(&reference.version)
            );
            Refusal::new(404, "PlatformImageNotFound", message)
        })?;
        Ok(ImageUsed {
            os_type: known.os_type.clone(),
            gib: known.gib,
            architecture: known.architecture.clone(),
            exact_version: Some(known.version.clone()),
            specialized: false,
        })
    }

    /// Returns the address range of a subnet by its resource id, and the location of its virtual
    /// network.
    ///
    /// # Errors
    ///
    /// 400 `InvalidResourceReference`.
    pub(crate) fn subnet(&self, id: &str) -> Result<(Ipv4Net, String), Refusal> {
        let parts: Vec<&str> = id.trim_start_matches('/').split('/').collect();
        let [_, subscription, _, group, _, _, _, network, _, name] = parts.as_slice() else {
            return Err(Refusal::invalid_reference(id));
        };
        let path = Id::new(Kind::VirtualNetwork, subscription, group, network);
        if self.is_catalog(&path) {
            let known = self.core.knobs.virtual_networks.iter();
            let mut known = known
                .filter(|known| same(&known.resource_group, group) && same(&known.name, network));
            let found = known.find_map(|known| {
                let subnet = known.subnets.iter().find(|it| same(&it.name, name))?;
                Some((subnet.cidr, known.location.clone()))
            });
            return found.ok_or_else(|| Refusal::invalid_reference(id));
        }
        let found = self.document(&path).and_then(|document| {
            let mut subnets = document.value["properties"]["subnets"].as_array()?.iter();
            let is_it = |subnet: &&Value| subnet["name"].as_str().is_some_and(|it| same(it, name));
            let subnet = subnets.find(is_it)?;
            let range = subnet["properties"]["addressPrefix"]
                .as_str()?
                .parse()
                .ok()?;
            Some((range, document.value["location"].as_str()?.to_owned()))
        });
        found.ok_or_else(|| Refusal::invalid_reference(id))
    }
}
