//! Operations: the work that a call started, and its result.
//!
//! ```text
//! PENDING ──► RUNNING ──► DONE, maybe with errors ──► forgotten
//! ```

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

/// What an operation is found under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationKey {
    /// All of a project in a scope.
    Scope(String, Scope),
    /// By what it is about, in a scope.
    Target(String, Scope, u64),
    TargetPath(String, Scope, String),
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) project: String,
    pub(crate) scope: Scope,
    pub(crate) kind: &'static str,
    /// The path of what it is about.
    pub(crate) target: String,
    pub(crate) target_id: Option<u64>,
    pub(crate) inserted: Duration,
    pub(crate) started: Option<Duration>,
    pub(crate) ended: Option<Duration>,
    pub(crate) errors: Vec<Failure>,
    /// What several operations of one call have in common.
    pub(crate) group: Option<String>,
    work: Work,
}

/// What is left to do when an operation's time has come.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Nothing,
    /// The step fails, as planned at its begin.
    Fail(Vec<Failure>),
    Reset(Seq),
    SetLabels(Seq, String, Arc<Labels>),
    SetMetadata(Seq, String, Arc<Metadata>),
    SetMachineType(Seq, String),
    DeleteDisk(Seq),
    DeleteImage(Seq),
}

/// What a new operation is about.
#[derive(Debug)]
pub(super) struct NewOperation {
    pub(super) project: String,
    pub(super) scope: Scope,
    pub(super) kind: &'static str,
    pub(super) target: String,
    pub(super) target_id: Option<u64>,
}

impl NewOperation {
    /// An operation on an instance.
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
    pub(crate) const fn status(&self) -> &'static str {
        match (self.started, self.ended) {
            (_, Some(_)) => "DONE",
            (Some(_), None) => "RUNNING",
            (None, None) => "PENDING",
        }
    }

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

/// The HTTP status and its words that go with an error's code.
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
    /// Creates an operation without an end.
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

    /// Creates an operation whose work takes some time.
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

    /// Schedules the work of an operation.
    pub(super) fn schedule_work(&mut self, seq: Seq, duration: Duration, work: Work) {
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.work = work;
        }
        self.after(duration, Event::Finish(seq));
    }

    pub(super) fn set_group(&mut self, seq: Seq, group: &str) {
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.group = Some(group.to_owned());
        }
    }

    pub(super) fn begin_operation(&mut self, seq: Seq) {
        let now = self.now();
        if let Some(operation) = self.operations.get_mut(&seq) {
            operation.started.get_or_insert(now);
        }
    }

    /// Finishes the work of an operation, and ends it.
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

    /// Ends an operation, unless it has ended.
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

    pub(super) fn forget_operation(&mut self, seq: Seq) {
        if let Some(operation) = self.operations.remove(&seq) {
            self.operation_index.change(seq, &operation.keys(), &[]);
            self.operation_names.remove(&operation.name);
        }
    }

    /// Returns an operation by its name or its id.
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

    /// The operations under any of `keys`, oldest first.
    pub(crate) fn operations_under(&self, keys: &[OperationKey]) -> Vec<Seq> {
        self.operation_index.find(keys, 0).collect()
    }
}
