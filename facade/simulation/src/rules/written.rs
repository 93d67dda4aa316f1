//! One record as a transaction changes it.

use fleetwright_store::{RecordId, Write};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A record before and after a commit.
#[derive(Clone, Debug)]
pub struct Written {
    /// Which.
    pub id: RecordId,
    /// How it was, if it was there.
    pub before: Option<Value>,
    /// How it is, if it is there.
    pub after: Option<Value>,
}

impl Written {
    /// What a write does to a record that was so.
    pub fn new(write: &Write, before: Option<Value>) -> Self {
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

    /// What sort of record it is.
    pub fn kind(&self) -> &str {
        self.id.kind.as_str()
    }

    /// Whether a part is another one now.
    pub fn differs(&self, path: &str) -> bool {
        let part = |value: &'_ Option<Value>| {
            value
                .as_ref()
                .and_then(|value| value.pointer(path))
                .cloned()
        };
        let known = |found: Option<Value>| found.filter(|found| !found.is_null());
        known(part(&self.before)) != known(part(&self.after))
    }

    /// Whether there is such a part now.
    pub fn has(&self, path: &str) -> bool {
        let part = self.after.as_ref().and_then(|value| value.pointer(path));
        part.is_some_and(|part| !part.is_null())
    }

    /// Whether a part is this text now.
    pub fn is(&self, path: &str, text: &str) -> bool {
        let part = self.after.as_ref().and_then(|value| value.pointer(path));
        part.and_then(Value::as_str) == Some(text)
    }

    /// As it was, if it was there and can be read.
    pub fn was<T: DeserializeOwned>(&self) -> Option<T> {
        read(self.before.as_ref())
    }

    /// As it is, if it is there and can be read.
    pub fn now<T: DeserializeOwned>(&self) -> Option<T> {
        read(self.after.as_ref())
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}
