//! Deleting the remains of creations that failed.
//!
//! Owns the proof that a machine may be deleted although no caller terminated it: its creation
//! failed, and it never had power. The proof is Azure's failure (no capacity, address or quota) or
//! a whole consistency window of reads that say so. A read must never delete anything.
//!
//! A failed machine looks like a running one whose power state is missing for a moment, so one read
//! is not enough, unless the failure itself proves that nothing was created. After a deletion was
//! accepted it is not sent again within a window: a stale read could show the machine, while
//! another one has its name.
//!
//! Related traps in the README: 3 (missing instance view), 5 (a running machine is Failed), 6
//! (failed creations hold names), 11 (reserved interfaces).

use std::time::Duration;

use fleetwright::{Call, Result};
use fleetwright_provider_support::poll::{deadline_after, poll_delays, sleep_before};
use fleetwright_provider_support::read_until;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    AzureProvisioner,
    address::lowercase,
    client::AzureClient,
    convert,
    error::{AzureFailure as _, Cause, ErrorContext, Failure},
    list::Statuses,
    lookup::ABSENT_READS,
    lro::Outcome,
    machine::Machine,
    read::is_deleting,
    reason::operation_status,
    recent_deletions::EndReason,
    state,
};

/// What became of the machine of a failed creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It does not exist, or its name belongs to another machine.
    Gone,
    /// Azure has accepted its deletion.
    Deleting,
    /// It has power: only its guest did not report in time. It is an instance and stays.
    Running,
    /// It could not be read or deleted before the deadline, and may still exist. Azure requested
    /// a delay of `retry_after` before the next call.
    Unfinished { retry_after: Duration },
}

/// What one read says about the machine of a failed creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observation {
    /// Not found, or another machine has its name. Proves nothing within a window of a change.
    Absent,
    Deleting,
    Running,
    /// Its creation failed, and it has no power.
    NeverCreated,
    /// Neither: a stale read, or one without an instance view.
    Unclear,
    /// The read failed.
    Unread {
        retry_after: Duration,
    },
}

/// Returns the entry for a machine in a list of states. The entry may have no VM id.
pub(crate) fn status_of<'s>(machine: &Machine, statuses: &'s Statuses) -> Option<&'s Machine> {
    let status = statuses.get(&lowercase(&machine.path));
    status.filter(|status| status.vm_id.is_empty() || status.vm_id == machine.vm_id)
}

/// Reads the outcome of a creation from the states of its machine.
pub(crate) fn creation_outcome(machine: &Machine) -> Outcome {
    match (state::failure(machine), state::power(machine)) {
        (_, Some(_)) => Outcome::Succeeded,
        (Some((code, message)), None) => {
            let failure = Failure::new(Cause::OperationFailed(operation_status(code)), message);
            Outcome::Failed(Box::new(failure.with_code(code)))
        }
        (None, None) => Outcome::Unknown,
    }
}

impl AzureProvisioner {
    /// Deletes the remains of a creation that failed while its launch waited, until `deadline`.
    pub(crate) async fn remove_failed(
        &self,
        machine: &Machine,
        failure: &Failure,
        deadline: Instant,
    ) -> Removal {
        let remover = self.cleanup.remover();
        let proof = if failure.is_before_creation() {
            Duration::ZERO
        } else {
            remover.window
        };
        let removal = remover.remove(machine, proof, deadline).await;
        match removal {
            Removal::Gone | Removal::Deleting => {
                let reason = convert::end_reason(machine, failure);
                self.note_deletion(&machine.vm_id, Some(reason));
                self.cleanup.untrack(machine);
            }
            Removal::Running => self.cleanup.untrack(machine),
            // Stays tracked, so the background cleanup tries again.
            Removal::Unfinished { retry_after } => self.cleanup.pause(retry_after),
        }
        removal
    }

    /// Records that this handle deleted a machine just now. `reason` is the failure of its
    /// creation; `None` means that a caller terminated it.
    pub(crate) fn note_deletion(&self, vm_id: &str, reason: Option<EndReason>) {
        let window = self.capabilities.consistency_window;
        self.deletions.note(vm_id, reason, window);
    }

    /// Waits until a machine that is being deleted is gone. Returns `false` if it is still there after the
    /// timeout of one call.
    pub(crate) async fn await_gone(&self, machine: &Machine) -> bool {
        let remover = self.cleanup.remover();
        let deadline = deadline_after(remover.timeout);
        remover.wait_until_gone(machine, deadline).await && Instant::now() < deadline
    }

    /// Deletes a machine that was never created, as [`reread`](Self::reread) has proven, and waits
    /// until its name is free or the timeout of one call has passed.
    pub(crate) async fn free_name(&self, machine: &Machine) {
        let failure = convert::latest_failure(machine).unwrap_or_default();
        // Noted first: a concurrent call, or one after this future was dropped, must know that the
        // machine was never created.
        let reason = convert::end_reason(machine, &failure);
        self.note_deletion(&machine.vm_id, Some(reason));
        let remover = self.cleanup.remover();
        let deadline = deadline_after(remover.timeout);
        loop {
            match remover.remove(machine, Duration::ZERO, deadline).await {
                Removal::Running => return self.deletions.forget(&machine.vm_id),
                Removal::Gone | Removal::Unfinished { .. } => return,
                Removal::Deleting => {}
            }
            if remover.wait_until_gone(machine, deadline).await {
                return;
            }
        }
    }

