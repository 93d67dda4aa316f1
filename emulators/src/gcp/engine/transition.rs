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

    pub(super) fn begin_repair(&mut self, seq: Seq) {
        let duration = self.core.knobs.timing.repair;
        self.begin_step(seq, CurrentStep::Repair, Status::Repairing, None, duration);
    }

    /// Begins to start or resume an instance; it gets a machine unless it is going to fail.
    pub(super) fn begin_boot(
        &mut self,
        seq: Seq,
        operation: Seq,
        current_step: CurrentStep,
        planned_failures: Vec<Failure>,
    ) {
        if planned_failures.is_empty() {
            self.take_machine(seq);
        }
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.planned_failures = planned_failures;
        }
        let duration = self.core.knobs.timing.provision;
        self.begin_step(
            seq,
            current_step,
            Status::Provisioning,
            Some(operation),
            duration,
        );
    }

    /// Begins to delete an instance. This ends its current step.
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

    /// Ends the operation of the current step, which a later one preempts.
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

    /// Ends a step.
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

    fn begin_staging(&mut self, seq: Seq) {
        self.revise(seq, |version| version.status = Status::Staging);
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.step += 1;
            let step = instance.step;
            self.after(self.core.knobs.timing.stage, Event::FinishStep(seq, step));
        }
    }

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

    /// The guest has booted.
    pub(super) fn record_boot(&mut self, seq: Seq) {
        if let Some(instance) = self.instances.get_mut(&seq) {
            if instance.current().status == Status::Running {
                instance.boots += 1;
                self.log(seq, "booted");
            }
        }
    }

    /// Releases a machine.
    fn finish_without_machine(&mut self, seq: Seq, change: impl FnOnce(&mut super::Version)) {
        self.release_machine(seq);
        self.revise(seq, change);
        self.finish_current_step(seq);
    }

    /// What was going on is over.
    fn finish_current_step(&mut self, seq: Seq) {
        let operation = self.instances.get_mut(&seq).and_then(|instance| {
            instance.current_step = CurrentStep::Nothing;
            instance.operation.take()
        });
        if let Some(operation) = operation {
            self.finish(operation, Vec::new());
        }
    }

    /// What was begun fails: a new instance is gone, an old one is as it was.
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
                self.finish_without_machine(seq, |version| version.status = Status::Terminated)
            }
            CurrentStep::Resume => {
                self.finish_without_machine(seq, |version| version.status = Status::Suspended)
            }
            CurrentStep::Nothing
            | CurrentStep::Insert
            | CurrentStep::Stop
            | CurrentStep::Suspend
            | CurrentStep::Delete
            | CurrentStep::Repair => self.remove_instance(seq, true),
        }
    }

    /// Removes an instance with the disks that are deleted with it.
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

    /// Adds a line to an instance's first serial port.
    pub(super) fn log(&mut self, seq: Seq, what: &str) {
        let line = format!("[{}] {what}\r\n", self.stamp(self.now()));
        if let Some(instance) = self.instances.get_mut(&seq) {
            instance.console += &line;
        }
    }
}
