//! Transitions: how one begins, and what happens at its end.
//!
//! ```text
//! pending ──► running ──► stopping ──► stopped ──► pending
//!    │           │            │            │
//!    │           └────────────┴────────────┴──► shutting-down ──► terminated
//!    └── fails late ────────────────────────────────────────────► terminated
//! ```

use std::time::Duration;

use super::{
    Engine, Event, Seq,
    record::{Reason, State, Version},
};

impl Engine {
    /// Returns the true state of an instance.
    pub(super) fn state(&self, seq: Seq) -> Option<State> {
        Some(self.instances.get(&seq)?.current().state)
    }

    /// Begins to stop a running instance: releases its public address and sets `stopping` for
    /// `timing.stop`. Has no effect in another state.
    pub(super) fn begin_stop(&mut self, seq: Seq, reason: &Reason) {
        if self.state(seq) == Some(State::Running) {
            self.release_public_ip(seq);
            self.begin_transition(
                seq,
                State::Stopping,
                Some(reason),
                self.core.knobs.timing.stop,
            );
        }
    }

    /// Begins to boot a stopped instance, on the machine that was reserved for it: sets `pending`
    /// for `timing.boot`. Has no effect in another state.
    pub(super) fn begin_start(&mut self, seq: Seq) {
        if self.state(seq) == Some(State::Stopped) {
            let now = self.now();
            self.revise(seq, |version| version.launched = now);
            self.begin_transition(seq, State::Pending, None, self.core.knobs.timing.boot);
        }
    }

    /// Begins to terminate an instance: releases its public address and sets `shutting-down` for
    /// `timing.terminate`. Has no effect on one that is terminating already.
    pub(super) fn begin_terminate(&mut self, seq: Seq, reason: &Reason) {
        if self.state(seq).is_some_and(|state| !state.is_ending()) {
            self.release_public_ip(seq);
            self.begin_transition(
                seq,
                State::ShuttingDown,
                Some(reason),
                self.core.knobs.timing.terminate,
            );
        }
    }

    /// Begins a transition. The end of the current one is ignored from now on.
    fn begin_transition(
        &mut self,
        seq: Seq,
        state: State,
        reason: Option<&Reason>,
        duration: Duration,
    ) {
        let transition_reason = reason.map(|_| {
            format!(
                "User initiated ({})",
                self.date(self.now()).format("%Y-%m-%d %H:%M:%S GMT")
            )
        });
        self.revise(seq, |version| {
            version.state = state;
            version.reason = reason.cloned();
            version.transition_reason = transition_reason.unwrap_or_default();
            version.running_since = None;
        });
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        instance.transition += 1;
        let transition = instance.transition;
        self.after(duration, Event::FinishTransition(seq, transition));
    }

    /// Ends a transition, unless another one has begun since.
    ///
    /// A pending instance runs or fails late, a stopping one is stopped, and one that shuts down
    /// is terminated.
    pub(super) fn finish_transition(&mut self, seq: Seq, transition: u64) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        if instance.transition != transition {
            return;
        }
        match instance.current().state {
            State::Pending => match instance.planned_failure.take() {
                Some(reason) => self.finish_termination(seq, Some(reason)),
                None => self.begin_running(seq),
            },
            State::Stopping => {
                self.release_machine(seq);
                self.revise(seq, |version| version.state = State::Stopped);
                self.log(seq, "stopped");
            }
            State::ShuttingDown => self.finish_termination(seq, None),
            State::Running | State::Stopped | State::Terminated => {}
        }
    }

    /// Makes an instance `running` with a public address, if it is to have one.
    fn begin_running(&mut self, seq: Seq) {
        let needs_address = self
            .instances
            .get(&seq)
            .is_some_and(|instance| instance.fixed.public_address);
        let elastic = self.elastic_address(seq);
        let address = if elastic.is_some() {
            elastic
        } else if needs_address {
            self.core.public_ips.take()
        } else {
            None
        };
        let now = self.now();
        self.revise(seq, |version| {
            version.state = State::Running;
            version.public_ip = address;
            version.running_since = Some(now);
        });
        self.record_boot(seq, "booted");
    }

    /// Terminates an instance and deletes the volumes and interfaces that belong to it.
    ///
    /// With `failure` the instance failed late, and its state reason says so. It is described for
    /// `timing.terminated_visible`.
    fn finish_termination(&mut self, seq: Seq, failure: Option<Reason>) {
        self.release_machine(seq);
        self.release_public_ip(seq);
        if let Some(id) = self
            .instances
            .get(&seq)
            .map(|instance| instance.fixed.id.clone())
        {
            self.end_associations_of(&id);
        }
        self.release_attachments(seq);
        self.revise(seq, |version| {
            version.state = State::Terminated;
            version.running_since = None;
            if let Some(reason) = failure {
                version.transition_reason.clone_from(&reason.code);
                version.reason = Some(reason);
            }
        });
        let key = self
            .instances
            .get(&seq)
            .and_then(|instance| instance.token_key.clone());
        self.count_terminated(key);
        self.after(
            self.core.knobs.timing.terminated_visible,
            Event::Remove(seq),
        );
    }

    /// Takes the public address of an instance away, if it has one. An elastic address stays allocated.
    pub(super) fn release_public_ip(&mut self, seq: Seq) {
        let address = self
            .instances
            .get(&seq)
            .and_then(|instance| instance.current().public_ip);
        if let Some(address) = address {
            if self.elastic_address(seq) != Some(address) {
                self.core.public_ips.release(address);
            }
            self.revise(seq, |version: &mut Version| version.public_ip = None);
        }
    }

    /// Counts a boot, and writes it to the console.
    pub(super) fn record_boot(&mut self, seq: Seq, what: &str) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.boots += 1;
        }
        self.log(seq, what);
    }

    /// Adds a line with the time to an instance's console.
    fn log(&mut self, seq: Seq, what: &str) {
        let line = format!("[{}] {what}", self.stamp(self.now()));
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.console.push(line);
        }
    }
}
