//! Finding instances by state, tag or token without touching the others.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Bound,
};

use super::{Seq, record::State};

/// What an instance is found under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Every instance.
    All,
    State(State),
    Tag(String, String),
    Token(String),
}

/// Every instance under each of its keys, in the order of launch.
#[derive(Debug, Default)]
pub(crate) struct Index {
    sets: BTreeMap<Key, BTreeSet<Seq>>,
}

impl Index {
    /// Moves an instance from where it was to where it is.
    pub(super) fn change(&mut self, seq: Seq, before: &[Key], after: &[Key]) {
        for key in before {
            if let Entry::Occupied(mut set) = self.sets.entry(key.clone()) {
                set.get_mut().remove(&seq);
                if set.get().is_empty() {
                    set.remove();
                }
            }
        }
        for key in after {
            self.sets.entry(key.clone()).or_default().insert(seq);
        }
    }

    /// How many instances stand under any of `keys`, at most.
    pub(super) fn size(&self, keys: &[Key]) -> usize {
        keys.iter()
            .map(|key| self.sets.get(key).map_or(0, BTreeSet::len))
            .sum()
    }

    /// The instances under any of `keys` that come after `after`, in order and each once.
    pub(super) fn find<'a>(
        &'a self,
        keys: &[Key],
        after: Seq,
    ) -> impl Iterator<Item = Seq> + use<'a> {
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

    #[test]
    fn an_instance_is_found_under_its_keys_and_moves() {
        let mut index = Index::default();
        let tag = |value: &str| Key::Tag("a".to_owned(), value.to_owned());
        index.change(1, &[], &[Key::All, tag("1")]);
        index.change(2, &[], &[Key::All, tag("2")]);
        index.change(3, &[], &[Key::All, tag("1"), tag("2")]);
        let found =
            |index: &Index, keys: &[Key], after| index.find(keys, after).collect::<Vec<_>>();
        assert_eq!(found(&index, &[Key::All], 0), [1, 2, 3]);
        assert_eq!(found(&index, &[tag("1"), tag("2")], 0), [1, 2, 3]);
        assert_eq!(found(&index, &[tag("1")], 1), [3]);
        assert_eq!(index.size(&[tag("1"), tag("2")]), 4);
        index.change(3, &[Key::All, tag("1"), tag("2")], &[]);
        assert_eq!(found(&index, &[tag("1"), tag("3")], 0), [1]);
        index.change(1, &[Key::All, tag("1")], &[]);
        index.change(2, &[Key::All, tag("2")], &[]);
        assert!(index.sets.is_empty());
    }
}
