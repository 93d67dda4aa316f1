//! Changes of a virtual machine: which properties can change, and which only while it is
//! deallocated.
//!
//! | property | when it can change |
//! | --- | --- |
//! | tags, identity, user data, boot diagnostics, delete options | always |
//! | data disks | always; a detached disk is free when the operation ends |
//! | size | only while deallocated, within quota |
//! | everything in `immutable` | never |

use std::sync::Arc;

use super::{
    Engine, body_checks,
    disk_plan::check_distinct,
    limits::RequestedVm,
    task::Work,
    vm::{Power, Provisioning, Vm},
};
use crate::{
    azure::{
        catalog::{SizeSpec, same},
        error::Refusal,
        wire::{
            body::DeleteOption,
            id::{self, Id},
            vm_body::{NicReference, VmBody, VmDisk},
        },
    },
    cloud::{capacity::Kind, index::Seq},
};

impl Engine {
    /// Applies a `PUT` to an existing virtual machine, and returns the operation.
    ///
    /// - While it is being created: returns the operation of the creation, so a repeated `PUT` is
    ///   safe.
    /// - After a failed creation: retries it.
    /// - Otherwise: updates it, and an omitted list of tags removes all tags.
    ///
    /// # Errors
    ///
    /// 409 `PropertyChangeNotAllowed` for an immutable property, or for another size while the
    /// virtual machine is not deallocated; otherwise those of [`Self::update_vm`].
    pub(crate) fn replace_vm(&mut self, seq: Seq, body: &VmBody) -> Result<u64, Refusal> {
        let Some(vm) = self.vms.get(seq) else {
            return Err(Refusal::internal());
        };
        self.check_immutable(vm, body)?;
        let size = body.properties.hardware_profile.as_ref();
        let size = size.and_then(|profile| profile.vm_size.clone());
        let resized = size.as_ref().is_some_and(|size| !same(size, &vm.size));
        if resized && vm.power != Some(Power::Deallocated) {
            return Err(Refusal::immutable("hardwareProfile.vmSize"));
        }
        if let (Provisioning::Creating, Some(task)) = (vm.provisioning, vm.task) {
            return Ok(task);
        }
        if vm.creation_failed() && vm.task.is_none() {
            let (vm, tags) = (vm.clone(), body.tags.clone().unwrap_or_default());
            self.check_tags(Some(&tags))?;
            return Ok(self.retry_creation(seq, &vm, tags));
        }
        let mut patch = body.clone();
        patch.tags = Some(body.tags.clone().unwrap_or_default());
        self.update_vm(seq, &patch)
    }

    /// Changes a virtual machine, and returns the operation. Omitted properties stay as they are.
    ///
    /// # Errors
    ///
    /// 409 `Conflict` while another operation is in progress, 409 `PropertyChangeNotAllowed` for an
    /// immutable property, and the refusals for tags, size and disks. A refused call changes
    /// nothing.
    pub(crate) fn update_vm(&mut self, seq: Seq, body: &VmBody) -> Result<u64, Refusal> {
        let Some(vm) = self.vms.get(seq) else {
            return Err(Refusal::internal());
        };
        let id = vm.id.clone();
        if vm.task.is_some() {
            let message = format!(
                "The request failed due to conflict with a concurrent request on '{}'.",
                id.path()
            );
            return Err(Refusal::conflict(message));
        }
        self.check_immutable(vm, body)?;
        self.check_tags(body.tags.as_ref())?;
        body_checks::check_stored(body)?;
        let properties = &body.properties;
        let size = properties.hardware_profile.as_ref();
        let size = match size.and_then(|profile| profile.vm_size.as_deref()) {
            None => None,
            Some(size) => self.check_resize(seq, size)?,
        };
        let disks = properties
            .storage_profile
            .as_ref()
            .and_then(|it| it.data_disks.clone());
        if let Some(disks) = disks {
            self.change_disks(seq, &disks)?;
        }
        if let Some(size) = size {
            self.resize(seq, &size);
        }
        let diagnostics = properties
            .diagnostics_profile
            .as_ref()
            .and_then(|it| it.boot_diagnostics.as_ref()?.enabled);
        let (disk, nics) = delete_options(body);
        self.edit_vm(seq, |vm| {
            for attached in &mut vm.disks {
                if attached.lun.is_none() {
                    attached.delete = disk.unwrap_or(attached.delete);
                }
            }
            for attached in &mut vm.nics {
                let named = nics.iter().find(|(id, _)| *id == attached.id.key());
                attached.delete = named.map_or(attached.delete, |(_, delete)| *delete);
            }
            if let Some(tags) = &body.tags {
                vm.tags = Arc::new(tags.clone());
            }
            vm.diagnostics = diagnostics.unwrap_or(vm.diagnostics);
            vm.user_data = properties.user_data.clone().or(vm.user_data.take());
            if body.identity.is_some() {
                Arc::make_mut(&mut vm.body)
                    .identity
                    .clone_from(&body.identity);
            }
            vm.provisioning = Provisioning::Updating;
        });
        let location = self.vms.get(seq).map(|vm| vm.location.clone());
        Ok(self.begin_update(&id, &location.unwrap_or_default(), Work::UpdateVm(seq)))
    }

