//! The versions of a record that a lagging read may still return.

use std::{collections::VecDeque, time::Duration};

/// Versions with their start times: the oldest that a read may return first, the current one last.
#[derive(Debug)]
pub(crate) struct History<V> {
    created_at: Duration,
    /// Never empty.
    versions: VecDeque<(Duration, V)>,
}

impl<V> History<V> {
    /// Creates a history with its first version.
    pub(crate) fn new(now: Duration, version: V) -> Self {
        Self {
            created_at: now,
            versions: VecDeque::from([(now, version)]),
        }
    }

    /// Returns the time of creation.
    pub(crate) const fn created_at(&self) -> Duration {
        self.created_at
    }

    /// Returns the current version.
    #[expect(
        clippy::expect_used,
        reason = "a record starts with one version, and pruning keeps the last"
    )]
    pub(crate) fn current(&self) -> &V {
        let (_, version) = self.versions.back().expect("a history has a version");
        version
    }

    /// Returns the current version for a change in place, which is right only where no read lags.
    pub(crate) fn current_mut(&mut self) -> Option<&mut V> {
        self.versions.back_mut().map(|(_, version)| version)
    }

    /// Returns the version at a time, or `None` before the creation. Where older versions were
    /// dropped, the oldest one that is left is returned.
    pub(crate) fn at(&self, time: Option<Duration>) -> Option<&V> {
        let time = time.filter(|time| *time >= self.created_at)?;
        let has_begun = |(since, _): &&(Duration, V)| *since <= time;
        let newest = self.versions.iter().rev().find(has_begun);
        let (_, version) = newest.or_else(|| self.versions.front())?;
        Some(version)
    }

    /// Adds a version that is current from now on.
    pub(crate) fn push(&mut self, now: Duration, version: V) {
        self.versions.push_back((now, version));
    }

    /// Drops the versions that no read of a time since `oldest` can return.
    pub(crate) fn prune(&mut self, oldest: Duration) {
        let replaced = |(since, _): &(Duration, V)| *since <= oldest;
        while self.versions.get(1).is_some_and(replaced) {
            self.versions.pop_front();
        }
    }

    /// Returns all versions that are left.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.versions.iter().map(|(_, version)| version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_returns_the_version_of_its_time() {
        let at = Duration::from_secs;
        let mut history = History::new(at(10), 'a');
        history.push(at(20), 'b');
        history.push(at(30), 'c');
        assert_eq!(history.at(Some(at(9))), None);
        assert_eq!(history.at(None), None);
        assert_eq!(history.at(Some(at(10))), Some(&'a'));
        assert_eq!(history.at(Some(at(29))), Some(&'b'));
        history.prune(at(25));
        assert_eq!(history.iter().collect::<String>(), "bc");
        assert_eq!(history.at(Some(at(12))), Some(&'b'));
        history.prune(at(99));
        assert_eq!((history.current(), history.iter().count()), (&'c', 1));
        assert_eq!(history.created_at(), at(10));
        *history.current_mut().unwrap() = 'd';
        assert_eq!(history.current(), &'d');
    }
}
