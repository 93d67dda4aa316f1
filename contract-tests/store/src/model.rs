//! The model of MODEL-01: a store as a plain map of records, without indexes.
//!
//! It defines what each call returns in the simplest possible way, by searching all records. It
//! uses the types of `fleetwright-store` and none of its logic: all stores share one evaluation of
//! transactions, so a mistake there must not be repeated here. It never chooses a revision; the
//! caller passes the one that the store chose.

use std::collections::BTreeMap;

use serde_json::Value;

use fleetwright_store::{
    Change, Check, Commit, Found, Json, Part, Record, RecordId, Revision, Transaction, Write,
};

/// All records with their revisions, and every commit since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) records: BTreeMap<RecordId, (Revision, Json)>,
    pub(crate) log: Vec<Commit>,
    pub(crate) compacted: Revision,
}

/// The result of a commit, without the parts that stores may word differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Committed(Revision),
    Conflict(Part, Found),
    Invalid,
}

impl Model {
    /// Returns the revision of the last commit.
    pub(crate) fn head(&self) -> Revision {
        self.log
            .last()
            .map_or(Revision::ZERO, |commit| commit.revision)
    }

    /// Commits a transaction. It gets the given revision if it changes anything.
    pub(crate) fn commit(&mut self, transaction: &Transaction, revision: Revision) -> Expected {
        if contradicts_itself(transaction) {
            return Expected::Invalid;
        }
        for (position, check) in transaction.checks.iter().enumerate() {
            if let Some(found) = self.find_conflict(check) {
                return Expected::Conflict(Part::Check(position), found);
            }
        }
        let mut after = self.records.clone();
        let mut changes = Vec::new();
        for write in &transaction.writes {
            match write {
                Write::Put(id, value) => {
                    after.insert(id.clone(), (revision, value.clone()));
                    changes.push(Change::Put(record(id, revision, value)));
                }
                Write::Delete(id) => {
                    if let Some((before, value)) = after.remove(id) {
                        changes.push(Change::Deleted(record(id, before, &value)));
                    }
                }
            }
        }
        if let Some((position, holder)) = find_taken_name(&after, transaction) {
            return Expected::Conflict(Part::Write(position), Found::HeldBy(holder.key));
        }
        if changes.is_empty() {
            return Expected::Committed(self.head());
        }
        self.records = after;
        self.log.push(Commit { revision, changes });
        Expected::Committed(revision)
    }

    /// Forgets the changes up to a revision. The log keeps them, to compute revisions from.
    pub(crate) fn compact(&mut self, through: Revision) {
        self.compacted = self.compacted.max(through.min(self.head()));
    }

    /// Returns the records of a kind that match, in the order of their keys.
    pub(crate) fn list(&self, kind: &str, matches: impl Fn(&Value) -> bool) -> Vec<Record> {
        let of_kind = self
            .records
            .iter()
            .filter(|(id, _)| id.kind.as_str() == kind);
        of_kind
            .filter(|(_, (_, value))| matches(value))
            .map(|(id, (revision, value))| record(id, *revision, value))
            .collect()
    }

    /// Returns what contradicts a check, or `None` if it holds.
    fn find_conflict(&self, check: &Check) -> Option<Found> {
        let revision = |id: &RecordId| self.records.get(id).map(|(revision, _)| *revision);
        match check {
            Check::Absent(id) => revision(id).map(Found::At),
            Check::Exists(id) => revision(id).is_none().then_some(Found::Absent),
            Check::At(id, wanted) => match revision(id) {
                None => Some(Found::Absent),
                Some(found) => (found != *wanted).then_some(Found::At(found)),
            },
            Check::Unclaimed(claim) => {
                let field = claim.index.as_str();
                let wanted = claim.value.to_string();
                let has = |value: &Value| format!("({})", value[field]) == wanted;
                let mut holders = self.list(claim.kind.as_str(), has).into_iter();
                let counts = |record: &Record| Some(record.key()) != claim.except.as_ref();
                holders
                    .find(counts)
                    .map(|record| Found::HeldBy(record.id.key))
            }
        }
    }
}

fn record(id: &RecordId, revision: Revision, value: &Json) -> Record {
    Record {
        id: id.clone(),
        revision,
        value: value.clone(),
    }
}

/// Returns whether two writes are of the same record or claim the same name.
fn contradicts_itself(transaction: &Transaction) -> bool {
    let writes = &transaction.writes;
    let pairs = || {
        let firsts = writes.iter().enumerate();
        firsts.flat_map(|(at, first)| writes[at + 1..].iter().map(move |second| (first, second)))
    };
    let same_record = pairs().any(|(first, second)| first.id() == second.id());
    let same_name = pairs().any(|pair| match pair {
        (Write::Put(a, first), Write::Put(b, second)) => {
            a.kind == b.kind && !first["name"].is_null() && first["name"] == second["name"]
        }
        (Write::Put(..) | Write::Delete(_), Write::Put(..) | Write::Delete(_)) => false,
    });
    same_record || same_name
}

/// Returns the first write whose name another record has, with the id of that record.
fn find_taken_name(
    after: &BTreeMap<RecordId, (Revision, Json)>,
    transaction: &Transaction,
) -> Option<(usize, RecordId)> {
    let positions = transaction.writes.iter().enumerate();
    let puts = positions.filter_map(|(position, write)| match write {
        Write::Put(id, value) => Some((position, id, value)),
        Write::Delete(_) => None,
    });
    for (position, id, value) in puts {
        let shares = |holder: &RecordId, held: &Value| {
            holder.kind == id.kind
                && holder != id
                && !value["name"].is_null()
                && held["name"] == value["name"]
        };
        let mut others = after.iter();
        if let Some((holder, _)) = others.find(|(holder, (_, held))| shares(holder, held)) {
            return Some((position, holder.clone()));
        }
    }
    None
}
