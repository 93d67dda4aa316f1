//! What this crate keeps in a store.

use fleetwright_store::{Document, Invalid, Key, RecordId, SchemaBuilder};

use crate::{Allocation, account::AccountRecord};

/// Adds the kinds and indexes of this crate, so that one store serves identity, region and compute: `quota-account` and
/// `allocation`.
#[must_use]
pub fn schema(builder: SchemaBuilder) -> SchemaBuilder {
    builder
        .kind(AccountRecord::KIND)
        .index("organization", ["/organization"])
        .kind(Allocation::KIND)
        .index("organization", ["/organization", "/project"])
}

/// The key of the allocation of a record. A kind contains no slash, so the keys of two records differ.
pub(crate) fn key_for(pays_for: &RecordId) -> Result<Key, Invalid> {
    Key::new(pays_for.to_string())
}
