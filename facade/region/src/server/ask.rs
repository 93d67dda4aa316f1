//! What is asked for: a server to be made, and what may be lost for a change.

use fleetwright_identity::{OrganizationId, ProjectId};

use super::{Owner, Power, ServerId, ServerSpec};
use crate::ids::RegionId;

/// How many bytes of user data a server takes, whatever its cloud would. A record holds them as they are asked for, as they were
/// sent and as they were applied, and has a limit of its own.
pub const MAX_USER_DATA_BYTES: usize = 32 * 1024;

/// How many security groups a server takes: each is a check of its transaction and an entry of its record's index.
pub const MAX_SECURITY_GROUPS: usize = 32;

/// A server to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewServer {
    /// Which one. Its owner derives it, so that asking again is asking for the same.
    pub id: ServerId,
    /// Whose.
    pub owner: Owner,
    /// Where.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// What it is to be.
    pub spec: ServerSpec,
    /// Whether it is to run.
    pub power: Power,
}

impl NewServer {
    /// A server that is to run.
    pub fn new(
        id: ServerId,
        owner: Owner,
        region: RegionId,
        tenant: (OrganizationId, ProjectId),
        spec: ServerSpec,
    ) -> Self {
        Self {
            id,
            owner,
            region,
            organization: tenant.0,
            project: tenant.1,
            spec,
            power: Power::Running,
        }
    }
}

/// What a caller agrees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Nothing may be lost.
    KeepEverything,
    /// The root disk, and addresses, may be lost.
    Destroy,
}