    /// Reads a machine that seems never to have been created until a read says otherwise or a
    /// consistency window has passed. It was never created if the last read still says so.
    pub(crate) async fn reread(&self, call: &Call, machine: &Machine) -> Result<Option<Machine>> {
        let name = &machine.name;
        let read = || -> BoxFuture<'_, Result<Option<Machine>>> {
            Box::pin(async {
                match self.client.get(name).await {
                    Ok(current) => Ok(Some(current)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) => Err(failure.into_error(call, ErrorContext::default())),
                }
            })
        };
        let created = |read: &Option<Machine>| !read.as_ref().is_some_and(state::never_created);
        read_until(&self.capabilities, read, created).await
    }
}

/// Deletes machines whose creation failed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remover {
    /// The native calls.
    client: AzureClient,
    /// The longest delay between two reads.
    interval: Duration,
    /// The timeout of one removal.
    timeout: Duration,
    /// How long reads may be stale.
    window: Duration,
}

impl Remover {
    /// Creates a remover. Sends nothing.
    pub(crate) fn new(
        client: AzureClient,
        interval: Duration,
        timeout: Duration,
        window: Duration,
    ) -> Self {
        Self {
            client,
            interval,
            timeout,
            window,
        }
    }

    /// The resource group, for log output.
    pub(crate) fn group(&self) -> &str {
        self.client.group()
    }

    /// The longest delay between two reads.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// How long reads may be stale.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Reads the states of machines of the group: with one list, and one by one those that it does not
    /// show.
    pub(crate) async fn statuses_of(
        &self,
        machines: &[Machine],
        concurrency: usize,
    ) -> std::result::Result<Statuses, Failure> {
        let names = |machines: &[&Machine]| -> Vec<_> {
            machines
                .iter()
                .map(|machine| machine.name.clone())
                .collect()
        };
        let all: Vec<_> = machines.iter().collect();
        let mut statuses = self.client.statuses_of(&names(&all), concurrency).await?;
        let unseen = all.into_iter();
        let unseen: Vec<_> = unseen
            .filter(|machine| status_of(machine, &statuses).is_none())
            .collect();
        let read = self.client.get_all(&names(&unseen), concurrency).await?;
        statuses.extend(read);
        Ok(statuses)
    }

    /// Deletes a machine after a whole window of reads without power, within the timeout of one
    /// call.
    pub(crate) async fn remove_when_proven(&self, machine: &Machine) -> Removal {
        let deadline = deadline_after(self.timeout);
        self.remove(machine, self.window, deadline).await
    }

    /// Deletes a machine once reads have said for `proof` that it was never created. Retries calls
    /// that fail. Returns as soon as Azure has accepted the deletion.
    ///
    /// Two rules keep other machines safe: a machine with another VM id counts as absent, and
    /// absence is believed only after several reads in a row, over a window. A machine with power is
    /// never deleted.
    async fn remove(&self, machine: &Machine, proof: Duration, deadline: Instant) -> Removal {
        let mut never_created_since = None;
        let (mut absent_since, mut absent_reads) = (None, 0);
        for delay in poll_delays(self.interval) {
            let mut wait = Duration::ZERO;
            let observation = self.observe(machine).await;
            if observation != Observation::Absent {
                (absent_since, absent_reads) = (None, 0);
            }
            match observation {
                Observation::Absent => {
                    let since: Instant = *absent_since.get_or_insert_with(Instant::now);
                    absent_reads += 1;
                    if absent_reads >= ABSENT_READS && since.elapsed() >= self.window {
                        return Removal::Gone;
                    }
                }
                Observation::Deleting => return Removal::Deleting,
                Observation::Running => return Removal::Running,
                Observation::NeverCreated => {
                    let since = *never_created_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= proof {
                        match self.client.delete(&machine.name).await {
                            Ok(Some(_)) => return Removal::Deleting,
                            Ok(None) => {}
                            Err(failure) => wait = failure.retry_after.unwrap_or_default(),
                        }
                    }
                }
                Observation::Unclear => never_created_since = None,
                Observation::Unread { retry_after } => wait = retry_after,
            }
            if !sleep_before(deadline, delay, wait).await {
                return Removal::Unfinished { retry_after: wait };
            }
        }
        Removal::Unfinished {
            retry_after: Duration::ZERO,
        }
    }

    /// Waits until a machine whose deletion was accepted is gone, or until the deadline. Returns
    /// `false` if it is still there after a window, so that it has to be deleted again. An earlier
    /// deletion could hit another machine that has the name by now.
    async fn wait_until_gone(&self, machine: &Machine, deadline: Instant) -> bool {
        let started = Instant::now();
        for delay in poll_delays(self.interval) {
            let certain = started.elapsed() >= self.window;
            let mut wait = Duration::ZERO;
            match self.observe(machine).await {
                Observation::Absent if certain => return true,
                Observation::NeverCreated if certain => return false,
                Observation::Running => return false,
                Observation::Absent
                | Observation::NeverCreated
                | Observation::Deleting
                | Observation::Unclear => {}
                Observation::Unread { retry_after } => wait = retry_after,
            }
            if !sleep_before(deadline, delay, wait).await {
                return true;
            }
        }
        true
    }

    /// Reads the machine once.
    async fn observe(&self, machine: &Machine) -> Observation {
        match self.client.get(&machine.name).await {
            Ok(current) if current.vm_id != machine.vm_id => Observation::Absent,
            Ok(current) if is_deleting(&current) => Observation::Deleting,
            Ok(current) if state::power(&current).is_some() => Observation::Running,
            Ok(current) if state::never_created(&current) => Observation::NeverCreated,
            Ok(_) => Observation::Unclear,
            Err(failure) if failure.is_not_found() => Observation::Absent,
            Err(failure) => Observation::Unread {
                retry_after: failure.retry_after.unwrap_or_default(),
            },
        }
    }
}
