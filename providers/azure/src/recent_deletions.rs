//! Machines that this handle has deleted recently.
//!
//! Owns the reasons of their end, which Azure forgets with the machine, and the knowledge that a
//! read that still shows one of them is stale. Bounded in size, except for entries of the
//! consistency window.
//!
//! Another handle or process does not know these deletions. It reads the machine as it is, and
//! reports `gone: no record kept` after its end.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How many deletions are remembered at least.
const MAX_REMEMBERED: usize = 1000;

/// Recent deletions by VM id. Clones share their content.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentDeletions {
    noted: Arc<Mutex<Notes>>,
}

/// The content.
#[derive(Debug, Default)]
struct Notes {
    /// Why and when each machine was deleted, by VM id.
    reasons: HashMap<String, (Option<String>, Instant)>,
    /// The keys of `reasons`, the oldest first.
    in_order: VecDeque<String>,
}

impl RecentDeletions {
    /// Records that a machine was deleted just now. `reason` is the failure of its creation; `None`
    /// means that a caller terminated it. An entry is never dropped within `window`, because reads
    /// may still show the machine.
    pub(crate) fn note(&self, vm_id: &str, reason: Option<String>, window: Duration) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let known = noted.reasons.remove(vm_id);
        if known.is_none() {
            noted.in_order.push_back(vm_id.to_owned());
        }
        // A later terminate does not replace the failure of the creation as the reason.
        let reason = reason.or_else(|| known.and_then(|(reason, _)| reason));
        let noting = (reason, Instant::now());
        noted.reasons.insert(vm_id.to_owned(), noting);
        while noted.in_order.len() > MAX_REMEMBERED {
            let oldest = noted.in_order.front();
            let noting = oldest.and_then(|oldest| noted.reasons.get(oldest));
            if noting.is_some_and(|(_, since)| since.elapsed() < window) {
                return;
            }
            if let Some(oldest) = noted.in_order.pop_front() {
                noted.reasons.remove(&oldest);
            }
        }
    }

    /// Removes an entry: the machine was not deleted.
    pub(crate) fn forget(&self, vm_id: &str) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.reasons.remove(vm_id);
        noted.in_order.retain(|one| one != vm_id);
    }

    /// Returns why a machine ended, if its creation failed.
    pub(crate) fn reason(&self, vm_id: &str) -> Option<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let (reason, _) = noted.reasons.get(vm_id)?;
        reason.clone()
    }

    /// Whether a machine was deleted less than `window` ago, so that a read that shows it is stale.
    pub(crate) fn is_recent(&self, vm_id: &str, window: Duration) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noting = noted.reasons.get(vm_id);
        noting.is_some_and(|(_, since)| since.elapsed() < window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_deletions_are_forgotten_first() {
        let deletions = RecentDeletions::default();
        for number in 0..=MAX_REMEMBERED {
            deletions.note(&number.to_string(), None, Duration::ZERO);
            let reason = Some(format!("r-{number}"));
            deletions.note(&number.to_string(), reason, Duration::ZERO);
            deletions.note(&number.to_string(), None, Duration::ZERO);
        }
        assert_eq!(deletions.reason("0"), None);
        assert_eq!(deletions.reason("1").as_deref(), Some("r-1"));
        let noted = deletions.noted.lock().unwrap();
        assert_eq!(
            (noted.reasons.len(), noted.in_order.len()),
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
        assert_eq!(
            deletions.noted.lock().unwrap().in_order.len(),
            MAX_REMEMBERED
        );
        deletions.forget("one more");
        assert!(!deletions.is_recent("one more", window));
        let noted = deletions.noted.lock().unwrap();
        assert_eq!(noted.reasons.len(), noted.in_order.len());
    }
}
