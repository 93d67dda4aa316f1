//! What a store is, in the plainest way: a list of records, searched from end to end. It shares no code with the
//! stores but the vocabulary, so that a mistake in the judge or in an index is not made twice.

use std::collections::BTreeMap;

use serde_json::Value;

use fleetwright_store::{
    Change, Check, Commit, Found, Part, Record, RecordId, Revision, Transaction, Write,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) records: BTreeMap<RecordId, (Revision, Value)>,
    pub(crate) log: Vec<Commit>,
    pub(crate) compacted: Revision,
}

/// What a commit comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Committed(Revision),
    Conflict(Part, Found),
    Invalid,
}

impl Model {
    pub(crate) fn head(&self) -> Revision {
        self.log
            .last()
            .map_or(Revision::ZERO, |commit| commit.revision)
    }

    /// Commits, with the given revision if it changes anything.
    pub(crate) fn commit(&mut self, transaction: &Transaction, revision: Revision) -> Expected {
        if contradicts_itself(transaction) {
            return Expected::Invalid;
        }
        for (position, check) in transaction.checks.iter().enumerate() {
            if let Some(found) = self.against(check) {
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
        if let Some((position, holder)) = taken(&after, transaction) {
            return Expected::Conflict(Part::Write(position), Found::HeldBy(holder.key));
        }
        if changes.is_empty() {
            return Expected::Committed(self.head());
        }
        self.records = after;
        self.log.push(Commit { revision, changes });
        Expected::Committed(revision)
    }

    pub(crate) fn compact(&mut self, through: Revision) {
        self.compacted = self.compacted.max(through.min(self.head()));
    }

    /// The records of a kind that fit, in the order of keys.
    pub(crate) fn list(&self, kind: &str, fits: impl Fn(&Value) -> bool) -> Vec<Record> {
        let of_kind = self
            .records
            .iter()
            .filter(|(id, _)| id.kind.as_str() == kind);
        of_kind
            .filter(|(_, (_, value))| fits(value))
            .map(|(id, (revision, value))| record(id, *revision, value))
            .collect()
    }

    fn against(&self, check: &Check) -> Option<Found> {
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

fn record(id: &RecordId, revision: Revision, value: &Value) -> Record {
    Record {
        id: id.clone(),
        revision,
        value: value.clone(),
    }
}

fn contradicts_itself(transaction: &Transaction) -> bool {
    let writes = &transaction.writes;
    let pairs = || {
        let firsts = writes.iter().enumerate();
        firsts.flat_map(|(at, first)| writes[at + 1..].iter().map(move |second| (first, second)))
    };
    let twice = pairs().any(|(first, second)| first.id() == second.id());
    let claims = pairs().any(|pair| match pair {
        (Write::Put(a, first), Write::Put(b, second)) => {
            a.kind == b.kind && !first["name"].is_null() && first["name"] == second["name"]
        }
        (Write::Put(..) | Write::Delete(_), Write::Put(..) | Write::Delete(_)) => false,
    });
    twice || claims
}

/// The first write that would share its name, and with whom.
fn taken(
    after: &BTreeMap<RecordId, (Revision, Value)>,
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
