//! The state of the memory store: records, index entries and the log of commits. It has no locks
//! and never waits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
};

use super::MemoryOptions;
use crate::{
    Batch, Change, Commit, History, IndexName, Interest, Json, Key, Kind, Page, Plan, PreparedPut,
    PreparedWrite, Range, Record, RecordId, Result, Revision, StoreError, View,
};

/// The largest number of commits in a batch.
const BATCH: usize = 256;

/// Everything that the store has. Its maps agree at all times: every entry belongs to a record, and
/// every record has all of its entries.
#[derive(Debug)]
pub(super) struct State {
    options: MemoryOptions,
    records: BTreeMap<Kind, BTreeMap<Key, Stored>>,
    entries: BTreeMap<(Kind, IndexName), BTreeSet<Row>>,
    log: VecDeque<Commit>,
    history: History,
    /// The sum of all values in bytes.
    bytes: usize,
}

/// An entry and the key of its record. Stored rows always have a key; `None` sorts before all keys
/// and marks the start of a range.
type Row = (Vec<u8>, Option<Key>);

/// A record with what is needed to remove it: its size and its index entries.
#[derive(Clone, Debug)]
struct Stored {
    revision: Revision,
    value: Json,
    bytes: usize,
    entries: Vec<(IndexName, Vec<u8>)>,
}

impl State {
    pub(super) fn new(options: MemoryOptions) -> Self {
        Self {
            options,
            records: BTreeMap::new(),
            entries: BTreeMap::new(),
            log: VecDeque::new(),
            history: History::default(),
            bytes: 0,
        }
    }

    /// Returns a copy of a record.
    pub(super) fn record(&self, id: &RecordId) -> Option<Record> {
        let stored = self.records.get(&id.kind)?.get(&id.key)?;
        Some(stored.as_record(id.clone()))
    }

    /// Applies evaluated writes. Returns their revision, or the current one if they have no effect.
    pub(super) fn apply(&mut self, writes: &[PreparedWrite]) -> Result<Revision> {
        self.check_capacity(writes)?;
        let revision = self.history.head.next();
        // Old values are released first, because another write may claim them.
        let before: Vec<_> = writes.iter().map(|write| self.take(&write.id)).collect();
        let mut changes = Vec::new();
        for (write, before) in writes.iter().zip(before) {
            match (&write.put, before) {
                (Some(put), _) => changes.push(self.insert(&write.id, put, revision)),
                (None, Some(deleted)) => {
                    changes.push(Change::Deleted(deleted.as_record(write.id.clone())));
                }
                (None, None) => {}
            }
        }
        if changes.is_empty() {
            return Ok(self.history.head);
        }
        self.history.head = revision;
        self.log.push_back(Commit { revision, changes });
        while self.log.len() > self.options.keep_commits {
            self.forget_oldest();
        }
        Ok(revision)
    }

    /// Returns one page of a plan.
    pub(super) fn page(&self, plan: &Plan) -> Page {
        let (mut records, last_entry) = match &plan.range {
            Range::Keys { after } => (self.by_key(plan, after.as_ref()), None),
            Range::Entries {
                index,
                prefix,
                after,
            } => self.by_entry(plan, index, prefix, after.as_ref()),
        };
        let more = records.len() > plan.limit;
        records.truncate(plan.limit);
        let last = records.last().map(|record| record.id.key.clone());
        let next = last.filter(|_| more);
        Page {
            next: next.map(|key| plan.cursor_after(key, last_entry)),
            records,
            damaged: Vec::new(),
            revision: self.history.head,
        }
    }

    pub(super) fn history(&self) -> History {
        self.history
    }

    /// Returns the commits after a revision, at most [`BATCH`].
    pub(super) fn changes(&self, after: Revision, interest: &Interest) -> Result<Batch> {
        self.history.can_watch_from(after)?;
        // Every revision after the compacted one has its commit, so the position follows from the
        // number.
        let skip = usize::try_from(after.0 - self.history.compacted.0).unwrap_or(usize::MAX);
        let end = skip.saturating_add(BATCH).min(self.log.len());
        let upcoming = || self.log.range(skip.min(end)..end);
        Ok(Batch {
            commits: upcoming()
                .filter_map(|commit| interest.part_of(commit))
                .collect(),
            through: upcoming()
                .next_back()
                .map_or(after, |commit| commit.revision),
        })
    }

