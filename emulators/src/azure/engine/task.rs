//! Long-running operations: how one begins, is preempted, and expires.

use std::time::Duration;

use super::{Engine, Event};
use crate::{
    azure::wire::id::{Id, Kind},
    cloud::{fault::Failure, index::Seq},
};

/// What an operation does when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    CreateVm(Seq),
    UpdateVm(Seq),
    DeleteVm(Seq),
    Start(Seq),
    PowerOff(Seq),
    Restart(Seq),
    Deallocate(Seq),
    /// Makes or changes something else.
    Put(Kind, Seq),
    /// Takes something else away.
    Remove(Kind, Seq),
}

impl Work {
    /// The virtual machine that it is about.
    pub(crate) const fn vm(self) -> Option<Seq> {
        match self {
            Self::CreateVm(seq)
            | Self::UpdateVm(seq)
            | Self::DeleteVm(seq)
            | Self::Start(seq)
            | Self::PowerOff(seq)
            | Self::Restart(seq)
            | Self::Deallocate(seq) => Some(seq),
            Self::Put(..) | Self::Remove(..) => None,
        }
    }

    /// Whether it takes something away.
    pub(crate) const fn removes(self) -> bool {
        matches!(self, Self::DeleteVm(_) | Self::Remove(..))
    }
}

/// An operation that takes time.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its name, which is a GUID.
    pub(crate) id: String,
    pub(crate) provider: &'static str,
    pub(crate) subscription: String,
    pub(crate) location: String,
    pub(crate) work: Work,
    pub(crate) started: Duration,
    pub(crate) ended: Option<Duration>,
    /// Why it failed, once it has ended.
    pub(crate) failure: Option<Failure>,
    /// Why it is going to fail.
    pub(crate) planned_failure: Option<Failure>,
}

impl Engine {
    /// Begins an operation; the one that goes on for the same virtual machine is overtaken by it.
    pub(super) fn begin(
        &mut self,
        id: &Id,
        location: &str,
        work: Work,
        duration: Duration,
        planned_failure: Option<Failure>,
    ) -> u64 {
        if let Some(seq) = work.vm() {
            self.preempt(seq);
        }
        let number = self.next_seq();
        let name = self.names.request();
        self.task_ids.insert(name.clone(), number);
        let task = Task {
            id: name,
            provider: id.kind.provider(),
            subscription: id.subscription.clone(),
            location: location.to_owned(),
            work,
            started: self.now(),
            ended: None,
            failure: None,
            planned_failure,
        };
        self.tasks.insert(number, task);
        if let Some(seq) = work.vm() {
            self.edit_vm(seq, |vm| vm.task = Some(number));
        }
        self.core.schedule.after(duration, Event::End(number));
        number
    }

    /// Begins an operation on something small.
    pub(super) fn begin_update(&mut self, id: &Id, location: &str, work: Work) -> u64 {
        self.begin(id, location, work, self.core.knobs.timing.update, None)
    }

    /// Has an operation that goes on fail in the end.
    pub(crate) fn plan_failure(&mut self, number: u64, failure: Failure) {
        if let Some(task) = self.tasks.get_mut(&number) {
            task.planned_failure = Some(failure);
        }
    }

    /// The operation that goes on for a virtual machine fails, because another has begun.
    fn preempt(&mut self, seq: Seq) {
        let Some(task) = self.vms.get(seq).and_then(|vm| vm.task) else {
            return;
        };
        let message = "The operation has been preempted by a more recent operation.";
        self.close(task, Some(Failure::new("OperationPreempted", message)));
    }

    /// An operation has ended.
    pub(super) fn close(&mut self, number: u64, failure: Option<Failure>) {
        let now = self.now();
        let Some(task) = self.tasks.get_mut(&number) else {
            return;
        };
        task.ended = Some(now);
        task.failure = failure;
        if let Some(seq) = task.work.vm() {
            self.edit_vm(seq, |vm| vm.task = vm.task.filter(|task| *task != number));
        }
        let retention = self.core.knobs.timing.operation_retention;
        self.core.schedule.after(retention, Event::Expire(number));
    }

    /// An operation is not remembered any more.
    pub(super) fn expire(&mut self, number: u64) {
        if let Some(task) = self.tasks.remove(&number) {
            self.task_ids.remove(&task.id);
        }
    }

    /// An operation by its name.
    pub(crate) fn task(&self, name: &str) -> Option<&Task> {
        let name = name.to_ascii_lowercase();
        self.tasks.get(self.task_ids.get(&name)?)
    }
}
