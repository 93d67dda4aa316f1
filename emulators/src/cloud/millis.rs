//! Durations as whole milliseconds, as the control endpoint writes and reads them.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer};

/// Serializes a duration as milliseconds, at most `u64::MAX`.
pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Deserializes a duration from milliseconds.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}
