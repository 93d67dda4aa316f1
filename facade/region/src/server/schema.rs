//! The kinds and indexes that servers and their monitor need in a store.

use fleetwright_store::{Document as _, SchemaBuilder};

use super::Server;
use crate::{account::RegionAccount, monitor::RegionScan, references::Reference};

/// The unique index of a server's owner: kind, id.
pub const OWNER_INDEX: &str = "owner";
/// The unique index of a server's machine: region, the cloud's id.
pub const MACHINE_INDEX: &str = "instance";
/// The index of a server's region.
pub const REGION_INDEX: &str = "region";
/// The index of a server's tenant: organization, project.
pub const PROJECT_INDEX: &str = "project";

/// Adds the records of servers, of monitors and of accounts to a schema.
#[must_use]
pub(crate) fn add_to_schema(builder: SchemaBuilder) -> SchemaBuilder {
    let server = builder
        .kind(Server::KIND)
        .unique(OWNER_INDEX, ["/owner/kind", "/owner/id"])
        .unique(MACHINE_INDEX, ["/region", "/machine/id"])
        .index(REGION_INDEX, ["/region"])
        .index(PROJECT_INDEX, ["/organization", "/project"]);
    let server = Reference::SERVER_NETWORK.declare(server);
    let server = Reference::SERVER_SECURITY_GROUPS.declare(server);
    let server = Reference::SERVER_SSH_AUTHORITY.declare(server);
    Reference::SERVER_IMAGE
        .declare(server)
        .kind(RegionScan::KIND)
        .kind(RegionAccount::KIND)
}
