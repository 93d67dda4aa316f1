//! Records and revisions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Json, Key, Kind, RecordId};

/// A point in the history of a store.
///
/// Every commit that changes something raises the revision of the whole store: by one in the stores
/// of this project, by any number in others. All writes of a transaction have the same revision.
///
/// ```
/// use fleetwright_store::Revision;
///
/// assert_eq!(Revision::ZERO.next(), Revision(1)); // of the first commit
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision before the first commit.
    pub const ZERO: Self = Self(0);

    /// Returns the next revision.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A record at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The id.
    pub id: RecordId,
    /// The revision of the last write. It also grows when a record is deleted and created again.
    pub revision: Revision,
    /// The value.
    pub value: Json,
}

impl Record {
    /// Returns the kind.
    pub fn kind(&self) -> &Kind {
        &self.id.kind
    }

    /// Returns the key.
    pub fn key(&self) -> &Key {
        &self.id.key
    }
}

/// A record that cannot be read: its bytes are damaged, or do not match the expected type.
///
/// ```
/// use fleetwright_store::{Damaged, RecordId, Revision};
///
/// let id = RecordId::new("server", "s-1")?;
/// let damaged = Damaged::new(id, Revision(7), "the value is not JSON");
/// assert!(!damaged.is_newer);
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damaged {
    /// The id.
    pub id: RecordId,
    /// The revision of the last write. With it the record can be replaced or deleted.
    pub revision: Revision,
    /// The reason.
    pub reason: String,
    /// Whether nothing is damaged, and a newer version wrote the record. It must be left to newer
    /// programs: this one can neither replace it without losing data nor decide on it.
    pub is_newer: bool,
}

impl Damaged {
    /// Creates a record that is damaged.
    pub fn new(id: RecordId, revision: Revision, reason: impl Into<String>) -> Self {
        Self {
            id,
            revision,
            reason: reason.into(),
            is_newer: false,
        }
    }

    /// Creates a record that a newer version wrote.
    pub fn newer(id: RecordId, revision: Revision, reason: impl Into<String>) -> Self {
        Self {
            is_newer: true,
            ..Self::new(id, revision, reason)
        }
    }
}
