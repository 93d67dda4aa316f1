//! Transactions as data: what must hold, and what is written if it does. Never closures, so that a store on
//! the other side of a network needs no other shape.

use std::fmt;

use serde_json::Value;

use crate::{IndexName, IndexValue, Key, Kind, RecordId, Revision};

/// What must hold before, and what is written if all of it does.
///
/// The checks see the state before the writes. No record is written twice. The writes are seen by
/// everybody together or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a transaction does nothing until a store commits it"]
pub struct Transaction {
    /// What must hold. The first that does not is named in the conflict.
    pub checks: Vec<Check>,
    /// What is written, in the order in which watches show it.
    pub writes: Vec<Write>,
}

/// A condition on the state before a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// There is no such record.
    Absent(RecordId),
    /// There is such a record, at whatever revision.
    Exists(RecordId),
    /// The record is there, and nobody has written it since this revision.
    At(RecordId, Revision),
    /// No record has this under an index.
    Unclaimed(Claim),
}

/// A value under an index of a kind, or the first parts of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of which kind.
    pub kind: Kind,
    /// Under which index.
    pub index: IndexName,
    /// What.
    pub value: IndexValue,
    /// A record that does not count.
    pub except: Option<Key>,
}

impl Claim {
    /// No record of the kind counts less than another.
    pub fn new(kind: Kind, index: IndexName, value: impl Into<IndexValue>) -> Self {
        Self {
            kind,
            index,
            value: value.into(),
            except: None,
        }
    }

    /// Leaves one record out of account.
    #[must_use]
    pub fn except(mut self, key: Key) -> Self {
        self.except = Some(key);
        self
    }
}

/// A change of one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Makes the record, or replaces what it says.
    Put(RecordId, Value),
    /// Deletes the record. Without effect if there is none.
    Delete(RecordId),
}

impl Write {
    /// Which record is written.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::Put(id, _) | Self::Delete(id) => id,
        }
    }
}

impl Transaction {
    /// Without checks and writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check.
    pub fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// Adds a write.
    pub fn write(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Makes a record that must not be there.
    pub fn create(self, id: RecordId, value: Value) -> Self {
        self.check(Check::Absent(id.clone())).put(id, value)
    }

    /// Replaces a record that must be as it was read.
    pub fn replace(self, id: RecordId, read_at: Revision, value: Value) -> Self {
        self.check(Check::At(id.clone(), read_at)).put(id, value)
    }

    /// Deletes a record that must be as it was read.
    pub fn remove(self, id: RecordId, read_at: Revision) -> Self {
        self.check(Check::At(id.clone(), read_at)).delete(id)
    }

    /// Makes or replaces a record, whatever is there.
    pub fn put(self, id: RecordId, value: Value) -> Self {
        self.write(Write::Put(id, value))
    }

    /// Deletes a record, if it is there.
    pub fn delete(self, id: RecordId) -> Self {
        self.write(Write::Delete(id))
    }

    /// Adds all that another transaction checks and writes.
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self.writes.extend(other.writes);
        self
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(id) => write!(f, "{id} must be absent"),
            Self::Exists(id) => write!(f, "{id} must exist"),
            Self::At(id, revision) => write!(f, "{id} must be at revision {revision}"),
            Self::Unclaimed(claim) => write!(f, "{claim} must be unclaimed"),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} = {}", self.index, self.kind, self.value)?;
        match &self.except {
            Some(key) => write!(f, " (but by {key})"),
            None => Ok(()),
        }
    }
}
