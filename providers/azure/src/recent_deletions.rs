//! Why machines ended that this handle has deleted: Azure forgets it with them, and shows them for a while as they
//! were.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How many ends are remembered.
const REMEMBERED: usize = 1000;

/// Why machines ended that this handle has deleted, by Azure's id. Azure itself forgets it with the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentDeletions {
    noted: Arc<Mutex<Noted>>,
}

#[derive(Debug, Default)]
struct Noted {
    reasons: HashMap<String, (Option<String>, Instant)>,
    /// The same, the oldest first.
    in_order: VecDeque<String>,
}

impl RecentDeletions {
    /// Notes that a machine was deleted just now, and why if nobody asked for it. What reads may still show as it
    /// was, for a `window`, is never forgotten.
    pub(crate) fn note(&self, vm_id: &str, reason: Option<String>, window: Duration) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let known = noted.reasons.remove(vm_id);
        if known.is_none() {
            noted.in_order.push_back(vm_id.to_owned());
        }
        // That somebody deletes what is left of it is no reason of its end.
        let reason = reason.or_else(|| known.and_then(|(reason, _)| reason));
        let noting = (reason, Instant::now());
        noted.reasons.insert(vm_id.to_owned(), noting);
        while noted.in_order.len() > REMEMBERED {
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

    /// Takes a note back: the machine lives.
    pub(crate) fn forget(&self, vm_id: &str) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.reasons.remove(vm_id);
        noted.in_order.retain(|one| one != vm_id);
    }

    pub(crate) fn reason(&self, vm_id: &str) -> Option<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let (reason, _) = noted.reasons.get(vm_id)?;
        reason.clone()
    }

    /// Whether a machine was deleted so lately that a read may show it as it was.
    pub(crate) fn is_fresh(&self, vm_id: &str, window: Duration) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let noting = noted.reasons.get(vm_id);
        noting.is_some_and(|(_, since)| since.elapsed() < window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_remembered_and_the_oldest_forgotten() {
        let deletions = RecentDeletions::default();
        for number in 0..=REMEMBERED {
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
            (REMEMBERED, REMEMBERED)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_end_is_forgotten_that_a_read_may_not_show_yet() {
        let (deletions, window) = (RecentDeletions::default(), Duration::from_secs(20));
        let all = REMEMBERED * 3;
        for number in 0..all {
            deletions.note(&number.to_string(), None, window);
        }
        assert!((0..all).all(|number| deletions.is_fresh(&number.to_string(), window)));
        tokio::time::sleep(window).await;
        deletions.note("one more", None, window);
        assert_eq!(deletions.noted.lock().unwrap().in_order.len(), REMEMBERED);
        deletions.forget("one more");
        assert!(!deletions.is_fresh("one more", window));
        let noted = deletions.noted.lock().unwrap();
        assert_eq!(noted.reasons.len(), noted.in_order.len());
    }
}
