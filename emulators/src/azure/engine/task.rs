//! Long-running operations: how one begins, is preempted, and expires.
//!
//! A call that begins an operation returns a URL; the client polls it until the operation ended. A
//! virtual machine has at most one operation in progress: a new one preempts the old one, which
//! then fails with `OperationPreempted`. An ended operation can be polled for
//! [`operation_retention`](crate::azure::Timing), one day by default.

use std::time::Duration;

use super::{Engine, Event};
use crate::{
    azure::wire::id::{Id, Kind},
    cloud::{fault::Failure, index::Seq},
};

/// What an operation does when it ends. Each variant has the sequence number of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Boots a new virtual machine, or fails its creation.
    CreateVm(Seq),
    /// Ends an update of a virtual machine, or an operation that had nothing to do.
    UpdateVm(Seq),
    /// Removes a virtual machine.
    DeleteVm(Seq),
    /// Boots a virtual machine.
    Start(Seq),
    /// Stops a virtual machine, which stays allocated.
    PowerOff(Seq),
    /// Boots a running virtual machine again.
    Restart(Seq),
    /// Stops a virtual machine and releases its machine.
    Deallocate(Seq),
    /// Creates or changes a disk, image, interface or public address.
    Put(Kind, Seq),
    /// Deletes a disk, image, interface or public address.
    Remove(Kind, Seq),
    /// Nothing: a document was written or deleted at the call.
    Document {
        /// Whether it was deleted.
        removes: bool,
    },
}

impl Work {
    /// Returns the virtual machine of the operation, or `None` for another kind of resource.
    pub(crate) const fn vm(self) -> Option<Seq> {
        match self {
            Self::CreateVm(seq)
            | Self::UpdateVm(seq)
            | Self::DeleteVm(seq)
            | Self::Start(seq)
            | Self::PowerOff(seq)
            | Self::Restart(seq)
            | Self::Deallocate(seq) => Some(seq),
            Self::Put(..) | Self::Remove(..) | Self::Document { .. } => None,
        }
    }

    /// Whether the operation deletes its resource. Its result is then 204 and not 200.
    pub(crate) const fn removes(self) -> bool {
        matches!(
            self,
            Self::DeleteVm(_) | Self::Remove(..) | Self::Document { removes: true }
        )
    }
}

/// A long-running operation.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The GUID, which is the name in its URL.
    pub(crate) id: String,
    /// The resource provider in its URL.
    pub(crate) provider: &'static str,
    /// The subscription in its URL.
    pub(crate) subscription: String,
    /// The location in its URL.
    pub(crate) location: String,
    /// What happens at its end.
    pub(crate) work: Work,
    /// When it began.
    pub(crate) started: Duration,
    /// When it ended; `None` while it is in progress.
    pub(crate) ended: Option<Duration>,
    /// Why it failed. Only set after its end.
    pub(crate) failure: Option<Failure>,
    /// The failure that capacity, a knob or a fault planned when it began.
    pub(crate) planned_failure: Option<Failure>,
}

impl Engine {
    /// Begins an operation that ends after `duration`, and returns its number.
    ///
    /// Preempts the operation in progress on the same virtual machine. With `planned_failure` the
    /// operation fails at its end.
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

    /// Begins an operation with the duration [`update`](crate::azure::Timing), zero by default.
    pub(crate) fn begin_update(&mut self, id: &Id, location: &str, work: Work) -> u64 {
        self.begin(id, location, work, self.core.knobs.timing.update, None)
    }

    /// Makes an operation in progress fail at its end. Fault injection uses it.
    pub(crate) fn plan_failure(&mut self, number: u64, failure: Failure) {
        if let Some(task) = self.tasks.get_mut(&number) {
            task.planned_failure = Some(failure);
        }
    }

    /// Ends the operation in progress on a virtual machine with the failure `OperationPreempted`.
    fn preempt(&mut self, seq: Seq) {
        let Some(task) = self.vms.get(seq).and_then(|vm| vm.task) else {
            return;
        };
        let message = "The operation has been preempted by a more recent operation.";
        self.close(task, Some(Failure::new("OperationPreempted", message)));
    }

    /// Marks an operation as ended, and schedules its expiry.
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

    /// Removes an operation. Polling it returns 404 from now on.
    pub(super) fn expire(&mut self, number: u64) {
        if let Some(task) = self.tasks.remove(&number) {
            self.task_ids.remove(&task.id);
        }
    }

    /// Returns an operation by its GUID, in any case.
    pub(crate) fn task(&self, name: &str) -> Option<&Task> {
        let name = name.to_ascii_lowercase();
        self.tasks.get(self.task_ids.get(&name)?)
    }
}