    /// Returns the new size of a virtual machine, or `None` if the size is the same.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for an unknown size, 400 `BadRequest` for another architecture, 409
    /// `OperationNotAllowed` while it is not deallocated or for quota, 409 `SkuNotAvailable` where
    /// the size is not offered.
    fn check_resize(&mut self, seq: Seq, size: &str) -> Result<Option<SizeSpec>, Refusal> {
        let Some(vm) = self.vms.get(seq).filter(|vm| !same(&vm.size, size)) else {
            return Ok(None);
        };
        let size = self.size(size)?.clone();
        if size.architecture != vm.image.architecture {
            let message = format!(
                "The VM size '{}' does not fit the disk of the VM.",
                size.name
            );
            return Err(Refusal::client("BadRequest", message));
        }
        if vm.power != Some(Power::Deallocated) {
            let message = format!(
                "Unable to resize the VM '{}' because the requested size {} is not available in the current hardware \
                 cluster. Deallocate the VM to resize it.",
                vm.id.name, size.name
            );
            return Err(Refusal::not_allowed(message));
        }
        self.check_offer(&size, &vm.location, vm.zone.as_deref())?;
        let vm = vm.clone();
        // The current size must not count against the quota of the new one.
        self.recount(&vm.location, Some(&vm.kind()), None);
        let allowed = self.quota(RequestedVm {
            size: &size,
            location: &vm.location,
            zone: vm.zone.as_deref(),
            market: vm.market,
        });
        self.recount(&vm.location, None, Some(vm.kind()));
        allowed.map(|()| Some(size))
    }

    /// Sets the size of a virtual machine, and counts it under the new size.
    fn resize(&mut self, seq: Seq, size: &SizeSpec) {
        let Some(vm) = self.vms.get(seq) else { return };
        let (location, before) = (vm.location.clone(), vm.kind());
        self.edit_vm(seq, |vm| vm.size.clone_from(&size.name));
        let after = self.vms.get(seq).map(Vm::kind);
        self.recount(&location, Some(&before), after);
    }

    /// Counts a virtual machine under another size for quota. `None` counts nothing.
    fn recount(&mut self, location: &str, before: Option<&Kind>, after: Option<Kind>) {
        let existing = self.existing.entry(location.to_owned()).or_default();
        if let Some(before) = before {
            existing.release(before);
        }
        if let Some(after) = after {
            existing.reserve(after);
        }
    }

    /// Attaches and detaches data disks, so that the virtual machine has the disks of the document.
    ///
    /// A disk that is no longer listed, or is marked `toBeDetached`, is detached; a listed disk
    /// that is attached already stays; every other one is created or attached.
    fn change_disks(&mut self, seq: Seq, wanted: &[VmDisk]) -> Result<(), Refusal> {
        let Some(vm) = self.vms.get(seq).cloned() else {
            return Ok(());
        };
        let already_attached = |disk: &VmDisk| {
            let path = disk.managed_disk.as_ref().and_then(|it| it.id.as_deref());
            let id = path.and_then(|path| Id::read(id::Kind::Disk, path).ok());
            let named = disk
                .name
                .as_ref()
                .map(|name| vm.id.sibling(id::Kind::Disk, name));
            let id = id.or(named)?;
            let attached = vm.disks.iter().find(|it| it.id.key() == id.key())?;
            (disk.to_be_detached != Some(true)).then(|| attached.clone())
        };
        let (mut kept, mut plans) = (Vec::new(), Vec::new());
        kept.extend(vm.os_disk().cloned());
        for disk in wanted {
            match already_attached(disk) {
                Some(mut attached) => {
                    attached.delete = disk.delete_option.unwrap_or(attached.delete);
                    kept.push(attached);
                }
                None if disk.to_be_detached == Some(true) => {}
                None => plans.push(self.data_disk(&vm.id, disk)?),
            }
        }
        let all = kept.iter().map(|disk| (&disk.id, disk.lun));
        check_distinct(all.chain(plans.iter().map(|disk| (&disk.id, disk.lun))))?;
        let detaching_disks: Vec<Id> = vm
            .disks
            .iter()
            .filter(|disk| !kept.iter().any(|it| it.id.key() == disk.id.key()))
            .map(|disk| disk.id.clone())
            .collect();
        for id in &detaching_disks {
            if let Some(disk) = self.disks.seq(id) {
                self.edit_disk(disk, |disk| disk.detaching = true);
            }
        }
        kept.extend(self.attach_disks(&vm.id, &plans, &vm.location, vm.zone.as_deref()));
        self.edit_vm(seq, |vm| {
            vm.disks = kept;
            vm.detaching_disks = detaching_disks;
        });
        Ok(())
    }
}

/// Returns the delete options that a document sets: of the OS disk, and of interfaces by their
/// keys.
fn delete_options(body: &VmBody) -> (Option<DeleteOption>, Vec<(String, DeleteOption)>) {
    let properties = &body.properties;
    let storage = properties.storage_profile.as_ref();
    let disk = storage.and_then(|storage| storage.os_disk.as_ref()?.delete_option);
    let network = properties.network_profile.as_ref();
    let nics = network.and_then(|network| network.network_interfaces.as_ref());
    let option = |nic: &NicReference| {
        let id = Id::read(id::Kind::Nic, nic.id.as_deref()?).ok()?;
        Some((id.key(), nic.properties.delete_option?))
    };
    (
        disk,
        nics.into_iter().flatten().filter_map(option).collect(),
    )
}
