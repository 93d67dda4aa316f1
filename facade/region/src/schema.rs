//! The kinds of records that are kept here, and by what they are found.

use fleetwright_store::{Document, SchemaBuilder};

use crate::{
    catalog::{Flavor, Image},
    secret::ServerKey,
    server,
    uses::{NETWORK, SECURITY_GROUP, SSH_AUTHORITY, Use},
};

/// The index that holds one record for each name in its scope.
pub(crate) const BY_NAME: &str = "name";
/// The index by which lists are narrowed to an organization or a project.
pub(crate) const BY_PROJECT: &str = "project";

/// The index by which images that were made in a region are found, by how far they are. Those of the file are not in it.
pub(crate) const BY_MAKING: &str = "making";
/// The index by which networks that are going are found.
pub(crate) const BY_STATE: &str = "state";

/// Adds every kind of this crate: the catalog, networks and what is around them, servers with their keys, and the pulses of
/// monitors. A store for any part of a region has all of them, so that what one part uses, another does not delete.
#[must_use]
pub fn add_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    const PROJECT: [&str; 2] = ["/organization", "/project"];
    let builder = builder
        .kind(Flavor::KIND)
        .kind(Image::KIND)
        .index(BY_MAKING, ["/origin/made/region", "/state"]);
    let builder = builder
        .kind(NETWORK)
        .unique(BY_NAME, ["/organization", "/project", "/region", "/name"])
        .index(BY_PROJECT, PROJECT)
        .index(BY_STATE, ["/state"]);
    let builder = builder
        .kind(SECURITY_GROUP)
        .unique(BY_NAME, ["/network", "/name"])
        .index(BY_PROJECT, PROJECT);
    let builder = Use::SECURITY_GROUP_NETWORK
        .declare(builder)
        .kind(SSH_AUTHORITY)
        .unique(BY_NAME, ["/organization", "/project", "/name"])
        .index(BY_PROJECT, PROJECT)
        .kind(ServerKey::KIND);
    server::add_to_schema(builder)
}
