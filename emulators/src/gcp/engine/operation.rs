//! Operations: the work that a call started, and its result.
//!
//! ```text
//! PENDING ──► RUNNING ──► DONE, maybe with errors ──► forgotten
//! ```
//!
//! An operation is `PENDING` for `timing.pending`, `DONE` when its work is, and readable for
//! `timing.operation_retention` after that. The work begins at the call, whatever the status says.
//! An operation with errors is `DONE` too: clients must read `error`.

use std::{sync::Arc, time::Duration};

use super::{
    Engine, Event,
    record::{Fixed, Labels},
    rules::Metadata,
};
use crate::{
    cloud::{fault::Failure, index::Seq},
    gcp::wire::route::Scope,
};

/// An index key of an operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationKey {
    /// All operations of a project in a scope.
    Scope(String, Scope),
    /// The operations on the resource with this id.
    Target(String, Scope, u64),
    /// The operations on the resource with this path.
    TargetPath(String, Scope, String),
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The numeric id, which never repeats.
    pub(crate) id: u64,
    /// The name, which begins with `operation-` and the time in milliseconds.
    pub(crate) name: String,
    /// The project of its target.
    pub(crate) project: String,
    /// Where it can be read: in a zone, in a region or globally.
    pub(crate) scope: Scope,
    /// What it does (`operationType`), for example `insert`.
    pub(crate) kind: &'static str,
    /// The path of its target.
    pub(crate) target: String,
    /// The id of its target; `None` for a bulkInsert.
    pub(crate) target_id: Option<u64>,
    /// When the call created it.
    pub(crate) inserted: Duration,
    /// When it became `RUNNING`.
    pub(crate) started: Option<Duration>,
    /// When it became `DONE`.
    pub(crate) ended: Option<Duration>,
    /// Why it failed; empty if it succeeded or is not done.
    pub(crate) errors: Vec<Failure>,
    /// The id that the operations of one bulkInsert share (`operationGroupId`).
    pub(crate) group: Option<String>,
    /// What it does at its end.
    work: Work,
}

/// What an operation does at its end.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Nothing is left to do: the step of an instance does the work.
    Nothing,
    /// It fails with these errors, as planned at its begin.
    Fail(Vec<Failure>),
    /// Reboots an instance.
    Reset(Seq),
    /// Replaces the labels of an instance that still has this fingerprint.
    SetLabels(Seq, String, Arc<Labels>),
    /// Replaces the metadata of an instance that still has this fingerprint.
    SetMetadata(Seq, String, Arc<Metadata>),
    /// Changes the machine type of an instance that is still stopped.
    SetMachineType(Seq, String),
    /// Deletes a disk.
    DeleteDisk(Seq),
    /// Deletes an image.
    DeleteImage(Seq),
}

/// The properties of a new operation; see `Operation`.
#[derive(Debug)]
pub(super) struct NewOperation {
    /// The project of the target.
    pub(super) project: String,
    /// Where it can be read.
    pub(super) scope: Scope,
    /// What it does, for example `insert`.
    pub(super) kind: &'static str,
    /// The path of the target.
    pub(super) target: String,
    /// The id of the target, if it has one.
    pub(super) target_id: Option<u64>,
}

impl NewOperation {
    /// Describes an operation on an instance.
    pub(super) fn on_instance(fixed: &Fixed, kind: &'static str) -> Self {
        Self {
            project: fixed.project.clone(),
            scope: Scope::Zone(fixed.zone.clone()),
            kind,
            target: fixed.path(),
            target_id: Some(fixed.id),
        }
    }
}

impl Operation {
    /// Returns `PENDING`, `RUNNING` or `DONE`.
    pub(crate) const fn status(&self) -> &'static str {
        match (self.started, self.ended) {
            (_, Some(_)) => "DONE",
            (Some(_), None) => "RUNNING",
            (None, None) => "PENDING",
        }
    }

    /// Returns the index keys.
    fn keys(&self) -> Vec<OperationKey> {
        let at = || (self.project.clone(), self.scope.clone());
        let ((p1, s1), (p2, s2), (p3, s3)) = (at(), at(), at());
        let target = self.target_id.map(|id| OperationKey::Target(p2, s2, id));
        [
            OperationKey::Scope(p1, s1),
            OperationKey::TargetPath(p3, s3, self.target.clone()),
        ]
        .into_iter()
        .chain(target)
        .collect()
    }
}

/// Returns the HTTP status and its text that an operation reports for an error code.
///
/// An unknown code is a 400.
pub(crate) fn http_error(code: &str) -> (u16, &'static str) {
    match code {
        "QUOTA_EXCEEDED" => (403, "FORBIDDEN"),
        "RESOURCE_NOT_FOUND" => (404, "NOT FOUND"),
        "RESOURCE_ALREADY_EXISTS" => (409, "CONFLICT"),
        "CONDITION_NOT_MET" => (412, "PRECONDITION FAILED"),
        "INTERNAL_ERROR" => (500, "INTERNAL SERVER ERROR"),
        code if code.starts_with("ZONE_RESOURCE_POOL_EXHAUSTED") => (503, "SERVICE UNAVAILABLE"),
        _ => (400, "BAD REQUEST"),
    }
}

