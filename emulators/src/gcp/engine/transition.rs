//! Steps of an instance: how one begins, and what happens at its end.
//!
//! ```text
//! PROVISIONING ──► STAGING ──► RUNNING ──► STOPPING ──► TERMINATED ──► PROVISIONING
//!      │                         │  ▲
//!      │ fails                   ▼  │ resume, by way of PROVISIONING and STAGING
//!      ▼                     SUSPENDING ──► SUSPENDED
//!  gone, or as before          any ──► STOPPING ──► gone
//! ```

use std::time::Duration;

use super::{
    Engine, Event,
    record::{CurrentStep, Status},
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::catalog::region_of,
};

impl Engine {
    /// Returns the true state of an instance.
    pub(super) fn status(&self, seq: Seq) -> Option<Status> {
        Some(self.instances.get(&seq)?.current().status)
    }

    /// Begins to stop an instance: releases its external address and sets `STOPPING` for
    /// `timing.stop`.
    pub(super) fn begin_stop(&mut self, seq: Seq, operation: Option<Seq>) {
        self.release_nat_ip(seq);
        let duration = self.core.knobs.timing.stop;
        self.begin_step(
            seq,
            CurrentStep::Stop,
            Status::Stopping,
            operation,
            duration,
        );
    }

    /// Begins to suspend an instance: sets `SUSPENDING` for `timing.suspend`. It keeps its
    /// external address until it is suspended.
    pub(super) fn begin_suspend(&mut self, seq: Seq, operation: Option<Seq>) {
        let duration = self.core.knobs.timing.suspend;
        self.begin_step(
            seq,
            CurrentStep::Suspend,
            Status::Suspending,
            operation,
            duration,
        );
    }

    /// Begins to repair an instance: sets `REPAIRING` for `timing.repair`. It keeps its machine.
    pub(super) fn begin_repair(&mut self, seq: Seq) {
        let duration = self.core.knobs.timing.repair;
        self.begin_step(seq, CurrentStep::Repair, Status::Repairing, None, duration);
    }

