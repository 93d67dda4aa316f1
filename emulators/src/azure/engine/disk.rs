//! Managed disks: created with a virtual machine or alone, attached, detached, deleted.

use std::time::Duration;

use super::{
    Engine,
    copies::CopySource,
    disk_plan::DiskPlan,
    task::Work,
    vm::{Attached, Provisioning, check_not_deleting},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{CreationData, DiskBody, Tags},
            id::{Id, Kind},
        },
    },
    cloud::index::Seq,
};

/// A managed disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// The resource id.
    pub(crate) id: Id,
    /// The location.
    pub(crate) location: String,
    /// The availability zone, which is that of its virtual machine.
    pub(crate) zone: Option<String>,
    /// The tags. Disks that are created with a virtual machine have none.
    pub(crate) tags: Tags,
    /// The GUID, `uniqueId` in documents.
    pub(crate) guid: String,
    /// The SKU, for example `Standard_LRS`.
    pub(crate) sku: String,
    /// The size in GiB.
    pub(crate) gib: u32,
    /// The operating system, of an OS disk.
    pub(crate) os_type: Option<String>,
    /// The virtual machine that it is attached to.
    pub(crate) attached: Option<Id>,
    /// Whether it is being detached. Until that is done, it cannot be attached elsewhere.
    pub(crate) detaching: bool,
    /// When it was created.
    pub(crate) created: Duration,
    /// The provisioning state.
    pub(crate) provisioning: Provisioning,
}

impl Engine {
    /// Creates or attaches the planned disks of a virtual machine.
    pub(super) fn attach_disks(
        &mut self,
        vm: &Id,
        plans: &[DiskPlan],
        location: &str,
        zone: Option<&str>,
    ) -> Vec<Attached> {
        let mut attached_disks = Vec::new();
        for plan in plans {
            let seq = match plan.existing {
                Some(seq) => seq,
                None => self.create_disk(plan, location, zone, Tags::new()),
            };
            self.edit_disk(seq, |disk| disk.attached = Some(vm.clone()));
            attached_disks.push(Attached {
                id: plan.id.clone(),
                delete: plan.delete,
                lun: plan.lun,
            });
        }
        attached_disks
    }

    /// Creates the record of a disk that is not attached.
    pub(super) fn create_disk(
        &mut self,
        plan: &DiskPlan,
        location: &str,
        zone: Option<&str>,
        tags: Tags,
    ) -> Seq {
        let (seq, now) = (self.next_seq(), self.now());
        let disk = Disk {
            id: plan.id.clone(),
            location: location.to_owned(),
            zone: zone.map(str::to_owned),
            tags,
            guid: self.names.request(),
            sku: plan.sku.clone(),
            gib: plan.gib,
            os_type: plan.os_type.clone(),
            attached: None,
            detaching: false,
            created: now,
            provisioning: Provisioning::Succeeded,
        };
        self.disks.insert(seq, &plan.id, now, disk);
        seq
    }

    /// Creates a disk, empty or as a copy, or changes tags, size and SKU of an existing one. Returns the operation,
    /// and whether the disk is new.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for a smaller size or another create option than `Empty` and `Copy`,
    /// 400 `NotSupported` for an OS type of an empty disk, 409 `Conflict` while it is being deleted.
    pub(crate) fn put_disk(&mut self, id: &Id, body: &DiskBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let location = self.location(body.location.as_deref())?;
        self.check_tags(body.tags.as_ref())?;
        let tags = body.tags.clone().unwrap_or_default();
        let properties = body.properties.clone().unwrap_or_default();
        if let Some((seq, disk)) = self.disks.find(id) {
            check_not_deleting(disk.provisioning, id)?;
            let gib = properties.disk_size_gb.unwrap_or(disk.gib);
            if gib < disk.gib {
                let message = "Disks cannot be made smaller.";
                return Err(Refusal::invalid("diskSizeGB", message));
            }
            self.edit_disk(seq, |disk| {
                disk.tags = tags;
                disk.gib = gib;
                if let Some(sku) = body.sku.as_ref().and_then(|sku| sku.name.clone()) {
                    disk.sku = sku;
                }
                disk.provisioning = Provisioning::Updating;
            });
            return Ok((
                self.begin_update(id, &location, Work::Put(Kind::Disk, seq)),
                false,
            ));
        }
        let data = properties.creation_data.unwrap_or_default();
        let source = self.disk_source(&data)?;
        if properties.os_type.is_some() && source.is_none() {
            return Err(Refusal::unsupported("osType"));
        }
        let zone = body.zones.as_ref().and_then(|zones| zones.first().cloned());
        let gib = properties
            .disk_size_gb
            .or(source.as_ref().map(|source| source.gib));
        if gib < source.as_ref().map(|source| source.gib) {
            let message = "A copy cannot be smaller than its source.";
            return Err(Refusal::invalid("diskSizeGB", message));
        }
        let mut plan = self.standalone_disk(id, body, gib)?;
        plan.os_type = source.and_then(|source| source.os_type);
        let seq = self.create_disk(&plan, &location, zone.as_deref(), tags);
        Ok((
            self.begin_update(id, &location, Work::Put(Kind::Disk, seq)),
            true,
        ))
    }

    /// Returns what a new disk copies; `None` for an empty one.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for another create option than `Empty` and `Copy`, 404 for a source
    /// that does not exist.
    fn disk_source(&self, data: &CreationData) -> Result<Option<CopySource>, Refusal> {
        match data
            .create_option
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("empty") => Ok(None),
            Some("copy") => {
                let path = data.source_resource_id.as_deref();
                let path = path.ok_or_else(|| Refusal::missing("creationData.sourceResourceId"))?;
                self.copy_source(path).map(Some)
            }
            Some(_) | None => {
                let message = "The value of parameter 'creationData.createOption' is not allowed.";
                Err(Refusal::invalid("creationData.createOption", message))
            }
        }
    }

    /// Begins to delete a disk; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound`; 409 `OperationNotAllowed` while it is attached.
    pub(crate) fn delete_disk(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let Some((seq, disk)) = self.disks.find(id) else {
            return Ok(None);
        };
        if let Some(vm) = &disk.attached {
            let message = format!("Disk {} is attached to VM {}.", disk.id.name, vm.path());
            return Err(Refusal::not_allowed(message));
        }
        let location = disk.location.clone();
        self.edit_disk(seq, |disk| disk.provisioning = Provisioning::Deleting);
        Ok(Some(self.begin_update(
            id,
            &location,
            Work::Remove(Kind::Disk, seq),
        )))
    }

    /// Removes a disk at the end of its deletion.
    pub(super) fn remove_disk(&mut self, seq: Seq) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.disks.remove(seq, now, window);
    }

    /// Changes a disk, and keeps the old version for stale reads.
    pub(super) fn edit_disk(&mut self, seq: Seq, change: impl FnOnce(&mut Disk)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.disks.edit(seq, now, window, change);
    }

    /// Returns `diskState`: `Unattached`, `Attached`, or `Reserved` if its virtual machine is
    /// deallocated.
    pub(crate) fn disk_state(&self, disk: &Disk) -> &'static str {
        let vm = disk.attached.as_ref().and_then(|vm| self.vms.find(vm));
        match vm {
            None => "Unattached",
            Some((_, vm)) if vm.allocated => "Attached",
            Some(_) => "Reserved",
        }
    }
}
