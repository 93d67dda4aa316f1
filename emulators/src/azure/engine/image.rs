//! Managed images: created from a generalized virtual machine, or from a disk.

use super::{
    Engine,
    task::Work,
    vm::{ImageUsed, Provisioning, Vm, check_not_deleting},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{ImageBody, ImageDisk, Tags},
            id::{Id, Kind},
        },
    },
    cloud::index::Seq,
};

/// A managed image.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The resource id.
    pub(crate) id: Id,
    /// The location.
    pub(crate) location: String,
    /// The tags.
    pub(crate) tags: Tags,
    /// The virtual machine that it was created from.
    pub(crate) source: Option<Id>,
    /// The OS disk that it was created from.
    pub(crate) disk: Option<Id>,
    /// `Linux` or `Windows`.
    pub(crate) os_type: String,
    /// `Generalized` or `Specialized`.
    pub(crate) os_state: String,
    /// The size of its OS disk in GiB.
    pub(crate) gib: u32,
    /// The SKU of its OS disk.
    pub(crate) sku: String,
    /// `x64` or `Arm64`, from the source.
    pub(crate) architecture: String,
    /// The generation that the document requested.
    pub(crate) generation: Option<String>,
    /// The provisioning state.
    pub(crate) provisioning: Provisioning,
}

impl Image {
    /// Returns what a virtual machine that is created from this image remembers of it.
    pub(super) fn to_image_used(&self) -> ImageUsed {
        ImageUsed {
            os_type: self.os_type.clone(),
            gib: self.gib,
            architecture: self.architecture.clone(),
            exact_version: None,
            specialized: self.os_state == "Specialized",
        }
    }
}

impl Engine {
    /// Creates an image, or changes the tags of an existing one. Returns the operation, and whether
    /// the image is new. A creation takes [`image`](crate::azure::Timing).
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` unless there is exactly one source, 400 `NotSupported` for data disks
    /// and zone resilience, 409 `OperationNotAllowed` for a virtual machine that is not
    /// generalized, 409 `Conflict` while the image is being deleted.
    pub(crate) fn put_image(&mut self, id: &Id, body: &ImageBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let location = self.location(body.location.as_deref())?;
        self.check_tags(body.tags.as_ref())?;
        let tags = body.tags.clone().unwrap_or_default();
        if let Some((seq, image)) = self.images.find(id) {
            check_not_deleting(image.provisioning, id)?;
            self.edit_image(seq, |image| image.tags = tags);
            return Ok((
                self.begin_update(id, &location, Work::Put(Kind::Image, seq)),
                false,
            ));
        }
        let properties = body.properties.clone().unwrap_or_default();
        let storage = properties.storage_profile.unwrap_or_default();
        if !storage.data_disks.is_empty() || storage.zone_resilient == Some(true) {
            return Err(Refusal::unsupported("storageProfile"));
        }
        let disk = storage.os_disk;
        let mut image = match (&properties.source_virtual_machine, disk) {
            (Some(vm), None) => self.image_from_vm(id, &vm.id)?,
            (None, Some(disk)) => self.image_from_disk(id, &disk)?,
            (Some(_), Some(_)) | (None, None) => {
                let message =
                    "An image is made of either a source virtual machine or a storage profile.";
                return Err(Refusal::invalid("image", message));
            }
        };
        image.tags = tags;
        image.generation = properties.hyper_v_generation;
        image.location.clone_from(&location);
        let (seq, now) = (self.next_seq(), self.now());
        self.images.insert(seq, id, now, image);
        let duration = self.core.knobs.timing.image;
        let task = self.begin(id, &location, Work::Put(Kind::Image, seq), duration, None);
        Ok((task, true))
    }

    /// Plans an image of a generalized virtual machine. Only its OS disk is copied.
    fn image_from_vm(&self, id: &Id, path: &str) -> Result<Image, Refusal> {
        let vm = Id::read(Kind::VirtualMachine, path)?;
        let found = self.vms.find(&vm);
        let (_, vm) = found.ok_or_else(|| vm.not_found())?;
        if !vm.generalized {
            let message = format!(
                "The source virtual machine '{}' of the image is not generalized. An image can be captured only of \
                 a virtual machine that is.",
                vm.id.name
            );
            return Err(Refusal::not_allowed(message));
        }
        let disk = vm.os_disk().map(|disk| disk.id.clone());
        let os_disk = disk.as_ref().and_then(|disk| self.disks.find(disk));
        Ok(Image {
            id: id.clone(),
            location: String::new(),
            tags: Tags::new(),
            source: Some(vm.id.clone()),
            os_type: vm.image.os_type.clone(),
            os_state: "Generalized".to_owned(),
            gib: os_disk.map_or(vm.image.gib, |(_, disk)| disk.gib),
            sku: os_disk.map_or_else(|| "Standard_LRS".to_owned(), |(_, disk)| disk.sku.clone()),
            architecture: vm.image.architecture.clone(),
            disk,
            generation: None,
            provisioning: Provisioning::Creating,
        })
    }

    /// Plans an image of a disk, attached or not.
    fn image_from_disk(&self, id: &Id, requested: &ImageDisk) -> Result<Image, Refusal> {
        let path = requested.managed_disk.as_ref().map(|disk| disk.id.as_str());
        let path = path.ok_or_else(|| Refusal::missing("osDisk.managedDisk"))?;
        let found = Id::read(Kind::Disk, path)?;
        let found = self.disks.find(&found);
        let (_, disk) = found.ok_or_else(|| Refusal::invalid_reference(path))?;
        let state = requested.os_state.as_deref();
        if !matches!(state, Some("Generalized" | "Specialized")) {
            return Err(Refusal::missing("osDisk.osState"));
        }
        let vm = disk.attached.as_ref().and_then(|vm| self.vms.find(vm));
        if vm.is_some_and(|(_, vm)| vm.is_ephemeral()) {
            let message = "An image of an ephemeral OS disk is not supported.";
            return Err(Refusal::not_allowed(message));
        }
        let architecture = vm.map_or("x64", |(_, vm): (Seq, &Vm)| &vm.image.architecture);
        Ok(Image {
            id: id.clone(),
            location: String::new(),
            tags: Tags::new(),
            source: None,
            disk: Some(disk.id.clone()),
            os_type: requested
                .os_type
                .clone()
                .unwrap_or_else(|| "Linux".to_owned()),
            os_state: state.unwrap_or_default().to_owned(),
            gib: requested.disk_size_gb.unwrap_or(disk.gib).max(disk.gib),
            sku: requested
                .storage_account_type
                .clone()
                .unwrap_or_else(|| disk.sku.clone()),
            architecture: architecture.to_owned(),
            generation: None,
            provisioning: Provisioning::Creating,
        })
    }

    /// Begins to delete an image; `None` if it does not exist. Machines that were created from it
    /// stay.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound`.
    pub(crate) fn delete_image(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let Some((seq, image)) = self.images.find(id) else {
            return Ok(None);
        };
        let location = image.location.clone();
        self.edit_image(seq, |image| image.provisioning = Provisioning::Deleting);
        Ok(Some(self.begin_update(
            id,
            &location,
            Work::Remove(Kind::Image, seq),
        )))
    }

    /// Changes an image, and keeps the old version for stale reads.
    pub(super) fn edit_image(&mut self, seq: Seq, change: impl FnOnce(&mut Image)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.images.edit(seq, now, window, change);
    }
}
