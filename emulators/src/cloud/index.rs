//! Finds records by their keys without scanning the others.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Bound,
};

/// The number of a record, in the order of creation. Numbers are never reused.
pub(crate) type Seq = u64;

/// The records under each key, in the order of creation.
#[derive(Debug)]
pub(crate) struct Index<K> {
    sets: BTreeMap<K, BTreeSet<Seq>>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self {
            sets: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Ord> Index<K> {
    /// Replaces the keys of a record.
    pub(crate) fn change(&mut self, seq: Seq, before: &[K], after: &[K]) {
        for key in before.iter().filter(|key| !after.contains(key)) {
            if let Entry::Occupied(mut set) = self.sets.entry(key.clone()) {
                set.get_mut().remove(&seq);
                if set.get().is_empty() {
                    set.remove();
                }
            }
        }
        for key in after.iter().filter(|key| !before.contains(key)) {
            self.sets.entry(key.clone()).or_default().insert(seq);
        }
    }

    /// Returns an upper bound of the number of records under any of `keys`.
    pub(crate) fn size(&self, keys: &[K]) -> usize {
        keys.iter()
            .map(|key| self.sets.get(key).map_or(0, BTreeSet::len))
            .sum()
    }

    /// Returns the records under any of `keys` that come after `after`, in order and without
    /// duplicates.
    pub(crate) fn find<'a>(
        &'a self,
        keys: &[K],
        after: Seq,
    ) -> impl Iterator<Item = Seq> + use<'a, K> {
        let range = (Bound::Excluded(after), Bound::Unbounded);
        let mut runs: Vec<_> = keys
            .iter()
            .filter_map(|key| self.sets.get(key))
            .map(|set| set.range(range).copied().peekable())
            .collect();
        std::iter::from_fn(move || {
            let heads = runs.iter_mut().filter_map(|run| run.peek().copied());
            let next = heads.min()?;
            for run in &mut runs {
                run.next_if_eq(&next);
            }
            Some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Key = Option<char>;

    #[test]
    fn record_is_found_under_its_current_keys() {
        let mut index = Index::default();
        index.change(1, &[], &[None, Some('a')]);
        index.change(2, &[], &[None, Some('b')]);
        index.change(3, &[], &[None, Some('a'), Some('b')]);
        let found =
            |index: &Index<Key>, keys: &[Key], after| index.find(keys, after).collect::<Vec<_>>();
        assert_eq!(found(&index, &[None], 0), [1, 2, 3]);
        assert_eq!(found(&index, &[Some('a'), Some('b')], 0), [1, 2, 3]);
        assert_eq!(found(&index, &[Some('a')], 1), [3]);
        assert_eq!(index.size(&[Some('a'), Some('b')]), 4);
        index.change(3, &[None, Some('a'), Some('b')], &[]);
        assert_eq!(found(&index, &[Some('a'), Some('c')], 0), [1]);
        index.change(1, &[None, Some('a')], &[]);
        index.change(2, &[None, Some('b')], &[]);
        assert!(index.sets.is_empty());
    }
}
