//! The change of one record in a transaction.

use std::sync::Arc;

use fleetwright_store::{Json, RecordId, Write};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A record before and after a commit.
#[derive(Clone, Debug)]
pub struct RecordChange {
    /// The record.
    pub id: RecordId,
    /// Its value before, if it existed.
    pub before: Option<Json>,
    /// Its value after, if it exists.
    pub after: Option<Json>,
}

impl RecordChange {
    /// Creates the change that a write makes to a record with this value.
    pub fn new(write: &Write, before: Option<Json>) -> Self {
        let after = match write {
            Write::Put(_, value) => Some(value.clone()),
            Write::Delete(_) => None,
        };
        Self {
            id: write.id().clone(),
            before,
            after,
        }
    }

    /// Returns the record's kind.
    pub fn kind(&self) -> &str {
        self.id.kind.as_str()
    }

    /// Returns whether the value at a JSON pointer changes.
    pub fn differs(&self, path: &str) -> bool {
        known(self.before.as_ref(), path) != known(self.after.as_ref(), path)
    }

    /// Returns whether there is a value at a JSON pointer afterwards.
    pub fn has(&self, path: &str) -> bool {
        let part = self.after.as_ref().and_then(|value| value.pointer(path));
        part.is_some_and(|part| !part.is_null())
    }

    /// Returns whether the value at a JSON pointer is this text afterwards.
    pub fn is(&self, path: &str, text: &str) -> bool {
        let part = self.after.as_ref().and_then(|value| value.pointer(path));
        part.and_then(Value::as_str) == Some(text)
    }

    /// Returns the record before, if it existed and can be parsed.
    pub fn before_as<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        read(self.before.as_ref())
    }

    /// Returns the record after, if it exists and can be parsed.
    pub fn after_as<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        read(self.after.as_ref())
    }
}

/// Returns the value at a JSON pointer, if there is one.
fn known<'v>(value: Option<&'v Json>, path: &str) -> Option<&'v Value> {
    let found = value.and_then(|value| value.pointer(path));
    found.filter(|found| !found.is_null())
}

fn read<T: DeserializeOwned + Send + Sync + 'static>(value: Option<&Json>) -> Option<Arc<T>> {
    value?.parse().ok()
}