impl Engine {
    /// Creates an operation that ends when `finish` is called.
    pub(super) fn create_operation(&mut self, new_operation: NewOperation) -> Seq {
        let (seq, id, now) = (self.next_seq(), self.next_id(), self.now());
        let (high, low) = (self.ids.number(), self.ids.number());
        let name = format!(
            "operation-{}-{:013x}-{:08x}-{:08x}",
            self.unix_millis(now),
            high >> 12,
            low >> 32,
            low & 0xffff_ffff
        );
        let operation = Operation {
            id,
            name: name.clone(),
            project: new_operation.project,
            scope: new_operation.scope,
            kind: new_operation.kind,
            target: new_operation.target,
            target_id: new_operation.target_id,
            inserted: now,
            started: None,
            ended: None,
            errors: Vec::new(),
            group: None,
            work: Work::Nothing,
        };
        self.operation_index.change(seq, &[], &operation.keys());
        self.operation_names.insert(name, seq);
        self.operations.insert(seq, operation);
        self.after(self.core.knobs.timing.pending, Event::Begin(seq));
        seq
    }

    /// Creates an operation that does `work` after `duration` and then ends.
    pub(super) fn create_operation_with_work(
        &mut self,
        new_operation: NewOperation,
        duration: Duration,
        work: Work,
    ) -> Seq {
        let seq = self.create_operation(new_operation);
        self.schedule_work(seq, duration, work);
        seq
    }

    /// Schedules the work of an operation, which ends it.
    pub(super) fn schedule_work(&mut self, seq: Seq, duration: Duration, work: Work) {
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.work = work;
        }
        self.after(duration, Event::Finish(seq));
    }

    /// Sets the group id of an operation.
    pub(super) fn set_group(&mut self, seq: Seq, group: &str) {
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.group = Some(group.to_owned());
        }
    }

    /// Makes a pending operation `RUNNING`.
    pub(super) fn begin_operation(&mut self, seq: Seq) {
        let now = self.now();
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.started.get_or_insert(now);
        }
    }

    /// Does the work of an operation and ends it.
    pub(super) fn finish_work(&mut self, seq: Seq) {
        let Some(operation) = self.operations.get_mut(&seq) else {
            return;
        };
        let work = std::mem::replace(&mut operation.work, Work::Nothing);
        let errors = match work {
            Work::Nothing => Vec::new(),
            Work::Fail(errors) => errors,
            Work::Reset(instance) => {
                self.record_boot(instance);
                Vec::new()
            }
            Work::SetLabels(instance, fingerprint, labels) => {
                self.apply_labels(instance, &fingerprint, labels)
            }
            Work::SetMetadata(instance, fingerprint, items) => {
                self.apply_metadata(instance, &fingerprint, items)
            }
            Work::SetMachineType(instance, name) => self.apply_machine_type(instance, name),
            Work::DeleteDisk(disk) => {
                self.remove_disk(disk);
                Vec::new()
            }
            Work::DeleteImage(image) => {
                self.images.remove(&image);
                Vec::new()
            }
        };
        self.finish(seq, errors);
    }

    /// Ends an operation with these errors and schedules its expiry. Has no effect on an ended
    /// one.
    pub(super) fn finish(&mut self, seq: Seq, errors: Vec<Failure>) {
        let now = self.now();
        let Some(operation) = self.operations.get_mut(&seq) else {
            return;
        };
        if operation.ended.is_some() {
            return;
        }
        operation.started.get_or_insert(now);
        operation.ended = Some(now);
        operation.errors = errors;
        self.after(
            self.core.knobs.timing.operation_retention,
            Event::Forget(seq),
        );
    }

    /// Removes an expired operation. A read of it is a 404 from then on.
    pub(super) fn forget_operation(&mut self, seq: Seq) {
        if let Some(operation) = self.operations.remove(&seq) {
            self.operation_index.change(seq, &operation.keys(), &[]);
            self.operation_names.remove(&operation.name);
        }
    }

    /// Returns an operation of a project and scope by its name or its id.
    pub(crate) fn operation(&self, project: &str, scope: &Scope, name: &str) -> Option<&Operation> {
        let by_id = || {
            let id: u64 = name.parse().ok()?;
            let keys = [OperationKey::Scope(project.to_owned(), scope.clone())];
            let mut seqs = self.operation_index.find(&keys, 0);
            seqs.find(|seq| self.operations.get(seq).is_some_and(|op| op.id == id))
        };
        let seq = self.operation_names.get(name).copied().or_else(by_id)?;
        let operation = self.operations.get(&seq)?;
        (operation.project == project && operation.scope == *scope).then_some(operation)
    }

    /// Returns the operations under any of `keys`, oldest first.
    pub(crate) fn operations_under(&self, keys: &[OperationKey]) -> Vec<Seq> {
        self.operation_index.find(keys, 0).collect()
    }
}
