//! Finding instances by tag without touching the others.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Bound,
    sync::Arc,
};

use fleetwright::Tags;

use super::Seq;

/// Whether an instance still exists; terminated ones are kept apart, because lists leave them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Life {
    Going,
    Over,
}

/// A life with the tags that an instance had in it.
pub(super) type Standing = (Life, Arc<Tags>);

/// A life and a tag; no tag means all of that life.
type Key = (Life, Option<(String, String)>);

/// Every instance under each of its tags, in the order of launch.
#[derive(Debug, Default)]
pub(super) struct TagIndex {
    sets: BTreeMap<Key, BTreeSet<Seq>>,
}

impl TagIndex {
    /// Moves an instance from where it was to where it is.
    pub(super) fn change(&mut self, seq: Seq, before: &[Standing], after: &[Standing]) {
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

/// Every key under which an instance with this standing is found.
fn keys((life, tags): &Standing) -> impl Iterator<Item = Key> + use<'_> {
    let life = *life;
    let tags = tags
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    std::iter::once(None)
        .chain(tags.map(Some))
        .map(move |tag| (life, tag))
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
        index.find(lives, &tags(pairs), after).collect()
    }

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let with = |tags: Tags, (key, value): &(&str, &str)| tags.with(*key, *value).unwrap();
        pairs.iter().fold(Tags::new(), with)
    }

    fn standing(life: Life, pairs: &[(&str, &str)]) -> Vec<Standing> {
        vec![(life, Arc::new(tags(pairs)))]
    }

    #[test]
    fn an_instance_is_found_under_all_its_tags_and_moves() {
        let mut index = TagIndex::default();
        let none = Vec::new();
        let both = standing(Life::Going, &[("a", "1"), ("b", "2")]);
        let one = standing(Life::Going, &[("a", "1")]);
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
        let over = standing(Life::Over, &[("a", "1"), ("b", "2")]);
        index.change(1, &both, &over);
        assert_eq!(found(&index, &[Life::Going], &[("b", "2")], None), [3]);
        assert_eq!(
            found(&index, &[Life::Going, Life::Over], &[("b", "2")], None),
            [1, 3]
        );
        let seen_both_ways = [both.clone(), over.clone()].concat();
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
