//! Changes of a virtual machine: which properties can change, and which only while it is
//! deallocated.

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
    /// Puts a virtual machine that is there: the same again changes nothing, while it is being made
    /// it is answered with the operation that makes it, and where that failed it is tried again.
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

    /// Changes a virtual machine to match a document, and returns the operation.
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

    /// The other size that a virtual machine is to have, if it is another and can be had. It must
    /// be put away for it.
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
        // What it is does not count against what it is to be.
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

    /// Gives a virtual machine another size.
    fn resize(&mut self, seq: Seq, size: &SizeSpec) {
        let Some(vm) = self.vms.get(seq) else { return };
        let (location, before) = (vm.location.clone(), vm.kind());
        self.edit_vm(seq, |vm| vm.size.clone_from(&size.name));
        let after = self.vms.get(seq).map(Vm::kind);
        self.recount(&location, Some(&before), after);
    }

    /// Counts a virtual machine as another for quota.
    fn recount(&mut self, location: &str, before: Option<&Kind>, after: Option<Kind>) {
        let existing = self.existing.entry(location.to_owned()).or_default();
        if let Some(before) = before {
            existing.release(before);
        }
        if let Some(after) = after {
            existing.reserve(after);
        }
    }

    /// Attaches and detaches further disks, so that those of a document are there.
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
                .map(|name| vm.id.beside(id::Kind::Disk, name));
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

/// What is to become of the system's disk and of interfaces that are named, if a document says it.
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
