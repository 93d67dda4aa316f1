//! Stop, start, terminate and reboot.
//!
//! A command starts a transition, and a scheduled event finishes it. A later command replaces a
//! transition that is under way; the event of the replaced one is ignored.

use std::time::Duration;

use fleetwright::{InstanceId, PublicAddress};

use super::{Event, Seq, View, World, limits};
use crate::{error::NativeError, state::NativeState};

impl World {
    /// Stops an instance and releases its public address. Does nothing if it is stopped or stopping.
    pub(crate) fn stop(&mut self, id: &InstanceId, reason: &str) -> Result<(), NativeError> {
        let seq = self.find_in(id, "running, pending or stopped", |_| true)?;
        match self.state(seq) {
            NativeState::Provisioning | NativeState::Active | NativeState::Reimaging => {
                self.release_public(seq);
                self.start_transition(seq, NativeState::Halting, reason, self.knobs.timing.stop);
            }
            NativeState::Halting
            | NativeState::Halted
            | NativeState::Deleting
            | NativeState::Deleted => {}
        }
        Ok(())
    }

    /// Starts an instance. Does nothing if it is running or pending. Refuses while it is stopping.
    pub(crate) fn start(&mut self, id: &InstanceId) -> Result<View, NativeError> {
        let seq = self.find_in(id, "stopped, pending or running", |_| true)?;
        match self.state(seq) {
            NativeState::Halting => {
                return Err(NativeError::Busy {
                    id: id.clone(),
                    after: self.knobs.timing.stop,
                });
            }
            NativeState::Halted => self.boot(seq)?,
            NativeState::Provisioning
            | NativeState::Active
            | NativeState::Reimaging
            | NativeState::Deleting
            | NativeState::Deleted => {}
        }
        self.view(seq)
            .ok_or_else(|| NativeError::NoSuchInstance(id.clone()))
    }

    /// Assigns a machine and a new public address, and boots.
    fn boot(&mut self, seq: Seq) -> Result<(), NativeError> {
        let Some(record) = self.records.get(&seq) else {
            return Ok(());
        };
        let kind = limits::kind_of(record);
        if self.free_machines(&kind) == 0 {
            return Err(limits::no_capacity(kind));
        }
        let public_ip = match record.public_address {
            PublicAddress::Assigned => {
                Some(self.public.allocate().ok_or(NativeError::NoAddressLeft)?)
            }
            PublicAddress::Absent => None,
        };
        self.take_machine(seq);
        self.revise(seq, |version| version.public_ip = public_ip);
        self.start_transition(
            seq,
            NativeState::Provisioning,
            "started",
            self.knobs.timing.boot,
        );
        Ok(())
    }

    /// Terminates an instance. Does nothing if it is terminating or terminated.
    pub(crate) fn terminate(&mut self, id: &InstanceId, reason: &str) -> Result<(), NativeError> {
        let record = self.find(id)?;
        let (seq, ending) = (record.seq, record.current().state.is_ending());
        if !ending {
            self.start_transition(
                seq,
                NativeState::Deleting,
                reason,
                self.knobs.timing.terminate,
            );
        }
        Ok(())
    }

    /// Reboots a running instance. It stays running.
    pub(crate) fn reboot(&mut self, id: &InstanceId, mode: &str) -> Result<(), NativeError> {
        let seq = self.find_in(id, "running", |state| state == NativeState::Active)?;
        if let Some(record) = self.records.get_mut(&seq) {
            record.console.push(format!("{mode} reboot"));
        }
        self.record_boot(seq);
        Ok(())
    }

    /// Sets a state whose transition finishes after `delay`.
    pub(super) fn start_transition(
        &mut self,
        seq: Seq,
        state: NativeState,
        reason: &str,
        delay: Duration,
    ) {
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.transition += 1;
        let transition = record.transition;
        self.set_state(seq, state, reason);
        self.schedule(delay, Event::FinishTransition(seq, transition));
    }

    /// Sets state and reason of an instance.
    fn set_state(&mut self, seq: Seq, state: NativeState, reason: &str) {
        let reason = self.shared_reason(reason);
        self.revise(seq, |version| {
            version.state = state;
            version.reason = Some(reason);
        });
    }

    /// Finishes a transition, unless a later one has started.
    pub(super) fn finish_transition(&mut self, seq: Seq, transition: u64) {
        let Some(record) = self.records.get(&seq) else {
            return;
        };
        if record.transition != transition {
            return;
        }
        match (record.current().state, record.boot_failure.clone()) {
            (NativeState::Provisioning, Some(boot_failure)) => {
                self.fail_launch(seq, &boot_failure);
            }
            (NativeState::Provisioning | NativeState::Reimaging, _) => {
                self.set_state(seq, NativeState::Active, "running");
                self.record_boot(seq);
            }
            (NativeState::Halting, _) => {
                self.release_machine(seq);
                self.set_state(seq, NativeState::Halted, "stopped");
            }
            (NativeState::Deleting, _) => self.finish_termination(seq, "terminated"),
            (NativeState::Active | NativeState::Halted | NativeState::Deleted, _) => {}
        }
    }

    /// Terminates an instance whose launch failed late. If the cloud declares such failures, its token is
    /// free; otherwise it is spent.
    fn fail_launch(&mut self, seq: Seq, reason: &str) {
        self.revise(seq, |version| version.launch_failed = true);
        let frees_token = !self.knobs.capabilities.late_failures.is_zero();
        let record = self.records.get_mut(&seq).filter(|_| frees_token);
        let token = record.and_then(|record| record.token.take());
        self.finish_termination(seq, reason);
        if let Some(token) = token {
            self.free_token(&token, seq);
        }
    }

    /// Terminates an instance and deletes its disk, network card and addresses. The record stays
    /// visible for the retention of terminated instances.
    pub(super) fn finish_termination(&mut self, seq: Seq, reason: &str) {
        self.release_machine(seq);
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.disk = None;
        let (last, token) = (record.current(), record.token.clone());
        let (private_ip, public_ip) = (last.private_ip, last.public_ip);
        if let Some(address) = private_ip {
            self.private.release(address);
        }
        if let Some(address) = public_ip {
            self.public.release(address);
        }
        let reason = self.shared_reason(reason);
        self.revise(seq, |version| {
            version.state = NativeState::Deleted;
            version.reason = Some(reason);
            (version.mac, version.private_ip, version.public_ip) = (None, None, None);
        });
        self.usage.instances -= 1;
        if let Some(token) = token {
            self.release_token_instance(&token);
        }
        self.schedule(
            self.knobs.capabilities.terminated_visible,
            Event::Purge(seq),
        );
    }

    /// Releases the public address of an instance, if it has one.
    fn release_public(&mut self, seq: Seq) {
        let address = self
            .records
            .get(&seq)
            .and_then(|record| record.current().public_ip);
        if let Some(address) = address {
            self.public.release(address);
            self.revise(seq, |version| version.public_ip = None);
        }
    }

    /// Counts a boot and writes it to the console.
    fn record_boot(&mut self, seq: Seq) {
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.boots += 1;
        let (boots, image) = (record.boots, record.current().image.clone());
        record.console.push(format!("boot {boots} from {image}"));
    }

    /// Returns the current state; a purged instance is deleted.
    fn state(&self, seq: Seq) -> NativeState {
        self.records
            .get(&seq)
            .map_or(NativeState::Deleted, |record| record.current().state)
    }
}
