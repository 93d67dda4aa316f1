//! Stop, start, reset, suspend, resume, delete: the checks of the instance's state.
//!
//! A call on an instance that is in the target state, or on its way to it, succeeds and gets an
//! operation of its own. Every other state is refused with 400 `resourceNotReady`:
//!
//! | call | begins in | succeeds without effect in |
//! | --- | --- | --- |
//! | stop | `RUNNING`, `SUSPENDED`, `REPAIRING` | `TERMINATED`, `STOPPING` by a stop |
//! | start | `TERMINATED` | `RUNNING`, `PROVISIONING`, `STAGING`, `REPAIRING` |
//! | suspend | `RUNNING` | `SUSPENDED`, `SUSPENDING` |
//! | resume | `SUSPENDED` | `RUNNING`, `PROVISIONING`, `STAGING` |
//! | reset | `RUNNING` | |
//! | delete | any state | being deleted, as often as the knobs say |

use super::{
    Engine, Event,
    operation::{NewOperation, Work},
    record::{AttachedDisk, CurrentStep, Status},
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{error::Refusal, wire::route::Target},
};

/// The state of an instance that a call changes.
struct PowerCheck {
    /// The instance.
    seq: Seq,
    /// Its true state.
    status: Status,
    /// Its current step, to tell a stop from a deletion: both are `STOPPING`.
    current_step: CurrentStep,
    /// Whether it has a local SSD, whose content a stop discards.
    has_local_ssd: bool,
    /// Its path, for errors.
    path: String,
}

impl PowerCheck {
    /// Returns the refusal of a call that the state does not allow: 400 `resourceNotReady`.
    fn not_ready(&self) -> Refusal {
        Refusal::not_ready(&self.path)
    }

    /// Refuses to stop or suspend an instance with a local SSD unless the caller set
    /// `discardLocalSsd`, to either value.
    fn check_local_ssd(&self, discard: Option<bool>) -> Result<(), Refusal> {
        if discard.is_some() || !self.has_local_ssd {
            return Ok(());
        }
        let message = "VM has a Local SSD attached but an undefined value for `discard-local-ssd`.";
        Err(Refusal::new(400, "badRequest", message))
    }
}

impl Engine {
    /// Returns the state of the instance that a call names.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance.
    fn power_check(&mut self, target: &Target) -> Result<PowerCheck, Refusal> {
        let seq = self.find(target)?;
        let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        let local = |disk: &AttachedDisk| disk.disk.is_none();
        Ok(PowerCheck {
            seq,
            status: instance.current().status,
            current_step: instance.current_step,
            has_local_ssd: instance.disks.iter().any(local),
            path: instance.fixed.path(),
        })
    }

    /// Begins to stop an instance and returns the operation; a stopped one stays unchanged.
    ///
    /// With the knob `stop_done_early` the operation is `DONE` while the instance is still
    /// `STOPPING`.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 for a wrong state or an unset `discardLocalSsd`.
    pub(crate) fn stop(&mut self, target: &Target, discard: Option<bool>) -> Result<Seq, Refusal> {
        let found = self.power_check(target)?;
        match found.status {
            Status::Terminated => Ok(self.create_following_operation(found.seq, "stop")),
            Status::Stopping if found.current_step == CurrentStep::Stop => {
                Ok(self.create_following_operation(found.seq, "stop"))
            }
            Status::Running | Status::Suspended | Status::Repairing => {
                found.check_local_ssd(discard)?;
                let operation = self.create_instance_operation(found.seq, "stop");
                self.begin_stop(found.seq, Some(operation));
                if self.core.knobs.stop_done_early {
                    self.after(self.core.knobs.timing.change, Event::Finish(operation));
                }
                Ok(operation)
            }
            Status::Provisioning
            | Status::Staging
            | Status::Stopping
            | Status::Suspending
            | Status::Gone => Err(found.not_ready()),
        }
    }

    /// Begins to start an instance and returns the operation; a running one stays unchanged.
    ///
    /// With `planned_failures` the operation fails and the instance is `TERMINATED` again.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `invalid` for a suspended one, 400 `resourceNotReady` for
    /// another wrong state, and the refusal of an exhausted limit that the knobs report
    /// immediately.
    pub(crate) fn start(
        &mut self,
        target: &Target,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let found = self.power_check(target)?;
        match found.status {
            Status::Running | Status::Provisioning | Status::Staging | Status::Repairing => {
                Ok(self.create_following_operation(found.seq, "start"))
            }
            Status::Terminated => {
                self.boot(found.seq, "start", CurrentStep::Start, planned_failures)
            }
            Status::Suspended => {
                let problem = "The instance is suspended: it can be resumed, and not started.";
                Err(Refusal::invalid("instance", &target.name, problem))
            }
            Status::Stopping | Status::Suspending | Status::Gone => Err(found.not_ready()),
        }
    }

    /// Begins to resume a suspended instance and returns the operation; a running one stays
    /// unchanged.
    ///
    /// With `planned_failures` the operation fails and the instance is `SUSPENDED` again.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `invalid` for a stopped one, 400 `resourceNotReady` for
    /// another wrong state, and the refusal of an exhausted limit that the knobs report
    /// immediately.
    pub(crate) fn resume(
        &mut self,
        target: &Target,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let found = self.power_check(target)?;
        match found.status {
            Status::Running | Status::Provisioning | Status::Staging => {
                Ok(self.create_following_operation(found.seq, "resume"))
            }
            Status::Suspended => {
                self.boot(found.seq, "resume", CurrentStep::Resume, planned_failures)
            }
            Status::Terminated => {
                let problem = "The instance is not suspended.";
                Err(Refusal::invalid("instance", &target.name, problem))
            }
            Status::Stopping | Status::Suspending | Status::Repairing | Status::Gone => {
                Err(found.not_ready())
            }
        }
    }

