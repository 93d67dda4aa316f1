//! What happens at the end of an operation.
//!
//! ```text
//! create     ──► Succeeded, running
//!    └ fails ──► Failed; keeps its name, interface and disk; the interface is reserved for it
//! powerOff   ──► stopped, still allocated
//! deallocate ──► deallocated, without its machine and its dynamic public address
//! delete     ──► removed, with every resource whose delete option is Delete
//! ```
//!
//! A failed change of power restores the previous power state; a failed deletion keeps the virtual
//! machine as `Failed`.

use super::{
    Engine,
    task::Work,
    vm::{Power, Provisioning, Vm},
};
use crate::{
    azure::wire::{body::DeleteOption, id::Kind},
    cloud::{fault::Failure, index::Seq},
};

impl Engine {
    /// Ends an operation, unless another one has preempted it.
    pub(super) fn end(&mut self, number: u64) {
        let Some(task) = self.tasks.get(&number).filter(|task| task.ended.is_none()) else {
            return;
        };
        let (work, failure) = (task.work, task.planned_failure.clone());
        self.close(number, failure.clone());
        if let Some(seq) = work.vm() {
            self.detach_disks(seq);
        }
        match work {
            Work::CreateVm(seq) => self.finish_creation(seq, failure),
            Work::UpdateVm(seq) => {
                // An update does not repair a failed creation: the failure stays.
                let before = self.vms.get(seq).filter(|vm| vm.creation_failed());
                let failure = failure.or(before.and_then(|vm| vm.failure.clone()));
                self.finish(seq, failure, |_| {});
            }
            Work::DeleteVm(seq) => match failure {
                None => self.remove_vm(seq),
                failure => self.finish(seq, failure, |_| {}),
            },
            Work::Start(seq) | Work::Restart(seq) | Work::PowerOff(seq) | Work::Deallocate(seq)
                if failure.is_some() =>
            {
                self.restore_power(seq, failure);
            }
            Work::Start(seq) | Work::Restart(seq) => self.boot(seq),
            Work::PowerOff(seq) => {
                self.finish(seq, None, |vm| vm.power = Some(Power::Stopped));
                self.log(seq, "powered off");
            }
            Work::Deallocate(seq) => self.finish_deallocation(seq),
            // A document changes at the call.
            Work::Document { .. } => {}
            Work::Remove(kind, seq) if failure.is_none() => self.remove(kind, seq),
            Work::Remove(kind, seq) => self.set_provisioning(kind, seq, Provisioning::Failed),
            // A deletion that began meanwhile takes precedence.
            Work::Put(kind, seq) if self.is_deleting(kind, seq) => {}
            Work::Put(kind, seq) if failure.is_some() => {
                self.set_provisioning(kind, seq, Provisioning::Failed);
            }
            Work::Put(kind, seq) => self.set_provisioning(kind, seq, Provisioning::Succeeded),
        }
    }

    /// Sets the provisioning state after an operation on a virtual machine: `Succeeded`, or
    /// `Failed` with the failure. `change` is applied in the same version.
    fn finish(&mut self, seq: Seq, failure: Option<Failure>, change: impl FnOnce(&mut Vm)) {
        self.edit_vm(seq, |vm| {
            vm.provisioning = match failure {
                None => Provisioning::Succeeded,
                Some(_) => Provisioning::Failed,
            };
            vm.failure = failure;
            change(vm);
        });
    }

    /// Ends a creation: the virtual machine boots, or it stays as `Failed`.
    ///
    /// A failed creation releases the machine and reserves the interfaces for this virtual machine.
    /// After a failure of the guest (`OSProvisioning…`, `VMExtension…`) the machine runs
    /// nevertheless.
    fn finish_creation(&mut self, seq: Seq, failure: Option<Failure>) {
        let Some(failure) = failure else {
            return self.boot(seq);
        };
        let Some(vm) = self.vms.get(seq) else { return };
        let id = vm.id.clone();
        let nics: Vec<Seq> = vm
            .nics
            .iter()
            .filter_map(|nic| self.nics.seq(&nic.id))
            .collect();
        if leaves_machine_running(&failure.code) {
            self.boot(seq);
        } else {
            self.release(seq);
        }
        self.reserve(&nics, &id);
        self.finish(seq, Some(failure), |_| {});
    }

    /// Boots a virtual machine: it has a machine, its public addresses are allocated, and its boot
    /// count grows.
    pub(super) fn boot(&mut self, seq: Seq) {
        let Some(nics) = self.vms.get(seq).map(|vm| vm.nics.clone()) else {
            return;
        };
        self.allocate(seq);
        self.update_public_addresses(&nics, true);
        self.finish(seq, None, |vm| {
            vm.power = Some(Power::Running);
            vm.boots += 1;
        });
        self.log(seq, "booted");
    }

