//! What one handle launched lately.
//!
//! Owns the memory by which a handle waits out the consistency window instead of answering "not
//! found" about its own launch. It belongs to the process, not to the cloud: its time is tokio's, and
//! a reopened handle has none of it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright::{InstanceId, InstanceInfo};
use tokio::time::Instant;

/// The launches of the last consistency window.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    by_id: HashMap<InstanceId, Instant>,
    /// The same, the oldest first.
    in_order: VecDeque<(Instant, InstanceId)>,
}

impl Launches {
    /// Notes what was launched just now, and drops what was launched longer than `window` ago.
    pub(crate) fn note(&self, infos: &[InstanceInfo], window: Duration) {
        if window.is_zero() {
            return;
        }
        let (mut noted, now) = (self.noted(), Instant::now());
        noted.drop_older(window);
        for info in infos {
            noted.in_order.push_back((now, info.id.clone()));
            noted.by_id.insert(info.id.clone(), now);
        }
    }

    /// Whether an instance was launched so lately that a read made from now on may not show it yet.
    pub(crate) fn within(&self, id: &InstanceId, window: Duration) -> bool {
        let at = self.noted().by_id.get(id).copied();
        at.is_some_and(|at| at.elapsed() < window)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    fn drop_older(&mut self, window: Duration) {
        while let Some((at, id)) = self.in_order.front() {
            if at.elapsed() < window {
                return;
            }
            // A replay may have noted it again since.
            if self.by_id.get(id) == Some(at) {
                self.by_id.remove(id);
            }
            self.in_order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::CloudInstanceState;

    const WINDOW: Duration = Duration::from_secs(10);

    fn info(name: &str) -> InstanceInfo {
        InstanceInfo::new(InstanceId::new(name).unwrap(), CloudInstanceState::Pending)
    }

    #[tokio::test(start_paused = true)]
    async fn a_launch_is_young_for_the_window_and_then_dropped() {
        let (launches, one, two) = (Launches::default(), info("i-1"), info("i-2"));
        launches.note(std::slice::from_ref(&one), WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        assert!(!launches.within(&two.id, WINDOW));
        tokio::time::sleep(WINDOW - Duration::from_millis(1)).await;
        launches.note(std::slice::from_ref(&two), WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        assert_eq!(launches.noted().by_id.len(), 2);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!launches.within(&one.id, WINDOW));
        launches.note(&[], WINDOW);
        let noted = launches.noted();
        assert_eq!((noted.by_id.len(), noted.in_order.len()), (1, 1));
        assert!(noted.by_id.contains_key(&two.id));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_launched_again_is_young_again() {
        let (launches, one) = (Launches::default(), info("i-1"));
        launches.note(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.note(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.note(&[], WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        tokio::time::sleep(WINDOW / 2).await;
        launches.note(&[], WINDOW);
        let noted = launches.noted();
        assert_eq!((noted.by_id.len(), noted.in_order.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_window_nothing_is_noted() {
        let (launches, one) = (Launches::default(), info("i-1"));
        launches.note(std::slice::from_ref(&one), Duration::ZERO);
        assert_eq!(launches.noted().in_order.len(), 0);
    }
}
