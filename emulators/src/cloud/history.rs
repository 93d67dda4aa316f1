//! The versions of a thing that a lagging read may still see.

use std::{collections::VecDeque, time::Duration};

/// Versions with the moments they began at: the oldest that may still be seen first, the truth last.
#[derive(Debug)]
pub(crate) struct History<V> {
    made: Duration,
    /// Never empty.
    versions: VecDeque<(Duration, V)>,
}

impl<V> History<V> {
    /// Something new.
    pub(crate) fn new(now: Duration, version: V) -> Self {
        Self {
            made: now,
            versions: VecDeque::from([(now, version)]),
        }
    }

    /// When it was made.
    pub(crate) const fn made(&self) -> Duration {
        self.made
    }

    /// The truth.
    #[expect(
        clippy::expect_used,
        reason = "versions begin with one, and pruning keeps the last"
    )]
    pub(crate) fn current(&self) -> &V {
        let (_, version) = self.versions.back().expect("a history has a version");
        version
    }

    /// The truth, to be changed in place where no read lags.
    pub(crate) fn current_mut(&mut self) -> Option<&mut V> {
        self.versions.back_mut().map(|(_, version)| version)
    }

    /// What a read sees that looks at `moment`: nothing before it was made. The oldest version that
    /// is kept stands in for those that were dropped when the lag was shorter.
    pub(crate) fn at(&self, moment: Option<Duration>) -> Option<&V> {
        let moment = moment.filter(|moment| *moment >= self.made)?;
        let seen = |(since, _): &&(Duration, V)| *since <= moment;
        let newest = self.versions.iter().rev().find(seen);
        let (_, version) = newest.or_else(|| self.versions.front())?;
        Some(version)
    }

    /// A new truth.
    pub(crate) fn push(&mut self, now: Duration, version: V) {
        self.versions.push_back((now, version));
    }

    /// Drops the versions that no read can see any more which looks back to `oldest` at most.
    pub(crate) fn prune(&mut self, oldest: Duration) {
        let replaced = |(since, _): &(Duration, V)| *since <= oldest;
        while self.versions.get(1).is_some_and(replaced) {
            self.versions.pop_front();
        }
    }

    /// Every version that is kept.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.versions.iter().map(|(_, version)| version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_sees_what_was_then() {
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
        assert_eq!(history.made(), at(10));
        *history.current_mut().unwrap() = 'd';
        assert_eq!(history.current(), &'d');
    }
}
