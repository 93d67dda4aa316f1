//! The version of the form of a record, which is stored in the record.
//!
//! Owns the two members that every stored object gets beside those of its type. A record without
//! them has version 1: it was written before records had versions.

use serde_json::{Map, Value};

/// The member with the version of the form in which a record was written.
const VERSION: &str = "version";
/// The member with the oldest version that may read a record. Records that all may read have none.
const MIN_READER: &str = "min_reader";
/// The version of a record without one.
const FIRST: u64 = 1;

/// The version of a record, and the oldest version that may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) written: u64,
    pub(super) min_reader: u64,
}

impl Version {
    /// Returns the version of a stored value.
    pub(super) fn of(value: &Value) -> Self {
        let number = |name| value.get(name).and_then(Value::as_u64).unwrap_or(FIRST);
        Self {
            written: number(VERSION).max(FIRST),
            min_reader: number(MIN_READER),
        }
    }

    /// Returns the version of what a writer stores over a record with this version. The requirements
    /// of a newer version stay, because what it wrote stays.
    pub(super) fn after(self, writer: Self) -> Self {
        if writer.written >= self.written {
            return writer;
        }
        Self {
            written: self.written,
            min_reader: self.min_reader.max(writer.min_reader),
        }
    }

    /// Stores it in a value. A value that is no object has no version.
    pub(super) fn stamp(self, value: &mut Value) {
        if let Value::Object(members) = value {
            members.insert(VERSION.to_owned(), self.written.into());
            if self.min_reader > FIRST {
                members.insert(MIN_READER.to_owned(), self.min_reader.into());
            } else {
                members.remove(MIN_READER);
            }
        }
    }
}

/// Returns a member of a value that is reserved for the version.
pub(super) fn reserved(value: &Value) -> Option<&'static str> {
    [VERSION, MIN_READER]
        .into_iter()
        .find(|name| value.get(name).is_some())
}

/// Returns whether two stored values are the same apart from their versions.
pub(super) fn is_same(stored: &Value, known: &Value) -> bool {
    let (Value::Object(stored), Value::Object(known)) = (stored, known) else {
        return stored == known;
    };
    content(stored).eq(content(known))
}

fn content(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let is_content = |(name, _): &(&String, &Value)| *name != VERSION && *name != MIN_READER;
    members.iter().filter(is_content)
}
