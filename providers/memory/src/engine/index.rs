//! Finding instances by tag without touching the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use fleetwright::Tags;

use super::Seq;

/// Whether an instance still exists; terminated ones are kept apart, because lists leave them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Life {
    Going,
    Over,
}

/// A life and a tag; no tag means all of that life.
type Key = (Life, Option<(String, String)>);

/// Under which keys an instance is found.
pub(super) type Memberships = BTreeSet<Key>;

/// Every instance under each of its tags, in the order of launch.
#[derive(Debug, Default)]
pub(super) struct TagIndex {
    sets: BTreeMap<Key, BTreeSet<Seq>>,
}

impl TagIndex {
    /// Moves an instance from where it was to where it is.
    pub(super) fn change(&mut self, seq: Seq, before: &Memberships, after: &Memberships) {
        for key in before.difference(after) {
            if let Some(set) = self.sets.get_mut(key) {
                set.remove(&seq);
                if set.is_empty() {
                    self.sets.remove(key);
                }
            }
        }
        for key in after.difference(before) {
            self.sets.entry(key.clone()).or_default().insert(seq);
        }
    }

    /// The instances of one of `lives` with all of `tags` that come after `after`, in order.
    pub(super) fn find<'a>(
        &'a self,
        lives: &[Life],
        tags: &Tags,
        after: Option<Seq>,
    ) -> impl Iterator<Item = Seq> + use<'a> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut runs: Vec<_> = lives
            .iter()
            .filter_map(|life| self.sets_of(*life, tags))
            .map(|mut sets| {
                sets.sort_by_key(|set| set.len());
                let (smallest, others) = (sets[0], sets[1..].to_vec());
                let run = smallest.range((start, Bound::Unbounded)).copied();
                run.filter(move |seq| others.iter().all(|set| set.contains(seq)))
                    .peekable()
            })
            .collect();
        // An instance may stand in both lives while a lagging read can see either.
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

    /// The set of each tag, or nothing where one of them has none. At least one set.
    fn sets_of(&self, life: Life, tags: &Tags) -> Option<Vec<&BTreeSet<Seq>>> {
        if tags.is_empty() {
            return Some(vec![self.sets.get(&(life, None))?]);
        }
        let one = |(key, value): (&str, &str)| {
            self.sets
                .get(&(life, Some((key.to_owned(), value.to_owned()))))
        };
        tags.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        index: &TagIndex,
        lives: &[Life],
        pairs: &[(&str, &str)],
        after: Option<Seq>,
    ) -> Vec<Seq> {
        let tags = pairs
            .iter()
            .fold(Tags::new(), |tags, (k, v)| tags.with(*k, *v).unwrap());
        index.find(lives, &tags, after).collect()
    }

    fn member(life: Life, pairs: &[(&str, &str)]) -> Memberships {
        let tags = pairs
            .iter()
            .map(|(k, v)| (life, Some(((*k).to_owned(), (*v).to_owned()))));
        tags.chain([(life, None)]).collect()
    }

    #[test]
    fn an_instance_is_found_under_all_its_tags_and_moves() {
        let mut index = TagIndex::default();
        let none = Memberships::new();
        let both = member(Life::Going, &[("a", "1"), ("b", "2")]);
        let one = member(Life::Going, &[("a", "1")]);
        index.change(1, &none, &both);
        index.change(2, &none, &one);
        index.change(3, &none, &both);
        assert_eq!(found(&index, &[Life::Going], &[], None), [1, 2, 3]);
        assert_eq!(
            found(&index, &[Life::Going], &[("a", "1")], Some(1)),
            [2, 3]
        );
        assert_eq!(
            found(&index, &[Life::Going], &[("a", "1"), ("b", "2")], None),
            [1, 3]
        );
        assert_eq!(
            found(&index, &[Life::Going], &[("b", "2"), ("c", "")], None),
            []
        );
        assert_eq!(found(&index, &[Life::Over], &[], None), []);
        let over = member(Life::Over, &[("a", "1"), ("b", "2")]);
        index.change(1, &both, &over);
        assert_eq!(found(&index, &[Life::Going], &[("b", "2")], None), [3]);
        assert_eq!(
            found(&index, &[Life::Going, Life::Over], &[("b", "2")], None),
            [1, 3]
        );
        let seen_both_ways = both.union(&over).cloned().collect();
        index.change(3, &both, &seen_both_ways);
        assert_eq!(
            found(&index, &[Life::Going, Life::Over], &[("b", "2")], None),
            [1, 3]
        );
        index.change(1, &over, &none);
        index.change(2, &one, &none);
        index.change(3, &seen_both_ways, &none);
        assert!(index.sets.is_empty());
    }
}
