//! Records with versions, and an index that finds each record by all versions that a read may
//! return.
//!
//! Every change updates the index too, so the two cannot contradict each other.

use std::{collections::BTreeMap, ops::Deref, time::Duration};

use super::{
    history::History,
    index::{Index, Seq},
};

/// A record with versions, which is found under keys.
pub(crate) trait Record {
    type Version: Clone;
    type Key: Clone + Ord;

    /// Returns the versions for a change.
    fn versions(&mut self) -> &mut History<Self::Version>;

    /// Returns the keys of all versions that a read may return.
    fn keys(&self) -> Vec<Self::Key>;
}

/// All records of a kind, in the order of creation.
#[derive(Debug)]
pub(crate) struct Records<R: Record> {
    all: BTreeMap<Seq, R>,
    index: Index<R::Key>,
}

impl<R: Record> Default for Records<R> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            index: Index::default(),
        }
    }
}

impl<R: Record> Deref for Records<R> {
    type Target = BTreeMap<Seq, R>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<R: Record> Records<R> {
    pub(crate) fn add(&mut self, seq: Seq, record: R) {
        self.index.change(seq, &[], &record.keys());
        self.all.insert(seq, record);
    }

    pub(crate) fn remove(&mut self, seq: Seq) -> Option<R> {
        let record = self.all.remove(&seq)?;
        self.index.change(seq, &record.keys(), &[]);
        Some(record)
    }

    /// Returns a record for changes that do not affect its keys.
    pub(crate) fn get_mut(&mut self, seq: &Seq) -> Option<&mut R> {
        self.all.get_mut(seq)
    }

    /// Adds a version to a record. Returns whether the caller must prune the record when `window`
    /// is over.
    pub(crate) fn revise(
        &mut self,
        seq: Seq,
        (now, window): (Duration, Duration),
        change: impl FnOnce(&mut R::Version),
    ) -> bool {
        self.update(seq, |versions| {
            let mut next = versions.current().clone();
            change(&mut next);
            versions.push(now, next);
            if window.is_zero() {
                versions.prune(now);
            }
            !window.is_zero()
        })
        .unwrap_or(false)
    }

    /// Drops the versions of a record that no read of a time since `oldest` can return.
    pub(crate) fn prune(&mut self, seq: Seq, oldest: Duration) {
        self.update(seq, |versions| versions.prune(oldest));
    }

    fn update<T>(
        &mut self,
        seq: Seq,
        change: impl FnOnce(&mut History<R::Version>) -> T,
    ) -> Option<T> {
        let record = self.all.get_mut(&seq)?;
        let before = record.keys();
        let result = change(record.versions());
        self.index.change(seq, &before, &record.keys());
        Some(result)
    }

    /// Returns an upper bound of the number of records under any of `keys`.
    pub(crate) fn size(&self, keys: &[R::Key]) -> usize {
        self.index.size(keys)
    }

    /// Returns the records under any of `keys` that come after `after`, in order and without
    /// duplicates.
    pub(crate) fn find<'a>(
        &'a self,
        keys: &[R::Key],
        after: Seq,
    ) -> impl Iterator<Item = Seq> + use<'a, R> {
        self.index.find(keys, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(History<char>);

    impl Record for Thing {
        type Version = char;
        type Key = char;

        fn versions(&mut self) -> &mut History<char> {
            &mut self.0
        }

        fn keys(&self) -> Vec<char> {
            self.0.iter().copied().collect()
        }
    }

    #[test]
    fn record_is_found_by_old_versions_until_they_are_pruned() {
        let second = Duration::from_secs(1);
        let mut things = Records::default();
        things.add(7, Thing(History::new(Duration::ZERO, 'a')));
        assert!(things.revise(7, (second, second), |version| *version = 'b'));
        let found = |things: &Records<Thing>, key| things.find(&[key], 0).next();
        assert_eq!(
            (found(&things, 'a'), found(&things, 'b')),
            (Some(7), Some(7))
        );
        things.prune(7, second);
        assert_eq!((found(&things, 'a'), things.size(&['b'])), (None, 1));
        assert!(!things.revise(7, (second, Duration::ZERO), |version| *version = 'c'));
        assert_eq!((found(&things, 'b'), found(&things, 'c')), (None, Some(7)));
        assert!(!things.revise(8, (second, second), |_| {}));
        assert!(things.remove(7).is_some() && things.remove(7).is_none());
        assert_eq!((found(&things, 'c'), things.len()), (None, 0));
    }
}
