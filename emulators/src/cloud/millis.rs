//! Durations as whole milliseconds, as the control endpoint writes and reads them.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer};

/// Writes a duration; what is longer than 64 bits can say is cut.
pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Reads a duration.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}
