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

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::{Capabilities, ErrorKind, InstanceId, InstanceInfo, Result};

/// The launches of the last consistency window, for a backend's handle.
#[derive(Debug, Default)]
pub struct RecentLaunches {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    by_id: HashMap<InstanceId, Instant>,
    /// The same, the oldest first.
    in_order: VecDeque<(Instant, InstanceId)>,
}

impl RecentLaunches {
    /// No launch yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what was launched just now, and drops what was launched longer than `window` ago.
    pub fn record(&self, infos: &[InstanceInfo], window: Duration) {
        if window.is_zero() {
            return;
        }
        let (mut records, now) = (self.records(), Instant::now());
        records.drop_older(window);
        for info in infos {
            records.in_order.push_back((now, info.id.clone()));
            records.by_id.insert(info.id.clone(), now);
        }
    }

    /// Makes a call about `ids`, and makes it again for own launches that are not found, until
    /// they are or the window since their launch has passed.
    pub async fn retry_not_found<'a, T>(
        &self,
        ids: &[InstanceId],
        capabilities: &Capabilities,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync,
    ) -> Vec<Result<T>> {
        let window = capabilities.consistency_window;
        let pause = capabilities.poll_interval.min(window);
        // Records before the call is made: its answer may be looked at when the window is long over.
        let mut young: Vec<_> = ids.iter().map(|id| self.within(id, window)).collect();
        let mut answers = send(ids.to_vec()).await;
        loop {
            let missing = |answer: &Result<T>| {
                let error = answer.as_ref().err();
                error.is_some_and(|error| error.kind() == ErrorKind::NotFound)
            };
            let hidden: Vec<usize> = (0..ids.len())
                .filter(|at| young[*at] && answers.get(*at).is_some_and(missing))
                .collect();
            if hidden.is_empty() {
                return answers;
            }
            sleep(pause.max(Duration::from_millis(1))).await;
            let again: Vec<_> = hidden.iter().map(|at| ids[*at].clone()).collect();
            for at in &hidden {
                young[*at] = self.within(&ids[*at], window);
            }
            let found = send(again).await;
            for (at, answer) in hidden.into_iter().zip(found) {
                answers[at] = answer;
            }
        }
    }

    /// Whether an instance was launched so lately that a read made from now on may not show it yet.
    fn within(&self, id: &InstanceId, window: Duration) -> bool {
        let at = self.records().by_id.get(id).copied();
        at.is_some_and(|at| at.elapsed() < window)
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn drop_older(&mut self, window: Duration) {
        while let Some((at, id)) = self.in_order.front() {
            if at.elapsed() < window {
                return;
            }
            // A replay may have recorded it again since.
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
    use crate::CloudInstanceState;

    const WINDOW: Duration = Duration::from_secs(10);

    fn info(name: &str) -> InstanceInfo {
        InstanceInfo::new(InstanceId::new(name).unwrap(), CloudInstanceState::Pending)
    }

    #[tokio::test(start_paused = true)]
    async fn a_launch_is_young_for_the_window_and_then_dropped() {
        let (launches, one, two) = (RecentLaunches::new(), info("i-1"), info("i-2"));
        launches.record(std::slice::from_ref(&one), WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        assert!(!launches.within(&two.id, WINDOW));
        tokio::time::sleep(WINDOW - Duration::from_millis(1)).await;
        launches.record(std::slice::from_ref(&two), WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        assert_eq!(launches.records().by_id.len(), 2);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!launches.within(&one.id, WINDOW));
        launches.record(&[], WINDOW);
        let records = launches.records();
        assert_eq!((records.by_id.len(), records.in_order.len()), (1, 1));
        assert!(records.by_id.contains_key(&two.id));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_launched_again_is_young_again() {
        let (launches, one) = (RecentLaunches::new(), info("i-1"));
        launches.record(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(&[], WINDOW);
        assert!(launches.within(&one.id, WINDOW));
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(&[], WINDOW);
        let records = launches.records();
        assert_eq!((records.by_id.len(), records.in_order.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_window_nothing_is_noted() {
        let (launches, one) = (RecentLaunches::new(), info("i-1"));
        launches.record(std::slice::from_ref(&one), Duration::ZERO);
        assert_eq!(launches.records().in_order.len(), 0);
    }
}
