//! Managed disks: created with a virtual machine or alone, attached, left behind, deleted.

use std::time::Duration;

use super::{
    Engine,
    disk_plan::DiskPlan,
    task::Work,
    vm::{Attached, Provisioning, check_not_deleting},
};
use crate::{
    azure::{
        catalog::same,
        error::Refusal,
        wire::{
            body::{DiskBody, Tags},
            id::{Id, Kind},
        },
    },
    cloud::index::Seq,
};

/// A managed disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) id: Id,
    pub(crate) location: String,
    pub(crate) zone: Option<String>,
    pub(crate) tags: Tags,
    pub(crate) guid: String,
    pub(crate) sku: String,
    pub(crate) gib: u32,
    /// Of a system's disk.
    pub(crate) os_type: Option<String>,
    pub(crate) attached: Option<Id>,
    /// It is on its way from its virtual machine.
    pub(crate) detaching: bool,
    pub(crate) created: Duration,
    pub(crate) provisioning: Provisioning,
}

impl Engine {
    /// Creates or attaches the disks of a virtual machine.
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

    /// Creates or changes a separate disk, and returns the operation.
    pub(crate) fn put_disk(&mut self, id: &Id, body: &DiskBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.group)?;
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
                disk.provisioning = Provisioning::Updating;
            });
            return Ok((
                self.begin_update(id, &location, Work::Put(Kind::Disk, seq)),
                false,
            ));
        }
        if properties.os_type.is_some() {
            return Err(Refusal::unsupported("osType"));
        }
        let option = properties.creation_data.and_then(|data| data.create_option);
        if !option.is_some_and(|option| same(&option, "Empty")) {
            let message = "The value of parameter 'creationData.createOption' is not allowed.";
            return Err(Refusal::invalid("creationData.createOption", message));
        }
        let zone = body.zones.as_ref().and_then(|zones| zones.first().cloned());
        let plan = self.standalone_disk(id, body, properties.disk_size_gb)?;
        let seq = self.create_disk(&plan, &location, zone.as_deref(), tags);
        Ok((
            self.begin_update(id, &location, Work::Put(Kind::Disk, seq)),
            true,
        ))
    }

    /// Begins to delete a disk; `None` if it does not exist.
    pub(crate) fn delete_disk(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.group)?;
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

    pub(super) fn remove_disk(&mut self, seq: Seq) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.disks.remove(seq, now, window);
    }

    pub(super) fn edit_disk(&mut self, seq: Seq, change: impl FnOnce(&mut Disk)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.disks.edit(seq, now, window, change);
    }

    /// What Azure calls the state of a disk.
    pub(crate) fn disk_state(&self, disk: &Disk) -> &'static str {
        let vm = disk.attached.as_ref().and_then(|vm| self.vms.find(vm));
        match vm {
            None => "Unattached",
            Some((_, vm)) if vm.allocated => "Attached",
            Some(_) => "Reserved",
        }
    }
}
