//! Machines that this handle has deleted, or has found to be terminated.
//!
//! Owns the reasons of their end, which Azure forgets with the machine, and the knowledge that a
//! read that still shows one of them is stale. Bounded in size, except for entries of the
//! consistency window.
//!
//! Another handle or process does not know these deletions. It reads the machine as it is, and
//! reports `gone: no record kept` after its end.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright::LaunchFailure;
use tokio::time::Instant;

/// How many machines are remembered at least.
const MAX_REMEMBERED: usize = 10_000;

/// Recent deletions by VM id. Clones share their content.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentDeletions {
    noted: Arc<Mutex<Notes>>,
}

/// The content.
#[derive(Debug, Default)]
struct Notes {
    /// The notes by VM id.
    machines: HashMap<String, Note>,
    /// The keys of `machines`, the oldest first.
    in_order: VecDeque<String>,
}

/// What is known of one machine.
#[derive(Debug, Default)]
struct Note {
    /// The failure of its creation.
    reason: Option<EndReason>,
    /// When Azure accepted the deletion that this handle sent.
    deleted: Option<Instant>,
    /// When this handle last found that it does not exist any more.
    ended: Option<Instant>,
}

impl Note {
    /// Whether something was noted less than `window` ago.
    fn is_recent(&self, window: Duration) -> bool {
        is_within(self.deleted, window) || is_within(self.ended, window)
    }
}

/// Whether `since` is less than `window` ago.
fn is_within(since: Option<Instant>, window: Duration) -> bool {
    since.is_some_and(|since| since.elapsed() < window)
}

/// Why the creation of a deleted machine failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndReason {
    /// The state reason of its instance.
    pub(crate) text: String,
    /// The same in the terms of an error.
    pub(crate) failure: LaunchFailure,
}

impl RecentDeletions {
    /// Records that a machine was deleted just now. `reason` is the failure of its creation; `None`
    /// means that a caller terminated it. An entry is never dropped within `window`, because reads
    /// may still show the machine.
    pub(crate) fn note(&self, vm_id: &str, reason: Option<EndReason>, window: Duration) {
        self.change(vm_id, window, |note| {
            // A later terminate does not replace the failure of the creation as the reason.
            note.reason = reason.or(note.reason.take());
            note.deleted = Some(Instant::now());
        });
    }

    /// Records that a machine does not exist any more.
    pub(crate) fn note_end(&self, vm_id: &str, window: Duration) {
        self.change(vm_id, window, |note| note.ended = Some(Instant::now()));
    }

    /// Removes an entry: the machine was not deleted.
    pub(crate) fn forget(&self, vm_id: &str) {
        let mut noted = self.lock();
        noted.machines.remove(vm_id);
        noted.in_order.retain(|one| one != vm_id);
    }

    /// Returns why a machine ended, if its creation failed.
    pub(crate) fn reason(&self, vm_id: &str) -> Option<EndReason> {
        self.lock().machines.get(vm_id)?.reason.clone()
    }

    /// Whether a machine was deleted less than `window` ago, so that a read that shows it is stale.
    pub(crate) fn is_recent(&self, vm_id: &str, window: Duration) -> bool {
        let noted = self.lock();
        let note = noted.machines.get(vm_id);
        note.is_some_and(|note| is_within(note.deleted, window))
    }

    /// Whether this handle has deleted a machine.
    pub(crate) fn is_deleted(&self, vm_id: &str) -> bool {
        let noted = self.lock();
        let note = noted.machines.get(vm_id);
        note.is_some_and(|note| note.deleted.is_some())
    }

    /// Whether this handle has found that a machine does not exist any more.
    pub(crate) fn is_gone(&self, vm_id: &str) -> bool {
        let noted = self.lock();
        let note = noted.machines.get(vm_id);
        note.is_some_and(|note| note.ended.is_some())
    }

    /// Whether a read that shows a machine is stale: it has ended after a deletion by this handle, or
    /// was found to have ended less than `window` ago.
    pub(crate) fn ended(&self, vm_id: &str, window: Duration) -> bool {
        let noted = self.lock();
        let note = noted.machines.get(vm_id);
        note.is_some_and(|note| match note.ended {
            None => false,
            Some(_) => note.deleted.is_some() || is_within(note.ended, window),
        })
    }

    /// Changes the entry of a machine, and drops the oldest ones if there are too many.
    fn change(&self, vm_id: &str, window: Duration, change: impl FnOnce(&mut Note)) {
        let mut noted = self.lock();
        if !noted.machines.contains_key(vm_id) {
            noted.in_order.push_back(vm_id.to_owned());
        }
        change(noted.machines.entry(vm_id.to_owned()).or_default());
        while noted.in_order.len() > MAX_REMEMBERED {
            let oldest = noted.in_order.front();
            let note = oldest.and_then(|oldest| noted.machines.get(oldest));
            if note.is_some_and(|note| note.is_recent(window)) {
                return;
            }
            if let Some(oldest) = noted.in_order.pop_front() {
                noted.machines.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::ErrorKind;

    #[test]
    fn oldest_deletions_are_forgotten_first() {
        let deletions = RecentDeletions::default();
        for number in 0..=MAX_REMEMBERED {
            deletions.note(&number.to_string(), None, Duration::ZERO);
            let text = format!("r-{number}");
            let failure = LaunchFailure::new(ErrorKind::Capacity, []);
            let reason = Some(EndReason { text, failure });
            deletions.note(&number.to_string(), reason, Duration::ZERO);
            deletions.note(&number.to_string(), None, Duration::ZERO);
        }
        assert_eq!(deletions.reason("0"), None);
        assert_eq!(deletions.reason("1").unwrap().text, "r-1");
        let noted = deletions.lock();
        assert_eq!(
            (noted.machines.len(), noted.in_order.len()),
            (MAX_REMEMBERED, MAX_REMEMBERED)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn deletions_within_the_window_are_never_forgotten() {
        let (deletions, window) = (RecentDeletions::default(), Duration::from_secs(20));
        let all = MAX_REMEMBERED * 3;
        for number in 0..all {
            deletions.note(&number.to_string(), None, window);
        }
        assert!((0..all).all(|number| deletions.is_recent(&number.to_string(), window)));
        tokio::time::sleep(window).await;
        deletions.note("one more", None, window);
        assert_eq!(deletions.lock().in_order.len(), MAX_REMEMBERED);
        deletions.forget("one more");
        assert!(!deletions.is_recent("one more", window));
        let noted = deletions.lock();
        assert_eq!(noted.machines.len(), noted.in_order.len());
    }

    #[tokio::test(start_paused = true)]
    async fn end_after_our_deletion_is_final_and_any_other_for_a_window() {
        let (deletions, window) = (RecentDeletions::default(), Duration::from_secs(20));
        deletions.note("ours", None, window);
        assert!(deletions.is_deleted("ours") && !deletions.ended("ours", window));
        for vm_id in ["ours", "theirs"] {
            deletions.note_end(vm_id, window);
            assert!(deletions.is_gone(vm_id) && deletions.ended(vm_id, window));
        }
        assert!(!deletions.is_deleted("theirs") && !deletions.is_recent("theirs", window));
        tokio::time::sleep(window).await;
        assert!(deletions.is_gone("theirs") && !deletions.ended("theirs", window));
        assert!(deletions.ended("ours", window));
    }
}
