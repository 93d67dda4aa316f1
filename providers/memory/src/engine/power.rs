//! Stop, start, terminate, reboot: commands begin a transition, and time ends it.

use std::time::Duration;

use fleetwright::{InstanceId, PublicAddress};

use super::{Event, Seq, View, World, limits};
use crate::{error::Refusal, state::NativeState};

impl World {
    /// Stops an instance; nothing happens to one that is stopped or stopping.
    pub(crate) fn stop(&mut self, id: &InstanceId, reason: &str) -> Result<(), Refusal> {
        let seq = self.find_in(id, "running, pending or stopped", |_| true)?;
        match self.state(seq) {
            NativeState::Provisioning | NativeState::Active | NativeState::Reimaging => {
                self.release_public(seq);
                self.begin(seq, NativeState::Halting, reason, self.knobs.timing.stop);
            }
            NativeState::Halting
            | NativeState::Halted
            | NativeState::Deleting
            | NativeState::Deleted => {}
        }
        Ok(())
    }

    /// Starts an instance; nothing happens to one that runs or is about to.
    pub(crate) fn start(&mut self, id: &InstanceId) -> Result<View, Refusal> {
        let seq = self.find_in(id, "stopped, pending or running", |_| true)?;
        match self.state(seq) {
            NativeState::Halting => {
                return Err(Refusal::Busy {
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
            .ok_or_else(|| Refusal::NoSuchInstance(id.clone()))
    }

    /// Takes a machine and a new address, and boots.
    fn boot(&mut self, seq: Seq) -> Result<(), Refusal> {
        let Some(record) = self.records.get(&seq) else {
            return Ok(());
        };
        let kind = limits::kind_of(record);
        if self.free_machines(&kind) == 0 {
            return Err(limits::no_capacity(kind));
        }
        let public_ip = match record.public_address {
            PublicAddress::Assigned => Some(self.public.take().ok_or(Refusal::NoAddressLeft)?),
            PublicAddress::Absent => None,
        };
        self.take_machine(seq);
        self.revise(seq, |version| version.public_ip = public_ip);
        self.begin(
            seq,
            NativeState::Provisioning,
            "started",
            self.knobs.timing.boot,
        );
        Ok(())
    }

    /// Destroys an instance; nothing happens to one that is destroyed or about to be.
    pub(crate) fn terminate(&mut self, id: &InstanceId, reason: &str) -> Result<(), Refusal> {
        let record = self.find(id)?;
        let (seq, ending) = (record.seq, record.current().state.is_ending());
        if !ending {
            self.begin(
                seq,
                NativeState::Deleting,
                reason,
                self.knobs.timing.terminate,
            );
        }
        Ok(())
    }

    /// Boots a running instance again.
    pub(crate) fn reboot(&mut self, id: &InstanceId, how: &str) -> Result<(), Refusal> {
        let seq = self.find_in(id, "running", |state| state == NativeState::Active)?;
        if let Some(record) = self.records.get_mut(&seq) {
            record.console.push(format!("{how} reboot"));
        }
        self.booted(seq);
        Ok(())
    }

    /// Enters a state that ends by itself after `delay`.
    pub(super) fn begin(&mut self, seq: Seq, state: NativeState, reason: &str, delay: Duration) {
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.transition += 1;
        let transition = record.transition;
        self.enter(seq, state, reason);
        self.after(delay, Event::Settle(seq, transition));
    }

    fn enter(&mut self, seq: Seq, state: NativeState, reason: &str) {
        self.revise(seq, |version| {
            version.state = state;
            version.reason = Some(reason.into());
        });
    }

    /// A transition ends, unless another one has begun since.
    pub(super) fn settle(&mut self, seq: Seq, transition: u64) {
        let Some(record) = self.records.get(&seq) else {
            return;
        };
        if record.transition != transition {
            return;
        }
        match (record.current().state, record.doom.clone()) {
            (NativeState::Provisioning, Some(doom)) => self.end(seq, &doom),
            (NativeState::Provisioning | NativeState::Reimaging, _) => {
                self.enter(seq, NativeState::Active, "running");
                self.booted(seq);
            }
            (NativeState::Halting, _) => {
                self.release_machine(seq);
                self.enter(seq, NativeState::Halted, "stopped");
            }
            (NativeState::Deleting, _) => self.end(seq, "terminated"),
            (NativeState::Active | NativeState::Halted | NativeState::Deleted, _) => {}
        }
    }

    /// The instance and all that was launched with it are gone.
    pub(super) fn end(&mut self, seq: Seq, reason: &str) {
        self.release_machine(seq);
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.disk = None;
        let (last, token) = (record.current(), record.token.clone());
        let (private_ip, public_ip) = (last.private_ip, last.public_ip);
        if let Some(address) = private_ip {
            self.private.give_back(address);
        }
        if let Some(address) = public_ip {
            self.public.give_back(address);
        }
        self.revise(seq, |version| {
            version.state = NativeState::Deleted;
            version.reason = Some(reason.into());
            (version.mac, version.private_ip, version.public_ip) = (None, None, None);
        });
        self.usage.instances -= 1;
        if let Some(token) = token {
            self.token_lost_one(&token);
        }
        self.after(
            self.knobs.capabilities.terminated_visible,
            Event::Vanish(seq),
        );
    }

    fn release_public(&mut self, seq: Seq) {
        let address = self
            .records
            .get(&seq)
            .and_then(|record| record.current().public_ip);
        if let Some(address) = address {
            self.public.give_back(address);
            self.revise(seq, |version| version.public_ip = None);
        }
    }

    fn booted(&mut self, seq: Seq) {
        let Some(record) = self.records.get_mut(&seq) else {
            return;
        };
        record.boots += 1;
        let (boots, image) = (record.boots, record.current().image.clone());
        record.console.push(format!("boot {boots} from {image}"));
    }

    fn state(&self, seq: Seq) -> NativeState {
        self.records
            .get(&seq)
            .map_or(NativeState::Deleted, |record| record.current().state)
    }
}
