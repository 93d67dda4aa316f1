//! A map whose entries expire.
//!
//! Owns expiry for [`RecentLaunches`](crate::RecentLaunches), [`RecentTokens`](crate::RecentTokens),
//! [`RecentTerminations`](crate::RecentTerminations) and what a backend remembers for itself. Its time is tokio's, and it belongs to one process: a handle that is
//! opened again starts empty.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Entries with the time at which each was recorded.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_provider_support::RecentMap;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hour = Duration::from_secs(3600);
/// let deletes = RecentMap::default();
/// deletes.record([(7, "operation-1")], hour);
/// assert_eq!(deletes.get(&7, hour), Some("operation-1"));
/// deletes.remove(&7);
/// assert_eq!(deletes.get(&7, hour), None);
/// # }
/// ```
#[derive(Debug)]
pub struct RecentMap<K, V> {
    entries: Mutex<Entries<K, V>>,
}

#[derive(Debug)]
struct Entries<K, V> {
    by_key: HashMap<K, (Instant, V)>,
    /// The keys, oldest first. A key that was recorded twice is in it twice.
    by_age: VecDeque<(Instant, K)>,
}

impl<K: Clone + Eq + Hash, V: Clone> RecentMap<K, V> {
    /// Records `entries` with the current time, and removes entries that are as old as `window`.
    pub fn record(&self, entries: impl IntoIterator<Item = (K, V)>, window: Duration) {
        let (mut recorded, now) = (self.entries(), Instant::now());
        recorded.remove_expired(window);
        for (key, value) in entries {
            recorded.by_age.push_back((now, key.clone()));
            recorded.by_key.insert(key, (now, value));
        }
    }

    /// Returns the value of an entry that is younger than `window`.
    pub fn get(&self, key: &K, window: Duration) -> Option<V> {
        let recorded = self.entries();
        let (at, value) = recorded.by_key.get(key)?;
        (at.elapsed() < window).then(|| value.clone())
    }

    /// Returns for how long an entry is still younger than `window`. Zero if there is none.
    pub(crate) fn remaining(&self, key: &K, window: Duration) -> Duration {
        let recorded = self.entries();
        let entry = recorded.by_key.get(key);
        entry.map_or(Duration::ZERO, |(at, _)| {
            window.saturating_sub(at.elapsed())
        })
    }

    /// Removes an entry.
    pub fn remove(&self, key: &K) {
        self.entries().by_key.remove(key);
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many entries there are, and how many keys by age.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let recorded = self.entries();
        (recorded.by_key.len(), recorded.by_age.len())
    }
}

impl<K: Eq + Hash, V> Entries<K, V> {
    fn remove_expired(&mut self, window: Duration) {
        while let Some((at, key)) = self.by_age.front() {
            if at.elapsed() < window {
                return;
            }
            // The key may have been recorded again since.
            if self.by_key.get(key).is_some_and(|(since, _)| since == at) {
                self.by_key.remove(key);
            }
            self.by_age.pop_front();
        }
    }
}

impl<K, V> Default for RecentMap<K, V> {
    fn default() -> Self {
        let entries = Entries {
            by_key: HashMap::new(),
            by_age: VecDeque::new(),
        };
        Self {
            entries: Mutex::new(entries),
        }
    }
}
