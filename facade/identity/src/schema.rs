//! The record kinds of this crate.

use fleetwright_store::{Document, Invalid, Key, RecordId, SchemaBuilder};

use crate::{Allocation, account::AccountRecord};

/// Adds the kinds `quota-account` and `allocation` with their indexes to a schema.
///
/// ```
/// use fleetwright_identity::schema;
/// use fleetwright_store::Schema;
///
/// let schema = schema(Schema::builder().kind("instance")).build()?;
/// # let _ = schema;
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
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
