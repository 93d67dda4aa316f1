//! Stop, start, reboot, terminate: the checks of the instances' states, all or nothing.
//!
//! An instance that is already in the target state, or on its way to it, stays unchanged and is
//! reported with its state.

use super::{
    Engine, Mode, Seq,
    launch::SpotKind,
    record::{Reason, State},
};
use crate::ec2::error::Refusal;

/// The states of an instance before and after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The instance.
    pub(crate) id: String,
    /// Its state before the call.
    pub(crate) before: State,
    /// Its state after the call.
    pub(crate) after: State,
}

impl Engine {
    /// Stops instances, all or none.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` for an instance of a one-time spot request, `IncorrectInstanceState`
    /// for one that is pending or terminating, `InvalidInstanceID.NotFound` if any id is missing.
    pub(crate) fn stop(&mut self, ids: &[String], mode: Mode) -> Result<Vec<Change>, Refusal> {
        let found = self.find(ids)?;
        for seq in &found {
            let Some(instance) = self.instances.get(seq) else {
                continue;
            };
            let id = &instance.fixed.id;
            if let Some((_, SpotKind::OneTime)) = &instance.fixed.spot {
                return Err(Refusal::unsupported(format!(
                    "You can't stop the Spot Instance '{id}' because it is associated with a one-time Spot Instance \
                     request. You can only stop Spot Instances associated with persistent Spot Instance requests."
                )));
            }
            let version = instance.current();
            if version.stop_protected && version.state == State::Running {
                let message = format!(
                    "The instance '{id}' may not be stopped. Modify its 'disableApiStop' instance attribute and try again."
                );
                return Err(Refusal::client("OperationNotPermitted", message));
            }
            match version.state {
                State::Running | State::Stopping | State::Stopped => {}
                State::Pending | State::ShuttingDown | State::Terminated => {
                    let message = format!(
                        "The instance '{id}' is not in a state from which it can be stopped."
                    );
                    return Err(Refusal::wrong_state(message));
                }
            }
        }
        mode.check_dry_run()?;
        let reason = Reason::new("Client.UserInitiatedShutdown", "User initiated shutdown");
        Ok(self.each(&found, |engine, seq| engine.begin_stop(seq, &reason)))
    }

    /// Starts instances, all or none.
    ///
    /// # Errors
    ///
    /// `IncorrectInstanceState` for an instance that stops or terminates, and the refusal of an
    /// exhausted limit; then no machine stays reserved.
    pub(crate) fn start(&mut self, ids: &[String], mode: Mode) -> Result<Vec<Change>, Refusal> {
        let found = self.find(ids)?;
        let mut taken = Vec::new();
        let ready = found
            .iter()
            .try_for_each(|seq| self.reserve_machine_to_start(*seq, &mut taken));
        if let Err(refusal) = ready.and_then(|()| mode.check_dry_run()) {
            for seq in taken {
                self.release_machine(seq);
            }
            return Err(refusal);
        }
        Ok(self.each(&found, Self::begin_start))
    }

    /// Reserves a machine for a stopped instance and adds it to `taken`. A pending or running
    /// instance needs none.
    ///
    /// # Errors
    ///
    /// As `start`.
    fn reserve_machine_to_start(&mut self, seq: Seq, taken: &mut Vec<Seq>) -> Result<(), Refusal> {
        let Some(instance) = self.instances.get(&seq) else {
            return Ok(());
        };
        match instance.current().state {
            State::Pending | State::Running => {}
            State::Stopped => {
                self.check_machine(seq)?;
                self.take_machine(seq);
                taken.push(seq);
            }
            State::Stopping | State::ShuttingDown | State::Terminated => {
                let id = &instance.fixed.id;
                let message =
                    format!("The instance '{id}' is not in a state from which it can be started.");
                return Err(Refusal::wrong_state(message));
            }
        }
        Ok(())
    }

    /// Reboots running instances, all or none. The state stays `running`.
    ///
    /// # Errors
    ///
    /// `IncorrectInstanceState` if any of them does not run.
    pub(crate) fn reboot(&mut self, ids: &[String], mode: Mode) -> Result<(), Refusal> {
        let found = self.find(ids)?;
        for seq in &found {
            let Some(instance) = self.instances.get(seq) else {
                continue;
            };
            if instance.current().state != State::Running {
                let id = &instance.fixed.id;
                let message =
                    format!("The instance '{id}' is not in a state from which it can be rebooted.");
                return Err(Refusal::wrong_state(message));
            }
        }
        mode.check_dry_run()?;
        for seq in found {
            self.record_boot(seq, "rebooted");
        }
        Ok(())
    }

    /// Terminates instances.
    ///
    /// A protected one fails the call, and no instance of its zone is terminated; those of other
    /// zones are terminated nevertheless, as EC2 documents.
    ///
    /// # Errors
    ///
    /// `OperationNotPermitted` for a protected instance, `InvalidInstanceID.NotFound` if any id is
    /// missing.
    pub(crate) fn terminate(&mut self, ids: &[String], mode: Mode) -> Result<Vec<Change>, Refusal> {
        let found = self.find(ids)?;
        let protected = |seq: &&Seq| {
            self.instances
                .get(seq)
                .is_some_and(|i| i.current().protected && !i.current().state.is_ending())
        };
        let protected_zones: Vec<(String, String)> = found
            .iter()
            .filter(protected)
            .filter_map(|seq| self.instances.get(seq))
            .map(|instance| (instance.fixed.zone.clone(), instance.fixed.id.clone()))
            .collect();
        let refusal = protected_zones.first().map(|(_, id)| {
            let message = format!(
                "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and \
                 try again."
            );
            Refusal::client("OperationNotPermitted", message)
        });
        if mode == Mode::DryRun {
            return Err(refusal.unwrap_or_else(Refusal::dry_run));
        }
        let may_terminate = |seq: &Seq| {
            let zone = self.instances.get(seq).map(|instance| &instance.fixed.zone);
            zone.is_some_and(|zone| {
                !protected_zones
                    .iter()
                    .any(|(protected_zone, _)| protected_zone == zone)
            })
        };
        let terminating: Vec<Seq> = found.iter().copied().filter(may_terminate).collect();
        let reason = Reason::new("Client.UserInitiatedShutdown", "User initiated shutdown");
        let changes = self.each(&terminating, |engine, seq| {
            engine.begin_terminate(seq, &reason);
        });
        refusal.map_or(Ok(changes), Err)
    }

    /// Calls `act` on each instance and returns the states before and after.
    fn each(&mut self, found: &[Seq], mut act: impl FnMut(&mut Self, Seq)) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for seq in found {
            let (Some(before), Some(id)) = (
                self.state(*seq),
                self.instances.get(seq).map(|i| i.fixed.id.clone()),
            ) else {
                continue;
            };
            act(self, *seq);
            let after = self.state(*seq).unwrap_or(before);
            changes.push(Change { id, before, after });
        }
        changes
    }
}
