//! Records and the revisions that order everything that happens to them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Key, Kind, RecordId};

/// A point in the history of a store.
///
/// Every commit that changes something raises it, for the whole store: by one in the stores here, by any
/// number in others. All that one transaction writes has the same revision.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// Before the first commit.
    pub const ZERO: Self = Self(0);

    /// The one after this.
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

/// A record as it was at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it is found by.
    pub id: RecordId,
    /// The commit that wrote it last. A record that is deleted and made anew has a larger one.
    pub revision: Revision,
    /// What it says.
    pub value: Value,
}

impl Record {
    /// What sort of thing it is.
    pub fn kind(&self) -> &Kind {
        &self.id.kind
    }

    /// Which one of its kind.
    pub fn key(&self) -> &Key {
        &self.id.key
    }
}

/// A record that cannot be read: its bytes are not what a store wrote, or not what a type expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Which.
    pub id: RecordId,
    /// The commit that wrote it last. With it the record can be replaced or deleted.
    pub revision: Revision,
    /// What is wrong with it.
    pub reason: String,
}
