//! The background cleanup: deletes the remains of creations that fail after their launch has
//! returned.
//!
//! Owns the one background task of a provisioner: which creations it tracks, when it runs and when
//! it ends. It deletes only machines whose creation this provisioner sent and saw fail;
//! [`crate::removal`] decides when that is proven. It must never outlive the provisioner or run
//! when it is switched off.
//!
//! Life of the task: the first accepted creation starts it, in the runtime of that launch. It ends
//! when nothing is tracked, when the cleanup is stopped, or with the runtime. A later creation
//! starts another one. All state is in one `watch` channel, so that `shutdown` and `wait_idle` can
//! wait for changes.
//!
//! Log output: the span `azure_cleanup` with the resource group, in it `pass` for each list of
//! states and `remove` for each failed machine. A deleted machine is logged at `INFO`, a refused
//! deletion at `WARN`.

use std::{collections::HashMap, fmt, pin::pin, sync::Arc, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::Instrument as _;

use crate::{
    convert,
    list::Statuses,
    lookup::ABSENT_READS,
    lro::Outcome,
    machine::Machine,
    recent_deletions::{EndReason, RecentDeletions},
    removal::{Removal, Remover, creation_outcome, status_of},
};

/// How long a creation is tracked after it was sent. Azure gives up sooner.
const TRACKED_FOR: Duration = Duration::from_secs(2 * 60 * 60);

/// Poll intervals between two passes. No caller waits for the cleanup, so it can be slow.
const INTERVALS_PER_PASS: u32 = 5;

/// Controls the background cleanup of one [`AzureProvisioner`](crate::AzureProvisioner).
///
/// A creation can fail after its launch has returned, or after the caller has dropped the launch.
/// The failed machine then keeps its name, disk, network interface and address. The cleanup is a
/// task that starts with the first creation, reads one list of states per pass (every five poll
/// intervals, 25 seconds by default) for all tracked creations, deletes the failed ones and ends when
/// none is left to track.
///
/// The provisioner owns the task: dropping the provisioner stops it, as does
/// [`shutdown`](Self::shutdown).
/// [`AzureOptions::background_cleanup`](crate::AzureOptions::background_cleanup) switches it off.
/// Without it, a failed machine is listed as terminating, and `terminate_instance` or a replay of
/// its launch token deletes it.
///
/// Get the handle before the provisioner moves behind a trait object; clones control the same task.
///
/// ```
/// # async fn example(azure: fleetwright_azure::AzureProvisioner) {
/// use std::sync::Arc;
/// use fleetwright_azure::fleetwright::InstanceProvisioner;
///
/// let cleanup = azure.cleanup();
/// let backend: Arc<dyn InstanceProvisioner> = Arc::new(azure);
/// // ... launch instances with `backend` ...
/// cleanup.wait_idle().await; // all creations have succeeded, or their remains are being deleted
/// let abandoned = cleanup.shutdown().await;
/// assert_eq!(abandoned, 0);
/// # drop(backend);
/// # }
/// ```
#[derive(Clone)]
pub struct AzureCleanup {
    state: Arc<watch::Sender<State>>,
}

/// What the handle, the owner and the task share.
#[derive(Debug, Default)]
struct State {
    /// Creations without a known outcome, and failed ones that still have to be deleted, by VM id.
    tracked: HashMap<String, Tracked>,
    /// Whether the task exists.
    running: bool,
    /// Set once, by `shutdown`, by the owner's drop, or from the start where cleanup is
    /// switched off.
    stopped: bool,
    /// The time before which Azure wants no request.
    retry_not_before: Option<Instant>,
}

/// A tracked creation.
#[derive(Debug)]
struct Tracked {
    machine: Machine,
    since: Instant,
    /// How many passes in a row did not find the machine.
    missed: u32,
}

impl AzureCleanup {
    /// Waits until nothing is tracked: each creation has succeeded, its failed machine is being
    /// deleted, or it is older than two hours. Returns at once if the cleanup is switched off
    /// or was shut down.
    ///
    /// A launch that is sent meanwhile is waited for too.
    pub async fn wait_idle(&self) {
        self.wait_for(|state| state.tracked.is_empty() || !state.running)
            .await;
    }

    /// Stops the cleanup permanently and waits until its task has ended. Returns how many creations
    /// were still tracked.
    ///
    /// A deletion that is in progress is abandoned, as if the process had ended. Call
    /// [`wait_idle`](Self::wait_idle) first to let it finish. Later launches are not tracked.
    pub async fn shutdown(&self) -> usize {
        let abandoned = self.stop();
        self.wait_for(|state| !state.running).await;
        abandoned
    }

    /// Whether the task is running. It runs only while there are creations to track.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state.borrow().running
    }

    /// How many creations are tracked now.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.state.borrow().tracked.len()
    }

    /// Waits until the state meets a condition.
    async fn wait_for(&self, condition: impl FnMut(&State) -> bool) {
        // The error case needs a dropped sender, and this handle holds it.
        let _ = self.state.subscribe().wait_for(condition).await;
    }

    /// Stops the cleanup without waiting. Returns how many creations were tracked.
    fn stop(&self) -> usize {
        let mut abandoned = 0;
        self.state.send_modify(|state| {
            state.stopped = true;
            abandoned = std::mem::take(&mut state.tracked).len();
        });
        abandoned
    }

    /// Tracks a creation. Returns whether the caller must start the task.
    fn track(&self, machine: Machine) -> bool {
        let since = Instant::now();
        let mut must_start = false;
        self.state.send_modify(|state| {
            if state.stopped {
                return;
            }
            let vm_id = machine.vm_id.clone();
            let tracked = Tracked {
                machine,
                since,
                missed: 0,
            };
            state.tracked.insert(vm_id, tracked);
            must_start = !std::mem::replace(&mut state.running, true);
        });
        must_start
    }

    /// Stops tracking a creation.
    fn untrack(&self, vm_id: &str) {
        self.state
            .send_if_modified(|state| state.tracked.remove(vm_id).is_some());
    }

    /// Delays the next pass by at least `retry_after`.
    fn pause(&self, retry_after: Duration) {
        let until = Instant::now().checked_add(retry_after);
        self.state
            .send_modify(|state| state.retry_not_before = state.retry_not_before.max(until));
    }

    /// The earliest time of the next request.
    fn retry_not_before(&self) -> Instant {
        let retry_not_before = self.state.borrow().retry_not_before;
        retry_not_before.unwrap_or_else(Instant::now)
    }

    /// Drops creations that are too old. If none is left, the task counts as ended from here on, so
    /// that the next `track` starts another one.
    fn continue_running(&self) -> bool {
        let mut running = false;
        self.state.send_modify(|state| {
            let tracked = &mut state.tracked;
            tracked.retain(|_, tracked| tracked.since.elapsed() < TRACKED_FOR);
            state.running = !tracked.is_empty();
            running = state.running;
        });
        running
    }

    /// Returns the machines of all tracked creations.
    fn machines(&self) -> Vec<Machine> {
        let state = self.state.borrow();
        let tracked = state.tracked.values();
        tracked.map(|tracked| tracked.machine.clone()).collect()
    }

    /// Returns the creations that have failed, and untracks those that have succeeded or that several
    /// passes, after two consistency windows, did not find. Failed ones stay tracked until their
    /// machine is being deleted.
    fn failed_creations(&self, statuses: &Statuses, window: Duration) -> Vec<FailedCreation> {
        let mut failed = Vec::new();
        self.state.send_modify(|state| {
            state.tracked.retain(|_, tracked| {
                let Some(status) = status_of(&tracked.machine, statuses) else {
                    tracked.missed += 1;
                    let young = tracked.since.elapsed() <= window.saturating_mul(2);
                    return young || tracked.missed < ABSENT_READS;
                };
                tracked.missed = 0;
                match creation_outcome(status) {
                    Outcome::Unknown => true,
                    Outcome::Succeeded => false,
                    Outcome::Failed(failure) => {
                        failed.push(FailedCreation {
                            machine: tracked.machine.clone(),
                            reason: convert::end_reason(&tracked.machine, &failure),
                        });
                        true
                    }
                }
            });
        });
        failed
    }
}