    /// Forgets commits up to a revision.
    pub(super) fn compact(&mut self, through: Revision) {
        while self.history.compacted < through && !self.log.is_empty() {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(commit) = self.log.pop_front() {
            self.history.compacted = commit.revision;
        }
    }

    /// Checks the capacity. A transaction that does not grow the store always fits.
    fn check_capacity(&self, writes: &[PreparedWrite]) -> Result<()> {
        let Some(capacity) = self.options.capacity else {
            return Ok(());
        };
        let more: usize = writes
            .iter()
            .filter_map(|write| write.put.as_ref())
            .map(|put| put.json.len())
            .sum();
        let freed = writes.iter().filter_map(|write| self.stored(&write.id));
        let less: usize = freed.map(|stored| stored.bytes).sum();
        if more > less && self.bytes - less + more > capacity {
            return Err(StoreError::Full {
                reason: format!("{} of {capacity} bytes are used", self.bytes),
                source: None,
            });
        }
        Ok(())
    }

    fn stored(&self, id: &RecordId) -> Option<&Stored> {
        self.records.get(&id.kind)?.get(&id.key)
    }

    /// Removes a record and its index entries.
    fn take(&mut self, id: &RecordId) -> Option<Stored> {
        let stored = self.records.get_mut(&id.kind)?.remove(&id.key)?;
        self.bytes -= stored.bytes;
        for (index, entry) in &stored.entries {
            if let Some(entries) = self.entries.get_mut(&(id.kind.clone(), index.clone())) {
                entries.remove(&(entry.clone(), Some(id.key.clone())));
            }
        }
        Some(stored)
    }

    /// Adds a record and its index entries, and returns the change for the log.
    fn insert(&mut self, id: &RecordId, put: &PreparedPut, revision: Revision) -> Change {
        let mut entries = Vec::new();
        for entry in &put.entries {
            let index = (id.kind.clone(), entry.index.clone());
            let row = (entry.bytes.clone(), Some(id.key.clone()));
            self.entries.entry(index).or_default().insert(row);
            entries.push((entry.index.clone(), entry.bytes.clone()));
        }
        let stored = Stored {
            revision,
            value: put.value.clone(),
            bytes: put.json.len(),
            entries,
        };
        self.bytes += stored.bytes;
        let change = Change::Put(stored.as_record(id.clone()));
        let of_kind = self.records.entry(id.kind.clone()).or_default();
        of_kind.insert(id.key.clone(), stored);
        change
    }

    /// Returns one more than fits into the page, to detect whether there are more.
    fn by_key(&self, plan: &Plan, after: Option<&Key>) -> Vec<Record> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let of_kind = self.records.get(&plan.kind).into_iter();
        let found = of_kind.flat_map(|records| records.range((from, Bound::Unbounded)));
        found
            .take(plan.limit + 1)
            .map(|(key, stored)| stored.as_record(plan.id(key)))
            .collect()
    }

    /// Like [`by_key`](Self::by_key), with the entry of the last record on the page.
    fn by_entry(
        &self,
        plan: &Plan,
        index: &IndexName,
        prefix: &[u8],
        after: Option<&(Vec<u8>, Key)>,
    ) -> (Vec<Record>, Option<Vec<u8>>) {
        let rows: Vec<_> = self
            .rows(&plan.kind, index, prefix, after)
            .take(plan.limit + 1)
            .collect();
        let last = rows.get(..plan.limit).and_then(|page| page.last());
        let last_entry = last.map(|(entry, _)| entry.to_vec());
        let records = rows
            .iter()
            .filter_map(|(_, key)| self.record(&plan.id(key)));
        (records.collect(), last_entry)
    }

    /// Iterates over the entries that start with `prefix`, after a position, in their order.
    fn rows<'s>(
        &'s self,
        kind: &Kind,
        index: &IndexName,
        prefix: &'s [u8],
        after: Option<&(Vec<u8>, Key)>,
    ) -> impl Iterator<Item = (&'s [u8], &'s Key)> + 's {
        let from = match after {
            Some((entry, key)) => Bound::Excluded((entry.clone(), Some(key.clone()))),
            None => Bound::Included((prefix.to_vec(), None)),
        };
        let entries = self.entries.get(&(kind.clone(), index.clone())).into_iter();
        let rows = entries.flat_map(move |rows| rows.range((from.clone(), Bound::Unbounded)));
        rows.map(|(entry, key)| (entry.as_slice(), key))
            .take_while(move |(entry, _)| entry.starts_with(prefix))
            .filter_map(|(entry, key)| Some((entry, key.as_ref()?)))
    }
}

impl Stored {
    fn as_record(&self, id: RecordId) -> Record {
        Record {
            id,
            revision: self.revision,
            value: self.value.clone(),
        }
    }
}

impl View for State {
    fn revision(&mut self, id: &RecordId) -> Result<Option<Revision>> {
        Ok(self.stored(id).map(|stored| stored.revision))
    }

    fn find_two_holders(
        &mut self,
        kind: &Kind,
        index: &IndexName,
        prefix: &[u8],
    ) -> Result<Vec<Key>> {
        let rows = self.rows(kind, index, prefix, None).take(2);
        Ok(rows.map(|(_, key)| key.clone()).collect())
    }
}
