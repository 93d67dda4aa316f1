//! Stop, start, reboot, terminate: commands begin a transition, and time ends it.

use std::time::Duration;

use super::{
    Event, Mode, Seq, World,
    launch::SpotKind,
    record::{Reason, State, Version},
};
use crate::ec2::error::Refusal;

/// An instance before and after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) id: String,
    pub(crate) before: State,
    pub(crate) after: State,
}

impl World {
    /// Stops instances, all or none.
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
            match instance.current().state {
                State::Running | State::Stopping | State::Stopped => {}
                State::Pending | State::ShuttingDown | State::Terminated => {
                    let message = format!(
                        "The instance '{id}' is not in a state from which it can be stopped."
                    );
                    return Err(Refusal::wrong_state(message));
                }
            }
        }
        mode.go()?;
        let reason = Reason::new("Client.UserInitiatedShutdown", "User initiated shutdown");
        Ok(self.each(&found, |world, seq| world.begin_stop(seq, &reason)))
    }

    /// Starts instances, all or none.
    pub(crate) fn start(&mut self, ids: &[String], mode: Mode) -> Result<Vec<Change>, Refusal> {
        let found = self.find(ids)?;
        let mut taken = Vec::new();
        let ready = found
            .iter()
            .try_for_each(|seq| self.ready_to_start(*seq, &mut taken));
        if let Err(refusal) = ready.and_then(|()| mode.go()) {
            for seq in taken {
                self.release_machine(seq);
            }
            return Err(refusal);
        }
        Ok(self.each(&found, Self::begin_start))
    }

    /// Takes a machine for an instance that needs one to start.
    fn ready_to_start(&mut self, seq: Seq, taken: &mut Vec<Seq>) -> Result<(), Refusal> {
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

    /// Reboots running instances, all or none.
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
        mode.go()?;
        for seq in found {
            self.log(seq, "rebooted");
        }
        Ok(())
    }

    /// Terminates instances. A protected one fails the call and spares the others of its zone; those of
    /// other zones are terminated all the same, as EC2 does it.
    pub(crate) fn terminate(&mut self, ids: &[String], mode: Mode) -> Result<Vec<Change>, Refusal> {
        let found = self.find(ids)?;
        let protected = |seq: &&Seq| {
            self.instances
                .get(seq)
                .is_some_and(|i| i.current().protected && !i.current().state.is_ending())
        };
        let spared: Vec<(String, String)> = found
            .iter()
            .filter(protected)
            .filter_map(|seq| self.instances.get(seq))
            .map(|instance| (instance.fixed.zone.clone(), instance.fixed.id.clone()))
            .collect();
        let refusal = spared.first().map(|(_, id)| {
            let message = format!(
                "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and \
                 try again."
            );
            Refusal::client("OperationNotPermitted", message)
        });
        if mode == Mode::Try {
            return Err(refusal.unwrap_or_else(Refusal::dry_run));
        }
        let goes = |seq: &Seq| {
            let zone = self.instances.get(seq).map(|instance| &instance.fixed.zone);
            zone.is_some_and(|zone| !spared.iter().any(|(spared, _)| spared == zone))
        };
        let going: Vec<Seq> = found.iter().copied().filter(goes).collect();
        let reason = Reason::new("Client.UserInitiatedShutdown", "User initiated shutdown");
        let changes = self.each(&going, |world, seq| world.begin_terminate(seq, &reason));
        refusal.map_or(Ok(changes), Err)
    }

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

    pub(super) fn state(&self, seq: Seq) -> Option<State> {
        Some(self.instances.get(&seq)?.current().state)
    }

    pub(super) fn begin_stop(&mut self, seq: Seq, reason: &Reason) {
        if self.state(seq) == Some(State::Running) {
            self.release_public(seq);
            self.begin(seq, State::Stopping, Some(reason), self.knobs.timing.stop);
        }
    }

    fn begin_start(&mut self, seq: Seq) {
        if self.state(seq) == Some(State::Stopped) {
            let now = self.now;
            self.revise(seq, |version| version.launched = now);
            self.begin(seq, State::Pending, None, self.knobs.timing.boot);
        }
    }

    pub(super) fn begin_terminate(&mut self, seq: Seq, reason: &Reason) {
        if self.state(seq).is_some_and(|state| !state.is_ending()) {
            self.release_public(seq);
            self.begin(
                seq,
                State::ShuttingDown,
                Some(reason),
                self.knobs.timing.terminate,
            );
        }
    }

    fn begin(&mut self, seq: Seq, state: State, reason: Option<&Reason>, takes: Duration) {
        let words = reason.map(|_| {
            format!(
                "User initiated ({})",
                self.date(self.now).format("%Y-%m-%d %H:%M:%S GMT")
            )
        });
        self.revise(seq, |version| {
            version.state = state;
            version.reason = reason.cloned();
            version.transition_reason = words.unwrap_or_default();
            version.running_since = None;
        });
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        instance.transition += 1;
        let transition = instance.transition;
        self.after(takes, Event::Settle(seq, transition));
    }

    /// A transition ends.
    pub(super) fn settle(&mut self, seq: Seq, transition: u64) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        if instance.transition != transition {
            return;
        }
        match instance.current().state {
            State::Pending => match instance.doom.take() {
                Some(reason) => self.end(seq, Some(reason)),
                None => self.run(seq),
            },
            State::Stopping => {
                self.release_machine(seq);
                self.revise(seq, |version| version.state = State::Stopped);
                self.log(seq, "stopped");
            }
            State::ShuttingDown => self.end(seq, None),
            State::Running | State::Stopped | State::Terminated => {}
        }
    }

    fn run(&mut self, seq: Seq) {
        let wanted = self
            .instances
            .get(&seq)
            .is_some_and(|instance| instance.fixed.public_address);
        let address = if wanted { self.public.take() } else { None };
        let now = self.now;
        self.revise(seq, |version| {
            version.state = State::Running;
            version.public_ip = address;
            version.running_since = Some(now);
        });
        self.log(seq, "booted");
    }

    /// An instance is terminated, with all that goes with it.
    fn end(&mut self, seq: Seq, late: Option<Reason>) {
        self.release_machine(seq);
        self.release_public(seq);
        self.cascade(seq);
        self.revise(seq, |version| {
            version.state = State::Terminated;
            version.running_since = None;
            if let Some(reason) = late {
                version.transition_reason.clone_from(&reason.code);
                version.reason = Some(reason);
            }
        });
        let key = self
            .instances
            .get(&seq)
            .and_then(|instance| instance.token_key.clone());
        self.spend(key);
        self.after(self.knobs.timing.terminated_visible, Event::Vanish(seq));
    }

    fn release_public(&mut self, seq: Seq) {
        let address = self
            .instances
            .get(&seq)
            .and_then(|instance| instance.current().public_ip);
        if let Some(address) = address {
            self.public.give_back(address);
            self.revise(seq, |version: &mut Version| version.public_ip = None);
        }
    }

    /// Adds a line to an instance's console.
    fn log(&mut self, seq: Seq, what: &str) {
        let line = format!("[{}] {what}", self.stamp(self.now));
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.console.push(line);
        }
    }
}