impl fmt::Debug for AzureCleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureCleanup")
            .field("tracked", &self.tracked())
            .field("running", &self.is_running())
            .finish()
    }
}

/// A tracked creation that has failed, with the state reason of its instance.
#[derive(Debug)]
struct FailedCreation {
    machine: Machine,
    reason: EndReason,
}

/// The provisioner's end of the cleanup: tracks creations, starts the task, and stops it when
/// dropped.
pub(crate) struct CleanupOwner {
    handle: AzureCleanup,
    remover: Remover,
    deletions: RecentDeletions,
    /// Deletions that are sent at the same time.
    concurrency: usize,
}

impl CleanupOwner {
    /// Starts nothing yet: the task starts with the first creation, inside the launching runtime.
    pub(crate) fn new(
        enabled: bool,
        remover: Remover,
        deletions: RecentDeletions,
        concurrency: usize,
    ) -> Self {
        let state = State {
            stopped: !enabled,
            ..State::default()
        };
        Self {
            handle: AzureCleanup {
                state: Arc::new(watch::Sender::new(state)),
            },
            remover,
            deletions,
            concurrency,
        }
    }

    /// Returns a handle for callers.
    pub(crate) fn handle(&self) -> AzureCleanup {
        self.handle.clone()
    }

    /// Returns the remover, which launches use as well.
    pub(crate) fn remover(&self) -> &Remover {
        &self.remover
    }

