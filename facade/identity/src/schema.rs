//! The record kinds of this crate.

use fleetwright_store::{Document, Invalid, Key, RecordId, SchemaBuilder};

use crate::{
    Allocation, Organization, Project, RoleBinding,
    account::AccountRecord,
    audit,
    tenancy::record::{
        ACTOR_INDEX, MEMBER_INDEX, PLACE_INDEX, PLACE_ROLE_INDEX, PROJECTS_INDEX, STATE_INDEX,
    },
};

/// Adds the kinds of this crate with their indexes to a schema: `organization`, `project`, `role-binding`, `quota-account`, `allocation`,
/// `audit-entry` and `audit-prune-date`.
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
    let builder = builder
        .kind(AccountRecord::KIND)
        .index("organization", ["/organization"])
        .kind(Allocation::KIND)
        .index("organization", ["/organization", "/project"]);
    let builder = builder
        .kind(Organization::KIND)
        .unique("name", ["/name"])
        .index(STATE_INDEX, ["/state"])
        .kind(Project::KIND)
        .unique("name", ["/organization", "/name"])
        .index(PROJECTS_INDEX, ["/organization"])
        .index(STATE_INDEX, ["/state"]);
    let builder = builder
        .kind(RoleBinding::KIND)
        .index(ACTOR_INDEX, ["/actor/type", "/actor/name"])
        .index(
            MEMBER_INDEX,
            ["/actor/type", "/actor/name", "/organization"],
        )
        .index(PLACE_INDEX, ["/place"])
        .index(PLACE_ROLE_INDEX, ["/place", "/role"]);
    // Every index begins with the log, and a complete value is in the order of the keys, which is that of time.
    builder
        .kind(audit::PruneDate::KIND)
        .kind(audit::Stored::KIND)
        .index("log", ["/log"])
        .index("project", ["/log", "/project"])
        .index("actor", ["/log", "/actor/type", "/actor/name"])
        .index("resource", ["/log", "/resource"])
        .index("record", ["/log", "/record"])
}

/// The key of the allocation of a record. A kind contains no slash, so the keys of two records differ.
pub(crate) fn key_for(pays_for: &RecordId) -> Result<Key, Invalid> {
    Key::new(pays_for.to_string())
}