    /// Ends a failed change of power: restores the previous power state. A virtual machine that was
    /// deallocated releases the machine that the start had reserved.
    fn restore_power(&mut self, seq: Seq, failure: Option<Failure>) {
        // Only a machine that the failed change itself reserved is released.
        let previous_power = self.vms.get(seq).and_then(|vm| vm.previous_power);
        if matches!(previous_power, None | Some(Power::Deallocated)) {
            self.release(seq);
        }
        self.finish(seq, failure, |vm| vm.power = vm.previous_power);
    }

    /// Ends a deallocation: releases the machine and the dynamic public addresses.
    pub(super) fn finish_deallocation(&mut self, seq: Seq) {
        let Some(nics) = self.vms.get(seq).map(|vm| vm.nics.clone()) else {
            return;
        };
        self.release(seq);
        self.update_public_addresses(&nics, false);
        self.finish(seq, None, |vm| vm.power = Some(Power::Deallocated));
        self.log(seq, "deallocated");
    }

    /// Removes a virtual machine. Its disks and interfaces are deleted or detached, as their delete
    /// options say.
    pub(super) fn remove_vm(&mut self, seq: Seq) {
        self.release(seq);
        let Some(vm) = self.vms.get(seq).cloned() else {
            return;
        };
        self.update_public_addresses(&vm.nics, false);
        for nic in &vm.nics {
            let Some(seq) = self.nics.seq(&nic.id) else {
                continue;
            };
            match nic.delete {
                DeleteOption::Delete => self.remove_nic(seq),
                DeleteOption::Detach => self.edit_nic(seq, |nic| nic.attached = None),
            }
        }
        for disk in &vm.disks {
            let Some(seq) = self.disks.seq(&disk.id) else {
                continue;
            };
            match disk.delete {
                DeleteOption::Delete => self.remove_disk(seq),
                DeleteOption::Detach => self.edit_disk(seq, |disk| disk.attached = None),
            }
        }
        if let Some(existing) = self.existing.get_mut(&vm.location) {
            existing.release(&vm.kind());
        }
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.vms.remove(seq, now, window);
    }

    /// Detaches the disks that the update in progress removed from a virtual machine.
    fn detach_disks(&mut self, seq: Seq) {
        let Some(vm) = self
            .vms
            .get(seq)
            .filter(|vm| !vm.detaching_disks.is_empty())
        else {
            return;
        };
        for id in vm.detaching_disks.clone() {
            if let Some(disk) = self.disks.seq(&id) {
                self.edit_disk(disk, |disk| {
                    disk.attached = None;
                    disk.detaching = false;
                });
            }
        }
        self.edit_vm(seq, |vm| vm.detaching_disks.clear());
    }

    /// Whether a disk, image, interface or public address is being deleted.
    fn is_deleting(&self, kind: Kind, seq: Seq) -> bool {
        let state = match kind {
            Kind::Nic => self.nics.get(seq).map(|it| it.provisioning),
            Kind::PublicIp => self.ips.get(seq).map(|it| it.provisioning),
            Kind::Disk => self.disks.get(seq).map(|it| it.provisioning),
            Kind::Image => self.images.get(seq).map(|it| it.provisioning),
            Kind::VirtualMachine
            | Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => None,
        };
        state == Some(Provisioning::Deleting)
    }

    /// Sets the provisioning state of a disk, image, interface or public address.
    fn set_provisioning(&mut self, kind: Kind, seq: Seq, state: Provisioning) {
        match kind {
            Kind::Nic => self.edit_nic(seq, |it| it.provisioning = state),
            Kind::PublicIp => self.edit_ip(seq, |it| it.provisioning = state),
            Kind::Disk => self.edit_disk(seq, |it| it.provisioning = state),
            Kind::Image => self.edit_image(seq, |it| it.provisioning = state),
            Kind::VirtualMachine
            | Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => {}
        }
    }

    /// Removes a resource at the end of its deletion.
    fn remove(&mut self, kind: Kind, seq: Seq) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        match kind {
            Kind::Nic => self.remove_nic(seq),
            Kind::PublicIp => self.remove_ip(seq),
            Kind::Disk => self.remove_disk(seq),
            Kind::Image => self.images.remove(seq, now, window),
            Kind::VirtualMachine => self.remove_vm(seq),
            Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => {}
        }
    }
}

/// Whether a creation that failed with this code leaves a running machine: the machine was
/// allocated, and only the guest did not report in time.
fn leaves_machine_running(code: &str) -> bool {
    code.starts_with("OSProvisioning") || code.starts_with("VMExtension")
}