    /// Begins to start or resume an instance: sets `PROVISIONING` for `timing.provision`. It gets
    /// a machine unless the step is going to fail, which takes `timing.shortage` longer.
    pub(super) fn begin_boot(
        &mut self,
        seq: Seq,
        operation: Seq,
        current_step: CurrentStep,
        planned_failures: Vec<Failure>,
    ) {
        let will_fail = !planned_failures.is_empty();
        if !will_fail {
            self.take_machine(seq);
        }
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.planned_failures = planned_failures;
        }
        let timing = &self.core.knobs.timing;
        let duration = timing
            .provision
            .saturating_add(timing.shortage_of(will_fail));
        self.begin_step(
            seq,
            current_step,
            Status::Provisioning,
            Some(operation),
            duration,
        );
    }

    /// Begins to delete an instance: releases its external address and sets `STOPPING` for
    /// `timing.delete`.
    pub(super) fn begin_delete(&mut self, seq: Seq, operation: Option<Seq>) {
        self.release_nat_ip(seq);
        let duration = self.core.knobs.timing.delete;
        self.begin_step(
            seq,
            CurrentStep::Delete,
            Status::Stopping,
            operation,
            duration,
        );
    }

    /// Begins a step. The end of the current step is ignored from now on, and its operation ends.
    fn begin_step(
        &mut self,
        seq: Seq,
        current_step: CurrentStep,
        status: Status,
        operation: Option<Seq>,
        duration: Duration,
    ) {
        self.end_previous_operation(seq);
        self.revise(seq, |version| version.status = status);
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        instance.step += 1;
        (instance.current_step, instance.operation) = (current_step, operation);
        let step = instance.step;
        self.after(duration, Event::FinishStep(seq, step));
    }

    /// Ends the operation of the current step, which a later step replaces.
    ///
    /// An insert, start or resume that is replaced fails with `RESOURCE_NOT_FOUND`; any other
    /// operation succeeds.
    fn end_previous_operation(&mut self, seq: Seq) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        let (path, current_step) = (instance.fixed.path(), instance.current_step);
        let Some(operation) = instance.operation.take() else {
            return;
        };
        let errors = match current_step {
            CurrentStep::Insert | CurrentStep::Start | CurrentStep::Resume => {
                let message = format!("The resource '{path}' was not found");
                vec![Failure::new("RESOURCE_NOT_FOUND", message)]
            }
            CurrentStep::Nothing
            | CurrentStep::Stop
            | CurrentStep::Suspend
            | CurrentStep::Delete
            | CurrentStep::Repair => Vec::new(),
        };
        self.finish(operation, errors);
    }

    /// Ends a step, unless another one has begun since, and begins the next one.
    pub(super) fn finish_step(&mut self, seq: Seq, step: u64) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        if instance.step != step {
            return;
        }
        let (current_step, status) = (instance.current_step, instance.current().status);
        let planned_failures = std::mem::take(&mut instance.planned_failures);
        match (status, current_step) {
            (Status::Provisioning, _) if !planned_failures.is_empty() => {
                self.fail_step(seq, current_step, planned_failures);
            }
            (Status::Provisioning, _) => self.begin_staging(seq),
            (Status::Staging, _) => self.begin_running(seq, current_step != CurrentStep::Resume),
            (Status::Repairing, _) => self.begin_running(seq, true),
            (Status::Stopping, CurrentStep::Delete) => self.remove_instance(seq, false),
            (Status::Stopping, _) => {
                let now = self.now();
                self.finish_without_machine(seq, |version| {
                    version.status = Status::Terminated;
                    version.last_stop = Some(now);
                });
                self.log(seq, "stopped");
            }
            (Status::Suspending, _) => {
                self.release_nat_ip(seq);
                let now = self.now();
                self.finish_without_machine(seq, |version| {
                    version.status = Status::Suspended;
                    version.last_suspended = Some(now);
                });
            }
            (Status::Running | Status::Terminated | Status::Suspended | Status::Gone, _) => {}
        }
    }

    /// Changes an instance from `PROVISIONING` to `STAGING`, for `timing.stage`.
    fn begin_staging(&mut self, seq: Seq) {
        self.revise(seq, |version| version.status = Status::Staging);
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.step += 1;
            let step = instance.step;
            self.after(self.core.knobs.timing.stage, Event::FinishStep(seq, step));
        }
    }

    /// Makes an instance `RUNNING` with an external address, if it is to have one, and ends its
    /// operation.
    ///
    /// A resumed guest does not boot.
    fn begin_running(&mut self, seq: Seq, boots: bool) {
        let Some(instance) = self.instances.get(&seq) else {
            return;
        };
        let wanted = instance.fixed.access.is_some() && instance.current().nat_ip.is_none();
        let address = if wanted {
            self.core.public_ips.take()
        } else {
            None
        };
        let now = self.now();
        self.revise(seq, |version| {
            version.status = Status::Running;
            version.nat_ip = version.nat_ip.or(address);
            version.last_start = Some(now);
        });
        if boots {
            self.record_boot(seq);
        }
        self.finish_current_step(seq);
    }

    /// Counts a boot of a running instance and writes it to the serial port.
    pub(super) fn record_boot(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            if instance.current().status == Status::Running {
                instance.boots += 1;
                self.log(seq, "booted");
            }
        }
    }

    /// Releases the machine, revises the instance and ends its operation.
    fn finish_without_machine(&mut self, seq: Seq, change: impl FnOnce(&mut super::Version)) {
        self.release_machine(seq);
        self.revise(seq, change);
        self.finish_current_step(seq);
    }

    /// Ends the current step and its operation, with success.
    fn finish_current_step(&mut self, seq: Seq) {
        let operation = self.instances.get_mut(&seq).and_then(|instance| {
            instance.current_step = CurrentStep::Nothing;
            instance.operation.take()
        });
        if let Some(operation) = operation {
            self.finish(operation, Vec::new());
        }
    }

    /// Ends a failed step: the operation reports the errors, a new instance is removed, and
    /// another one returns to its state before the step.
    fn fail_step(&mut self, seq: Seq, current_step: CurrentStep, errors: Vec<Failure>) {
        let operation = self
            .instances
            .get_mut(&seq)
            .and_then(|instance| instance.operation.take());
        if let Some(operation) = operation {
            self.finish(operation, errors);
        }
        match current_step {
            CurrentStep::Start => {
                self.finish_without_machine(seq, |version| version.status = Status::Terminated);
            }
            CurrentStep::Resume => {
                self.finish_without_machine(seq, |version| version.status = Status::Suspended);
            }
            CurrentStep::Nothing
            | CurrentStep::Insert
            | CurrentStep::Stop
            | CurrentStep::Suspend
            | CurrentStep::Delete
            | CurrentStep::Repair => self.remove_instance(seq, true),
        }
    }

    /// Deletes an instance, the disks that are deleted with it, and its addresses.
    ///
    /// Lagging reads return it for the knob `lag.reads`. `never_ran` also deletes the disks that
    /// were created for it.
    fn remove_instance(&mut self, seq: Seq, never_ran: bool) {
        self.release_machine(seq);
        self.release_nat_ip(seq);
        self.release_disks(seq, never_ran);
        let fixed = self
            .instances
            .get(&seq)
            .map(|instance| instance.fixed.clone());
        if let Some(fixed) = fixed {
            if let Some(address) = fixed.internal_ip {
                let region = region_of(&fixed.zone).to_owned();
                self.internal_pool(&region, &fixed.subnetwork)
                    .release(address);
            }
        }
        self.revise(seq, |version| version.status = Status::Gone);
        self.finish_current_step(seq);
        let read_lag = self.core.knobs.lag.reads;
        if read_lag.is_zero() {
            self.remove_expired(seq);
        } else {
            self.after(read_lag, Event::Remove(seq));
        }
    }

    /// Releases the external address of an instance, if it has one.
    fn release_nat_ip(&mut self, seq: Seq) {
        let address = self
            .instances
            .get(&seq)
            .and_then(|instance| instance.current().nat_ip);
        if let Some(address) = address {
            self.core.public_ips.release(address);
            self.revise(seq, |version| version.nat_ip = None);
        }
    }

    /// Adds a line with the time to an instance's first serial port.
    pub(super) fn log(&mut self, seq: Seq, what: &str) {
        let line = format!("[{}] {what}\r\n", self.stamp(self.now()));
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.console += &line;
        }
    }
}
