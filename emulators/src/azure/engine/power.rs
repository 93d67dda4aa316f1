//! Start, stop, restart, deallocate, delete, generalize, evict: the checks of the machine's state.
//!
//! A call that finds the virtual machine in the requested state succeeds, with an operation that
//! changes nothing. While it is being deleted, every call except another deletion is refused with
//! 409 `OperationNotAllowed`.

use super::{
    Engine,
    limits::{RequestedVm, allocation_failure},
    task::Work,
    vm::{Power, Provisioning, Vm},
};
use crate::{
    azure::{
        error::Refusal,
        knobs::Market,
        wire::{id::Id, vm_body::Eviction},
    },
    cloud::{fault::Failure, index::Seq},
};

impl Engine {
    /// Begins to start a virtual machine, and returns the operation. Ends as `running` after
    /// [`boot`](crate::azure::Timing).
    ///
    /// Without capacity the call succeeds, and the operation fails with `AllocationFailed` or
    /// `ZonalAllocationFailed`.
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` for a generalized virtual machine.
    pub(crate) fn start_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        let (seq, vm) = self.changeable_vm(id, "start")?;
        if vm.generalized {
            let message = format!(
                "Operation 'start' is not allowed on VM '{}' since the VM is generalized.",
                vm.id.name
            );
            return Err(Refusal::not_allowed(message));
        }
        if vm.power == Some(Power::Running) && vm.task.is_none() {
            return Ok(self.begin_no_op(&vm, Work::UpdateVm(seq)));
        }
        let planned_failure = self.try_allocate(seq, &vm);
        self.edit_vm(seq, |vm| vm.begin_power_change(Power::Starting));
        let duration = self.boot_time(planned_failure.as_ref());
        Ok(self.begin(
            &vm.id,
            &vm.location,
            Work::Start(seq),
            duration,
            planned_failure,
        ))
    }

    /// Reserves a machine for a virtual machine that starts, or returns why there is none.
    pub(super) fn try_allocate(&mut self, seq: Seq, vm: &Vm) -> Option<Failure> {
        if vm.allocated {
            return None;
        }
        let size = self.size(&vm.size).ok()?;
        let requested = RequestedVm {
            size,
            location: &vm.location,
            zone: vm.zone.as_deref(),
            market: vm.market,
        };
        if !self.has_capacity(requested) {
            return Some(allocation_failure(requested));
        }
        self.allocate(seq);
        None
    }

    /// Begins to stop a virtual machine, which keeps its machine. Ends as `stopped` after
    /// [`stop`](crate::azure::Timing).
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` if it is deallocated or being deallocated.
    pub(crate) fn power_off_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        let (seq, vm) = self.changeable_vm(id, "powerOff")?;
        if vm.power == Some(Power::Deallocating) || !vm.allocated {
            return Err(deallocated_refusal("powerOff", &vm.id));
        }
        if vm.power == Some(Power::Stopped) && vm.task.is_none() {
            return Ok(self.begin_no_op(&vm, Work::UpdateVm(seq)));
        }
        Ok(self.begin_power(seq, &vm, Power::Stopping, Work::PowerOff(seq)))
    }

    /// Begins to deallocate a virtual machine. Ends as `deallocated` after
    /// [`stop`](crate::azure::Timing).
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` for a machine with an ephemeral OS disk (azure-docs#41362).
    pub(crate) fn deallocate_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        let (seq, vm) = self.changeable_vm(id, "deallocate")?;
        if vm.is_ephemeral() {
            let message =
                "Operation 'deallocate' is not supported for VMs using an ephemeral OS disk.";
            return Err(Refusal::not_allowed(message));
        }
        if vm.power == Some(Power::Deallocated) && vm.task.is_none() {
            return Ok(self.begin_no_op(&vm, Work::UpdateVm(seq)));
        }
        Ok(self.begin_power(seq, &vm, Power::Deallocating, Work::Deallocate(seq)))
    }

    /// Begins to restart a virtual machine.
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` unless it runs.
    pub(crate) fn restart_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        let (seq, vm) = self.changeable_vm(id, "restart")?;
        if vm.power != Some(Power::Running) {
            let message = "The operation requires the VM to be running (or set to run).";
            return Err(Refusal::not_allowed(message));
        }
        Ok(self.begin_power(seq, &vm, Power::Starting, Work::Restart(seq)))
    }

    /// Begins to redeploy a virtual machine: it moves to another machine and boots again.
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` unless it runs.
    pub(crate) fn redeploy_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        self.restart_vm(id)
    }

    /// Begins to apply the state of a virtual machine again, which changes nothing.
    pub(crate) fn reapply_vm(&mut self, id: &Id) -> Result<u64, Refusal> {
        let (seq, vm) = self.changeable_vm(id, "reapply")?;
        Ok(self.begin_no_op(&vm, Work::UpdateVm(seq)))
    }

    /// Begins to delete a virtual machine, in any state; `None` if it does not exist.
    ///
    /// A repeated call during the deletion returns the same operation.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound`.
    pub(crate) fn delete_vm(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let Ok(seq) = self.find_vm(id) else {
            return Ok(None);
        };
        let Some(vm) = self.vms.get(seq).cloned() else {
            return Ok(None);
        };
        if let (Provisioning::Deleting, Some(task)) = (vm.provisioning, vm.task) {
            return Ok(Some(task));
        }
        self.edit_vm(seq, |vm| vm.provisioning = Provisioning::Deleting);
        let duration = self.core.knobs.timing.delete;
        let task = self.begin(&vm.id, &vm.location, Work::DeleteVm(seq), duration, None);
        Ok(Some(task))
    }

    /// Marks a virtual machine as generalized, immediately and permanently.
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` unless it is stopped or deallocated.
    pub(crate) fn generalize_vm(&mut self, id: &Id) -> Result<(), Refusal> {
        let (seq, vm) = self.changeable_vm(id, "generalize")?;
        match vm.power {
            Some(Power::Stopped | Power::Deallocated) => {
                self.edit_vm(seq, |vm| vm.generalized = true);
                Ok(())
            }
            Some(Power::Starting | Power::Running | Power::Stopping | Power::Deallocating)
            | None => {
                let message = format!(
                    "Operation 'generalize' is not allowed on VM '{}' since the VM is running. Please power off the \
                     VM before performing this operation.",
                    vm.id.name
                );
                Err(Refusal::not_allowed(message))
            }
        }
    }

    /// Evicts a spot machine: begins to deallocate or to delete it, as its eviction policy says.
    ///
    /// # Errors
    ///
    /// 409 `OperationNotAllowed` for a regular virtual machine.
    pub(crate) fn evict_vm(&mut self, id: &Id) -> Result<(), Refusal> {
        let (seq, vm) = self.changeable_vm(id, "simulateEviction")?;
        if vm.market != Market::Spot {
            let message = "Operation 'simulateEviction' is allowed only for Spot Virtual Machines";
            return Err(Refusal::not_allowed(message));
        }
        match vm.eviction {
            Eviction::Delete => {
                self.evicted.insert(id.key());
                self.delete_vm(id)?;
            }
            Eviction::Deallocate => {
                self.begin_power(seq, &vm, Power::Deallocating, Work::Deallocate(seq));
            }
        }
        Ok(())
    }

    /// Finds a virtual machine, and refuses one that is being deleted. `operation` is the name in
    /// the message.
    fn changeable_vm(&mut self, id: &Id, operation: &str) -> Result<(Seq, Vm), Refusal> {
        let seq = self.find_vm(id)?;
        let vm = self.vms.get(seq).cloned();
        let vm = vm.ok_or_else(|| id.not_found())?;
        if vm.provisioning == Provisioning::Deleting && vm.task.is_some() {
            let message = format!(
                "Operation '{operation}' is not allowed on VM '{}' since the VM is marked for deletion. You can only \
                 retry the Delete operation (or wait for an ongoing one to complete).",
                vm.id.name
            );
            return Err(Refusal::not_allowed(message));
        }
        Ok((seq, vm))
    }

    /// Begins a change of power with the duration [`stop`](crate::azure::Timing).
    fn begin_power(&mut self, seq: Seq, vm: &Vm, power: Power, work: Work) -> u64 {
        self.edit_vm(seq, |vm| vm.begin_power_change(power));
        let duration = self.core.knobs.timing.stop;
        self.begin(&vm.id, &vm.location, work, duration, None)
    }

    /// Begins an operation for a virtual machine that is in the requested state already.
    fn begin_no_op(&mut self, vm: &Vm, work: Work) -> u64 {
        self.begin_update(&vm.id, &vm.location, work)
    }
}

/// Returns 409 `OperationNotAllowed` for a virtual machine that is deallocated.
fn deallocated_refusal(operation: &str, id: &Id) -> Refusal {
    let message = format!(
        "Operation '{operation}' is not allowed on VM '{}' since the VM is either deallocated or marked to be deallocated.",
        id.name
    );
    Refusal::not_allowed(message)
}
