//! Stop, start, reset, suspend, resume, delete: what each asks of an instance before it begins.

use super::{
    Event, World,
    operation::{About, Work},
    record::{Attached, Doing, Instance, Status},
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::{error::Refusal, wire::route::Target},
};

impl World {
    /// Begins to stop an instance; one that is stopped stays so.
    pub(crate) fn stop(&mut self, target: &Target, discard: Option<bool>) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let Some(instance) = self.instances.get(&seq) else {
            return Err(Refusal::internal());
        };
        match instance.current().status {
            Status::Terminated => Ok(self.go_along(seq, "stop")),
            Status::Running | Status::Suspended | Status::Repairing => {
                check_local_ssd(instance, discard)?;
                let operation = self.open_on(seq, "stop");
                self.begin_stop(seq, Some(operation));
                if self.knobs.stop_done_early {
                    self.after(self.knobs.timing.change, Event::Finish(operation));
                }
                Ok(operation)
            }
            Status::Stopping if instance.doing == Doing::Stop => Ok(self.go_along(seq, "stop")),
            Status::Provisioning
            | Status::Staging
            | Status::Stopping
            | Status::Suspending
            | Status::Gone => Err(Refusal::not_ready(&instance.fixed.path())),
        }
    }

    /// Begins to start an instance; one that runs stays so. `doom` makes that fail.
    pub(crate) fn start(&mut self, target: &Target, doom: &[Failure]) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let Some(instance) = self.instances.get(&seq) else {
            return Err(Refusal::internal());
        };
        match instance.current().status {
            Status::Running | Status::Provisioning | Status::Staging | Status::Repairing => {
                Ok(self.go_along(seq, "start"))
            }
            Status::Terminated => self.boot(seq, "start", Doing::Start, doom),
            Status::Suspended => {
                let why = "The instance is suspended: it can be resumed, and not started.";
                Err(Refusal::invalid("instance", &instance.fixed.name, why))
            }
            Status::Stopping | Status::Suspending | Status::Gone => {
                Err(Refusal::not_ready(&instance.fixed.path()))
            }
        }
    }

    /// Begins to resume a suspended instance; one that runs stays so.
    pub(crate) fn resume(&mut self, target: &Target, doom: &[Failure]) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let Some(instance) = self.instances.get(&seq) else {
            return Err(Refusal::internal());
        };
        match instance.current().status {
            Status::Running | Status::Provisioning | Status::Staging => {
                Ok(self.go_along(seq, "resume"))
            }
            Status::Suspended => self.boot(seq, "resume", Doing::Resume, doom),
            Status::Terminated => {
                let why = "The instance is not suspended.";
                Err(Refusal::invalid("instance", &instance.fixed.name, why))
            }
            Status::Stopping | Status::Suspending | Status::Repairing | Status::Gone => {
                Err(Refusal::not_ready(&instance.fixed.path()))
            }
        }
    }

    fn boot(
        &mut self,
        seq: Seq,
        kind: &'static str,
        doing: Doing,
        doom: &[Failure],
    ) -> Result<Seq, Refusal> {
        let Some(instance) = self.instances.get(&seq) else {
            return Err(Refusal::internal());
        };
        let late = self.check_start(instance)?;
        let doom = if doom.is_empty() { late } else { doom.to_vec() };
        let operation = self.open_on(seq, kind);
        self.begin_boot(seq, operation, doing, doom);
        Ok(operation)
    }

    /// Begins to suspend an instance; one that is suspended stays so.
    pub(crate) fn suspend(
        &mut self,
        target: &Target,
        discard: Option<bool>,
    ) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let Some(instance) = self.instances.get(&seq) else {
            return Err(Refusal::internal());
        };
        match instance.current().status {
            Status::Suspended | Status::Suspending => Ok(self.go_along(seq, "suspend")),
            Status::Running => {
                check_local_ssd(instance, discard)?;
                let operation = self.open_on(seq, "suspend");
                self.begin_suspend(seq, Some(operation));
                Ok(operation)
            }
            Status::Provisioning
            | Status::Staging
            | Status::Stopping
            | Status::Terminated
            | Status::Repairing
            | Status::Gone => Err(Refusal::not_ready(&instance.fixed.path())),
        }
    }

    /// Begins to reset a running instance.
    pub(crate) fn reset(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let instance = self.instances.get(&seq);
        let running = |instance: &&Instance| instance.current().status == Status::Running;
        let Some(instance) = instance.filter(running) else {
            return Err(Refusal::not_ready(&target.path("instances")));
        };
        let about = About::instance(&instance.fixed, "reset");
        Ok(self.change_later(about, Work::Reset(seq)))
    }

    /// Begins to delete an instance.
    pub(crate) fn delete(&mut self, target: &Target) -> Result<Seq, Refusal> {
        let seq = self.find(target)?;
        let allowed = self.knobs.repeated_deletes;
        let Some(instance) = self.instances.get_mut(&seq) else {
            return Err(Refusal::internal());
        };
        if instance.fixed.deletion_protection {
            let message = "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion.'.";
            return Err(Refusal::new(400, "invalidResourceUsage", message));
        }
        if instance.doing == Doing::Delete {
            instance.repeated_deletes = instance.repeated_deletes.saturating_add(1);
            if instance.repeated_deletes > allowed {
                return Err(Refusal::throttled(403));
            }
            return Ok(self.go_along(seq, "delete"));
        }
        let operation = self.open_on(seq, "delete");
        self.begin_delete(seq, Some(operation));
        Ok(operation)
    }

    /// Begins nothing but an operation that is going to end with errors.
    pub(crate) fn fail_later(
        &mut self,
        target: &Target,
        (collection, kind): (&str, &'static str),
        errors: &[Failure],
    ) -> Result<Seq, Refusal> {
        let about = if collection == "instances" {
            let seq = self.find(target)?;
            let instance = self.instances.get(&seq).ok_or_else(Refusal::internal)?;
            About::instance(&instance.fixed, kind)
        } else {
            About {
                project: target.project.clone(),
                scope: target.scope.clone(),
                kind,
                target: target.path(collection),
                target_id: None,
            }
        };
        Ok(self.change_later(about, Work::Fail(errors.to_vec())))
    }

    /// A new operation on an instance.
    pub(super) fn open_on(&mut self, seq: Seq, kind: &'static str) -> Seq {
        let fixed = self
            .instances
            .get(&seq)
            .map(|instance| instance.fixed.clone());
        match fixed {
            Some(fixed) => self.open(About::instance(&fixed, kind)),
            None => 0,
        }
    }

    /// An operation for what is so already, or is on its way: it is done when that is.
    fn go_along(&mut self, seq: Seq, kind: &'static str) -> Seq {
        let operation = self.open_on(seq, kind);
        let timing = &self.knobs.timing;
        let takes = match self.instances.get(&seq).map(|instance| instance.doing) {
            Some(Doing::Insert | Doing::Start | Doing::Resume) => {
                timing.provision.saturating_add(timing.stage)
            }
            Some(Doing::Stop) => timing.stop,
            Some(Doing::Suspend) => timing.suspend,
            Some(Doing::Delete) => timing.delete,
            Some(Doing::Repair) => timing.repair,
            Some(Doing::Nothing) | None => timing.change,
        };
        self.after(takes, Event::Finish(operation));
        operation
    }
}

/// What is on local disks is lost or saved, as the caller must say.
fn check_local_ssd(instance: &Instance, discard: Option<bool>) -> Result<(), Refusal> {
    let local = |disk: &Attached| disk.disk.is_none();
    if discard.is_some() || !instance.disks.iter().any(local) {
        return Ok(());
    }
    let message = "VM has a Local SSD attached but an undefined value for `discard-local-ssd`.";
    Err(Refusal::new(400, "badRequest", message))
}
