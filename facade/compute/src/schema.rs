//! The kinds of records that are kept here, and by what they are found.

use fleetwright_region::uses::Use;
use fleetwright_store::{Document as _, SchemaBuilder};

use crate::instance::Instance;

/// The unique index of an instance's name in its network, whatever its id is.
pub const NAME_INDEX: &str = "name";
/// The index of an instance's tenant: organization, project.
pub const PROJECT_INDEX: &str = "project";
/// The index of an instance's organization alone: with it a list of an organization is in the order of its ids.
pub const ORGANIZATION_INDEX: &str = "organization";
/// The index of an instance's region.
pub const REGION_INDEX: &str = "region";

/// Adds the records of instances. A store for compute has the kinds of [region](fleetwright_region::schema::add_kinds) and of
/// [identity](fleetwright_identity::schema()) too, so that an instance, its payment and what it stands on are written together.
#[must_use]
pub fn add_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    let instance = builder
        .kind(Instance::KIND)
        .unique(NAME_INDEX, ["/network", "/name"])
        .index(PROJECT_INDEX, ["/organization", "/project"])
        .index(ORGANIZATION_INDEX, ["/organization"])
        .index(REGION_INDEX, ["/region"]);
    let instance = Use::INSTANCE_NETWORK.declare(instance);
    let instance = Use::INSTANCE_SECURITY_GROUPS.declare(instance);
    Use::INSTANCE_SSH_AUTHORITY.declare(instance)
}

/// Adds everything that a store for the whole façade has.
#[must_use]
pub fn add_all_kinds(builder: SchemaBuilder) -> SchemaBuilder {
    add_kinds(fleetwright_region::schema::add_kinds(
        fleetwright_identity::schema(builder),
    ))
}
