//! The kinds of records of this crate, with their indexes.
//!
//! Kind and index names are part of the stored format: a store that was written with other names cannot be read.

use fleetwright_identity::{Content, Resource};
use fleetwright_store::{Document, SchemaBuilder};

use crate::{
    catalog::{Flavor, Image},
    references::Reference,
    secret::{SealedField, ServerKey},
    server,
};

/// The kind of the records of servers.
pub const SERVER_KIND: &str = "server";
/// The kind of the records of networks.
pub const NETWORK_KIND: &str = "network";
/// The kind of the records of security groups.
pub const SECURITY_GROUP_KIND: &str = "security-group";
/// The kind of the records of SSH certificate authorities.
pub const SSH_AUTHORITY_KIND: &str = "ssh-authority";

/// The unique index of names in their scope.
pub(crate) const BY_NAME: &str = "name";
/// The index by organization and project, for lists.
pub(crate) const BY_PROJECT: &str = "project";

/// The index of tenants' images by region and state. Images of the catalog file are not in it.
pub(crate) const BY_SNAPSHOT_STATE: &str = "snapshot-state";
/// The unique index of tenants' images by project and name. Images of the catalog file are not in it.
pub(crate) const BY_OWNER_AND_NAME: &str = "owner-name";
/// The index of networks by state, by which networks that are being deleted are found.
pub(crate) const BY_STATE: &str = "state";

/// Returns the kinds of this crate that belong to projects: a project that has any of these is not deleted. Security groups belong to
/// networks.
///
/// ```
/// use fleetwright_region::schema;
///
/// assert!(schema::contents().iter().any(|content| content.kind == schema::NETWORK_KIND));
/// ```
pub fn contents() -> [Content; 4] {
    let content = |kind, index, resource| Content {
        kind,
        index,
        resource,
    };
    [
        content(NETWORK_KIND, BY_PROJECT, Resource::Networks),
        content(
            SSH_AUTHORITY_KIND,
            BY_PROJECT,
            Resource::SshCertificateAuthorities,
        ),
        content(Image::KIND, BY_OWNER_AND_NAME, Resource::Images),
        content(SERVER_KIND, server::PROJECT_INDEX, Resource::Servers),
    ]
}

/// Returns the fields of this crate's records that are [sealed](crate::secret::SealedStore): every copy of user data in a server's
/// record, as requested, as launched with what the system adds, and as applied.
///
/// ```
/// use fleetwright_region::schema;
///
/// assert!(schema::sealed_fields().any(|field| field.pointer == "/spec/user_data"));
/// ```
pub fn sealed_fields() -> impl Iterator<Item = SealedField> {
    const POINTERS: [(&str, &str); 4] = [
        ("/spec/user_data", "/spec/sealed_user_data"),
        ("/launch/spec/user_data", "/launch/spec/sealed_user_data"),
        ("/launch/config/user_data", "/launch/sealed_user_data"),
        (
            "/machine/applied/user_data",
            "/machine/applied/sealed_user_data",
        ),
    ];
    POINTERS.into_iter().map(|(pointer, unopened)| SealedField {
        kind: SERVER_KIND,
        pointer,
        unopened,
    })
}

/// Adds every kind of this crate to a schema: the catalog, networks with their groups and authorities, servers with their
/// keys, the scans of monitors, and the accounts of regions. A store for any part of a region needs all of them, so that no part deletes a record
/// that another part uses.
///
/// ```
/// use fleetwright_region::schema;
/// use fleetwright_store::{MemoryStore, Schema};
///
/// let store = MemoryStore::new(schema::add_kinds(Schema::builder()).build()?);
/// # let _ = store;
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[must_use]
pub fn add_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    const PROJECT: [&str; 2] = ["/organization", "/project"];
    let builder = builder
        .kind(Flavor::KIND)
        .kind(Image::KIND)
        .index(BY_SNAPSHOT_STATE, ["/origin/snapshot/region", "/state"])
        .unique(
            BY_OWNER_AND_NAME,
            [
                "/origin/snapshot/owner/organization",
                "/origin/snapshot/owner/project",
                "/name",
            ],
        );
    let builder = builder
        .kind(NETWORK_KIND)
        .unique(BY_NAME, ["/organization", "/project", "/region", "/name"])
        .index(BY_PROJECT, PROJECT)
        .index(BY_STATE, ["/state"]);
    let builder = builder
        .kind(SECURITY_GROUP_KIND)
        .unique(BY_NAME, ["/network", "/name"])
        .index(BY_PROJECT, PROJECT);
    let builder = Reference::SECURITY_GROUP_NETWORK
        .declare(builder)
        .kind(SSH_AUTHORITY_KIND)
        .unique(BY_NAME, ["/organization", "/project", "/name"])
        .index(BY_PROJECT, PROJECT)
        .kind(ServerKey::KIND);
    server::add_to_schema(builder)
}
