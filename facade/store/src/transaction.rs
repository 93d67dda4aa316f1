//! Transactions as data: checks and writes. They contain no closures, so a remote store can execute
//! them.

use std::fmt;

use crate::{IndexName, IndexValue, Json, Key, Kind, RecordId, Revision};

/// Checks, and the writes that are committed if all checks pass.
///
/// Checks see the state before the writes. No record is written twice. All writes become visible
/// together.
///
/// ```
/// use fleetwright_store::{RecordId, Revision, Transaction};
/// use serde_json::json;
///
/// let network = RecordId::new("network", "blue")?;
/// let server = RecordId::new("server", "s-1")?;
/// let transaction = Transaction::new()
///     .create(server, json!({"network": "blue"}))
///     .replace(network, Revision::ZERO, json!({"servers": 1}));
/// assert_eq!((transaction.checks.len(), transaction.writes.len()), (2, 2));
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a transaction does nothing until a store commits it"]
pub struct Transaction {
    /// The checks. A conflict names the first one that failed.
    pub checks: Vec<Check>,
    /// The writes, in the order in which watches return them.
    pub writes: Vec<Write>,
}

/// A condition on the state before a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The record does not exist.
    Absent(RecordId),
    /// The record exists, at any revision.
    Exists(RecordId),
    /// The record exists and was last written at this revision.
    At(RecordId, Revision),
    /// No record has this index value.
    Unclaimed(Claim),
}

/// An index value of a kind, or its first parts.
///
/// ```
/// use fleetwright_store::{Check, Claim, IndexName, Kind, MemoryStore, RecordId, Schema, Store as _, Transaction};
/// # use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = Schema::builder().kind("network").kind("server").index("network", ["/network"]).build()?;
/// let store = MemoryStore::new(schema);
/// let server = RecordId::new("server", "s-1")?;
/// store.commit(&Transaction::new().create(server, json!({ "network": "n-1" }))).await?;
///
/// // Delete the network, but only if no server uses it.
/// let used = Claim::new(Kind::new("server")?, IndexName::new("network")?, "n-1");
/// let delete = Transaction::new().check(Check::Unclaimed(used)).delete(RecordId::new("network", "n-1")?);
/// assert!(store.commit(&delete).await.unwrap_err().conflict().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The kind.
    pub kind: Kind,
    /// The index.
    pub index: IndexName,
    /// The value.
    pub value: IndexValue,
    /// A record to ignore.
    pub except: Option<Key>,
}

impl Claim {
    /// Creates a claim that ignores no record.
    pub fn new(kind: Kind, index: IndexName, value: impl Into<IndexValue>) -> Self {
        Self {
            kind,
            index,
            value: value.into(),
            except: None,
        }
    }

    /// Ignores one record.
    #[must_use]
    pub fn except(mut self, key: Key) -> Self {
        self.except = Some(key);
        self
    }
}

/// A change of one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Creates or replaces the record.
    Put(RecordId, Json),
    /// Deletes the record. No effect if it does not exist.
    Delete(RecordId),
}

impl Write {
    /// Returns the record that is written.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::Put(id, _) | Self::Delete(id) => id,
        }
    }
}

impl Transaction {
    /// Creates an empty transaction.
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

    /// Creates a record that must not exist.
    pub fn create(self, id: RecordId, value: impl Into<Json>) -> Self {
        self.check(Check::Absent(id.clone())).put(id, value)
    }

    /// Replaces a record that must be unchanged since `read_at`.
    pub fn replace(self, id: RecordId, read_at: Revision, value: impl Into<Json>) -> Self {
        self.check(Check::At(id.clone(), read_at)).put(id, value)
    }

    /// Deletes a record that must be unchanged since `read_at`.
    pub fn remove(self, id: RecordId, read_at: Revision) -> Self {
        self.check(Check::At(id.clone(), read_at)).delete(id)
    }

    /// Creates or replaces a record without a check.
    pub fn put(self, id: RecordId, value: impl Into<Json>) -> Self {
        self.write(Write::Put(id, value.into()))
    }

    /// Deletes a record without a check.
    pub fn delete(self, id: RecordId) -> Self {
        self.write(Write::Delete(id))
    }

    /// Adds the checks and writes of another transaction.
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
            Some(key) => write!(f, " (except {key})"),
            None => Ok(()),
        }
    }
}
