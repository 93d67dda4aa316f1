//! The index of instances by tag.
//!
//! A list reads only the instances that have the filter's tags. The index has an entry for every
//! version that a stale read may return, so it can offer too many candidates, never too few.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Bound,
    sync::Arc,
};

use fleetwright::Tags;

use super::Seq;

/// Whether an instance still exists. Terminated ones have their own sets, because most lists
/// exclude them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Existence {
    Existing,
    Terminated,
}

/// The existence and the tags of one version of an instance.
pub(super) type IndexEntry = (Existence, Arc<Tags>);

/// An existence and a tag; `None` selects all instances of that existence.
type Key = (Existence, Option<(String, String)>);

/// The instances with each tag, in the order of launch.
#[derive(Debug, Default)]
pub(super) struct TagIndex {
    sets: BTreeMap<Key, BTreeSet<Seq>>,
}

impl TagIndex {
    /// Replaces the entries of an instance.
    pub(super) fn change(&mut self, seq: Seq, before: &[IndexEntry], after: &[IndexEntry]) {
        for key in before.iter().flat_map(keys) {
            if let Entry::Occupied(mut set) = self.sets.entry(key) {
                set.get_mut().remove(&seq);
                if set.get().is_empty() {
                    set.remove();
                }
            }
        }
        for key in after.iter().flat_map(keys) {
            self.sets.entry(key).or_default().insert(seq);
        }
    }

    /// Returns the instances of any of `existences` that have all of `tags`, after `after`, in order
    /// and without duplicates.
    pub(super) fn find<'a>(
        &'a self,
        existences: &[Existence],
        tags: &Tags,
        after: Option<Seq>,
    ) -> impl Iterator<Item = Seq> + use<'a> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut runs: Vec<_> = existences
            .iter()
            .filter_map(|existence| self.sets_of(*existence, tags))
            .map(|mut sets| {
                sets.sort_by_key(|set| set.len());
                let (smallest, others) = (sets[0], sets[1..].to_vec());
                let run = smallest.range((start, Bound::Unbounded)).copied();
                run.filter(move |seq| others.iter().all(|set| set.contains(seq)))
                    .peekable()
            })
            .collect();
        // An instance is in both sets while stale reads may return either version.
        std::iter::from_fn(move || {
            let next = runs
                .iter_mut()
                .filter_map(|run| run.peek().copied())
                .min()?;
            for run in &mut runs {
                run.next_if_eq(&next);
            }
            Some(next)
        })
    }

    /// Returns the set of each tag, or `None` if a tag has no instances. Never an empty list.
    fn sets_of(&self, existence: Existence, tags: &Tags) -> Option<Vec<&BTreeSet<Seq>>> {
        if tags.is_empty() {
            return Some(vec![self.sets.get(&(existence, None))?]);
        }
        let one = |(key, value): (&str, &str)| {
            self.sets
                .get(&(existence, Some((key.to_owned(), value.to_owned()))))
        };
        tags.iter().map(one).collect()
    }
}

/// Returns every key under which a version of an instance is found.
fn keys((existence, tags): &IndexEntry) -> impl Iterator<Item = Key> + use<'_> {
    let existence = *existence;
    let tags = tags
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    std::iter::once(None)
        .chain(tags.map(Some))
        .map(move |tag| (existence, tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        index: &TagIndex,
        existences: &[Existence],
        pairs: &[(&str, &str)],
        after: Option<Seq>,
    ) -> Vec<Seq> {
        index.find(existences, &tags(pairs), after).collect()
    }

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let with = |tags: Tags, (key, value): &(&str, &str)| tags.with(*key, *value).unwrap();
        pairs.iter().fold(Tags::new(), with)
    }

    fn entries(existence: Existence, pairs: &[(&str, &str)]) -> Vec<IndexEntry> {
        vec![(existence, Arc::new(tags(pairs)))]
    }

    #[test]
    fn lookup_follows_changes_of_tags_and_existence() {
        let mut index = TagIndex::default();
        let none = Vec::new();
        let both = entries(Existence::Existing, &[("a", "1"), ("b", "2")]);
        let one = entries(Existence::Existing, &[("a", "1")]);
        index.change(1, &none, &both);
        index.change(2, &none, &one);
        index.change(3, &none, &both);
        assert_eq!(find(&index, &[Existence::Existing], &[], None), [1, 2, 3]);
        assert_eq!(
            find(&index, &[Existence::Existing], &[("a", "1")], Some(1)),
            [2, 3]
        );
        assert_eq!(
            find(
                &index,
                &[Existence::Existing],
                &[("a", "1"), ("b", "2")],
                None
            ),
            [1, 3]
        );
        assert_eq!(
            find(
                &index,
                &[Existence::Existing],
                &[("b", "2"), ("c", "")],
                None
            ),
            []
        );
        assert_eq!(find(&index, &[Existence::Terminated], &[], None), []);
        let terminated = entries(Existence::Terminated, &[("a", "1"), ("b", "2")]);
        index.change(1, &both, &terminated);
        assert_eq!(
            find(&index, &[Existence::Existing], &[("b", "2")], None),
            [3]
        );
        assert_eq!(
            find(
                &index,
                &[Existence::Existing, Existence::Terminated],
                &[("b", "2")],
                None
            ),
            [1, 3]
        );
        let in_both = [both.clone(), terminated.clone()].concat();
        index.change(3, &both, &in_both);
        assert_eq!(
            find(
                &index,
                &[Existence::Existing, Existence::Terminated],
                &[("b", "2")],
                None
            ),
            [1, 3]
        );
        index.change(1, &terminated, &none);
        index.change(2, &one, &none);
        index.change(3, &in_both, &none);
        assert!(index.sets.is_empty());
    }
}
