//! What is asked for: a server to be made, and what may be lost for a change.

use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_store::Check;
use serde::{Deserialize, Serialize};

use super::{Intent, Owner, Power, ServerId, ServerSpec};
use crate::ids::RegionId;

/// How many bytes of user data a server may have, whatever its cloud allows: 32 KiB. A record contains user data up to three times, as
/// requested, as sent and as applied, and has a size limit of its own.
pub const MAX_USER_DATA_BYTES: usize = fleetwright_cloud_init::MAX_BYTES;

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
    /// What is asked to be done with it. What was asked before it was made counts as done with its first machine.
    pub intent: Intent,
    /// What else must hold in the transaction that makes it: that its owner is still as it was when it asked. A check of these that
    /// fails is handed back as the store's conflict. Where the server is there already, nothing is checked.
    pub guards: Vec<Check>,
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
            intent: Intent::new(Power::Running),
            guards: Vec::new(),
        }
    }
}

/// All that is asked of a server, by an owner who keeps it in a record of its own: not what is to change, but what is to be.
/// Asking for the same again changes nothing, so that an owner who does not know whether it was heard asks again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredState {
    /// What it is to be.
    pub spec: ServerSpec,
    /// What is to be done with it. Its counts are the owner's, and are never lower than before.
    pub intent: Intent,
}

/// What a caller agrees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Nothing may be lost.
    KeepEverything,
    /// The root disk, and addresses, may be lost.
    Destroy,
}
