//! What this crate keeps in a store.

use fleetwright_store::{Document, Invalid, Key, RecordId, SchemaBuilder};

use crate::{Allocation, account::AccountRecord, saga::Saga};

/// Adds the kinds and indexes of this crate, so that one store serves identity, region and compute: `quota-account`,
/// `allocation` and `saga`.
#[must_use]
pub fn schema(builder: SchemaBuilder) -> SchemaBuilder {
    builder
        .kind(AccountRecord::KIND)
        .index("organization", ["/organization"])
        .kind(Allocation::KIND)
        .index("organization", ["/organization", "/project"])
        .kind(Saga::KIND)
        .index("queue", ["/queue", "/due"])
}

/// The key of what there is one of for each record: its allocation, its saga. A kind has no slash, so no two are the same.
pub(crate) fn key_for(pays_for: &RecordId) -> Result<Key, Invalid> {
    Key::new(pays_for.to_string())
}