    /// Checks the limits and begins to start or resume an instance.
    fn boot(
        &mut self,
        seq: Seq,
        kind: &'static str,
        current_step: CurrentStep,
        planned_failures: &[Failure],
    ) -> Result<Seq, Refusal> {
        let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
        let late_failures = self.check_start(instance)?;
        let planned_failures = if planned_failures.is_empty() {
            late_failures
        } else {
            planned_failures.to_vec()
        };
        let operation = self.create_instance_operation(seq, kind);
        self.begin_boot(seq, operation, current_step, planned_failures);
        Ok(operation)
    }

    /// Begins to suspend an instance and returns the operation; a suspended one stays unchanged.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 for a wrong state or an unset `discardLocalSsd`.
    pub(crate) fn suspend(
        &mut self,
        target: &Target,
        discard: Option<bool>,
    ) -> Result<Seq, Refusal> {
        let found = self.power_check(target)?;
        match found.status {
            Status::Suspended | Status::Suspending => {
                Ok(self.create_following_operation(found.seq, "suspend"))
            }
            Status::Running => {
                found.check_local_ssd(discard)?;
                let operation = self.create_instance_operation(found.seq, "suspend");
                self.begin_suspend(found.seq, Some(operation));
                Ok(operation)
            }
            Status::Provisioning
            | Status::Staging
            | Status::Stopping
            | Status::Terminated
            | Status::Repairing
            | Status::Gone => Err(found.not_ready()),
        }
    }

    /// Begins to reset a running instance and returns the operation. The status stays `RUNNING`.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `resourceNotReady` for one that does not run.
    pub(crate) fn reset(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let found = self.power_check(target)?;
        if found.status != Status::Running {
            return Err(found.not_ready());
        }
        let operation = self.create_instance_operation(found.seq, "reset");
        self.schedule_work(
            operation,
            self.core.knobs.timing.change,
            Work::Reset(found.seq),
        );
        Ok(operation)
    }

    /// Begins to delete an instance and returns the operation. This ends its current step.
    ///
    /// While it is being deleted, the knob `repeated_deletes` says how many further deletes
    /// succeed.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance, 400 `invalidResourceUsage` for a protected one, 403
    /// `rateLimitExceeded` for too many repeated deletes.
    pub(crate) fn delete(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let allowed = self.core.knobs.repeated_deletes;
        let Some(instance) = self.instances.get_mut(&seq) else {
            return Err(Refusal::internal());
        };
        if instance.fixed.deletion_protection {
            let message = "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion.'.";
            return Err(Refusal::new(400, "invalidResourceUsage", message));
        }
        if instance.current_step == CurrentStep::Delete {
            instance.repeated_deletes = instance.repeated_deletes.saturating_add(1);
            if instance.repeated_deletes > allowed {
                return Err(Refusal::throttled(403));
            }
            return Ok(self.create_following_operation(seq, "delete"));
        }
        let operation = self.create_instance_operation(seq, "delete");
        self.begin_delete(seq, Some(operation));
        Ok(operation)
    }

    /// Creates an operation without effect that fails with the given errors, for an injected
    /// fault.
    ///
    /// # Errors
    ///
    /// 404 for a missing instance; other resources are not checked.
    pub(crate) fn create_failing_operation(
        &mut self,
        target: &Target,
        (collection, kind): (&str, &'static str),
        errors: &[Failure],
    ) -> Result<Seq, Refusal> {
        let new_operation = if collection == "instances" {
            let seq = self.find(target)?;
            let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
            NewOperation::on_instance(&instance.fixed, kind)
        } else {
            NewOperation {
                project: target.project.clone(),
                scope: target.scope.clone(),
                kind,
                target: target.path(collection),
                target_id: None,
            }
        };
        Ok(self.create_change_operation(new_operation, Work::Fail(errors.to_vec())))
    }

    /// Creates an operation on an instance, which ends with the instance's step.
    pub(super) fn create_instance_operation(&mut self, seq: Seq, kind: &'static str) -> Seq {
        let fixed = self
            .instances
            .get(&seq)
            .map(|instance| instance.fixed.clone());
        match fixed {
            Some(fixed) => self.create_operation(NewOperation::on_instance(&fixed, kind)),
            None => 0,
        }
    }

    /// Creates the operation of a call on an instance that is in the target state, or on its way to it.
    ///
    /// It ends after the full duration of the step to that state, or after `timing.change` if the
    /// instance is in it already.
    fn create_following_operation(&mut self, seq: Seq, kind: &'static str) -> Seq {
        let operation = self.create_instance_operation(seq, kind);
        let timing = &self.core.knobs.timing;
        let duration = match self
            .instances
            .get(&seq)
            .map(|instance| instance.current_step)
        {
            Some(CurrentStep::Insert | CurrentStep::Start | CurrentStep::Resume) => {
                timing.provision.saturating_add(timing.stage)
            }
            Some(CurrentStep::Stop) => timing.stop,
            Some(CurrentStep::Suspend) => timing.suspend,
            Some(CurrentStep::Delete) => timing.delete,
            Some(CurrentStep::Repair) => timing.repair,
            Some(CurrentStep::Nothing) | None => timing.change,
        };
        self.after(duration, Event::Finish(operation));
        operation
    }
}
