//! Values that were read or written lately, so that they are parsed once.
//!
//! A value is found by its record and its revision. A revision is written once, whichever handle or process writes it, so a
//! value that was found with the revision of the file is the value of the file. The file is asked for the revision each time.
//!
//! There are two generations. A value that is used moves to the newer one. When the newer one is full, it takes the place of
//! the older one, and what was not used meanwhile is forgotten.

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::{Json, RecordId, Revision};

/// The number of value bytes, as JSON text, in one generation: 2 MiB. Parsed values are several times as large.
pub(crate) const BYTES: usize = 2 * 1024 * 1024;
/// What a value counts for beside its text.
const OVERHEAD: usize = 256;

/// The cache of one handle.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<RecordId, Parsed>,
    older: HashMap<RecordId, Parsed>,
    /// The bytes of the newer generation.
    bytes: usize,
}

#[derive(Debug)]
struct Parsed {
    revision: Revision,
    value: Json,
    /// The length of its text.
    bytes: usize,
}

impl Cache {
    /// Creates a cache with this many bytes in each generation. With none, it keeps nothing.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            generations: Mutex::default(),
        }
    }

    /// Returns the value that a record has at a revision, and the length of its text, if it is known.
    pub(crate) fn find(&self, id: &RecordId, revision: Revision) -> Option<(Json, usize)> {
        let mut generations = self.generations();
        if let Some(parsed) = generations.newer.get(id) {
            return parsed.at(revision);
        }
        let parsed = generations.older.remove(id)?;
        let found = parsed.at(revision);
        generations.insert(id.clone(), parsed, self.bytes);
        found
    }

    /// Keeps a value that is committed. `bytes` is the length of its text.
    pub(crate) fn keep(&self, id: &RecordId, revision: Revision, value: &Json, bytes: usize) {
        if bytes.saturating_add(OVERHEAD) > self.bytes {
            return;
        }
        let parsed = Parsed {
            revision,
            value: value.clone(),
            bytes,
        };
        self.generations().insert(id.clone(), parsed, self.bytes);
    }

    /// A poisoned lock is safe to use: a panic can only lose values.
    fn generations(&self) -> MutexGuard<'_, Generations> {
        let guard = self.generations.lock();
        guard.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parsed {
    fn at(&self, revision: Revision) -> Option<(Json, usize)> {
        (self.revision == revision).then(|| (self.value.clone(), self.bytes))
    }
}

impl Generations {
    /// Adds a value to the newer generation, unless it has a later one.
    fn insert(&mut self, id: RecordId, parsed: Parsed, limit: usize) {
        let known = self.newer.get(&id);
        if known.is_some_and(|known| known.revision > parsed.revision) {
            return;
        }
        self.older.remove(&id);
        self.bytes += parsed.bytes + OVERHEAD;
        if let Some(replaced) = self.newer.insert(id, parsed) {
            self.bytes -= replaced.bytes + OVERHEAD;
        }
        if self.bytes > limit {
            self.older = mem::take(&mut self.newer);
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: u64) -> RecordId {
        RecordId::new("thing", format!("t-{number}")).unwrap()
    }

    fn kept(cache: &Cache, number: u64) -> bool {
        cache.find(&id(number), Revision(number)).is_some()
    }

    fn keep(cache: &Cache, number: u64) {
        cache.keep(&id(number), Revision(number), &json!(number).into(), 1);
    }

    #[test]
    fn only_the_value_of_the_same_revision_is_found() {
        let cache = Cache::new(BYTES);
        cache.keep(&id(1), Revision(7), &json!("seven").into(), 7);
        let found = |revision| cache.find(&id(1), Revision(revision));
        assert_eq!((found(6), found(8)), (None, None));
        assert_eq!(found(7), Some((json!("seven").into(), 7)));
        cache.keep(&id(1), Revision(6), &json!("six").into(), 5);
        assert_eq!(found(7), Some((json!("seven").into(), 7)), "no older value");
        cache.keep(&id(1), Revision(9), &json!("nine").into(), 6);
        assert_eq!(found(7), None);
        assert_eq!(found(9), Some((json!("nine").into(), 6)));
    }

    #[test]
    fn unused_values_are_forgotten_and_used_ones_stay() {
        let cache = Cache::new(10 * (OVERHEAD + 1));
        for number in 0..1000 {
            keep(&cache, number);
            assert!(kept(&cache, 0), "the value was used before {number}");
            let generations = cache.generations();
            assert!(generations.newer.len() + generations.older.len() <= 21);
        }
        assert!(kept(&cache, 999));
        assert!(!kept(&cache, 500));
    }

    #[test]
    fn larger_value_than_the_cache_is_not_kept() {
        let cache = Cache::new(0);
        keep(&cache, 1);
        assert!(!kept(&cache, 1));
    }
}