    /// Tracks a creation that Azure has accepted, unless the cleanup is stopped or switched
    /// off.
    pub(crate) fn track(&self, machine: Machine) {
        if !self.handle.track(machine) {
            return;
        }
        let task = Task {
            ended: EndedOnDrop {
                handle: self.handle.clone(),
                armed: true,
            },
            remover: self.remover.clone(),
            deletions: self.deletions.clone(),
            concurrency: self.concurrency,
        };
        let span = tracing::info_span!(
            parent: None,
            "azure_cleanup",
            resource_group = self.remover.group()
        );
        tokio::spawn(task.run().instrument(span));
    }

    /// Stops tracking a creation whose outcome is known.
    pub(crate) fn untrack(&self, machine: &Machine) {
        self.handle.untrack(&machine.vm_id);
    }

    /// Delays the next pass, as a response of Azure requests.
    pub(crate) fn pause(&self, retry_after: Duration) {
        self.handle.pause(retry_after);
    }
}

impl Drop for CleanupOwner {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

/// Marks the task as ended, also if its runtime drops it or it panics.
struct EndedOnDrop {
    handle: AzureCleanup,
    /// Whether dropping this guard marks the task as ended. Unset once the state says so already,
    /// because another task may have started since.
    armed: bool,
}

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.handle.state.send_modify(|state| state.running = false);
        }
    }
}

/// The background task.
struct Task {
    ended: EndedOnDrop,
    remover: Remover,
    deletions: RecentDeletions,
    concurrency: usize,
}

impl Task {
    /// Runs passes until nothing is tracked or the cleanup is stopped.
    async fn run(mut self) {
        let handle = self.ended.handle.clone();
        let idle = {
            let stopped = pin!(handle.wait_for(|state| state.stopped));
            let passes = pin!(self.run_passes());
            matches!(select(stopped, passes).await, Either::Right(_))
        };
        self.ended.armed = !idle;
        tracing::debug!(idle, tracked = handle.tracked(), "cleanup ended");
    }

    /// Runs a pass every few intervals, and returns when nothing is tracked.
    async fn run_passes(&self) {
        let handle = &self.ended.handle;
        loop {
            sleep(self.remover.interval().saturating_mul(INTERVALS_PER_PASS)).await;
            sleep_until(handle.retry_not_before()).await;
            if !handle.continue_running() {
                return;
            }
            let span = tracing::debug_span!("pass", tracked = handle.tracked());
            self.run_pass().instrument(span).await;
        }
    }

    /// Reads the states once, and deletes the machines of all creations that have failed.
    async fn run_pass(&self) {
        let handle = &self.ended.handle;
        let machines = handle.machines();
        let statuses = self.remover.statuses_of(&machines, self.concurrency);
        let statuses = match statuses.await {
            Ok(statuses) => statuses,
            // An earlier request would be throttled too, and would count.
            Err(failure) => {
                tracing::debug!(code = failure.code, "states could not be read");
                handle.pause(failure.retry_after.unwrap_or_default());
                return;
            }
        };
        let failed = handle.failed_creations(&statuses, self.remover.window());
        let window = self.remover.window();
        let removals = failed.into_iter().map(|failed| async move {
            // Noted first: a concurrent read or launch must know that the machine was never created.
            let reason = Some(failed.reason.clone());
            self.deletions.note(&failed.machine.vm_id, reason, window);
            let span = tracing::info_span!("remove", machine = failed.machine.name);
            let removal = self.remover.remove_when_proven(&failed.machine);
            (removal.instrument(span).await, failed)
        });
        let mut removals = stream::iter(removals).buffer_unordered(self.concurrency);
        while let Some((removal, failed)) = removals.next().await {
            let FailedCreation { machine, reason } = failed;
            match removal {
                Removal::Gone | Removal::Deleting => {
                    tracing::info!(
                        machine = machine.name,
                        reason = reason.text,
                        "failed machine deleted"
                    );
                    self.deletions.note(&machine.vm_id, Some(reason), window);
                    handle.untrack(&machine.vm_id);
                }
                Removal::Running => {
                    self.deletions.forget(&machine.vm_id);
                    handle.untrack(&machine.vm_id);
                }
                // Stays tracked, so the next pass tries again.
                Removal::Unfinished { retry_after } => {
                    tracing::warn!(
                        machine = machine.name,
                        reason = reason.text,
                        "failed machine not deleted"
                    );
                    self.deletions.forget(&machine.vm_id);
                    handle.pause(retry_after);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
