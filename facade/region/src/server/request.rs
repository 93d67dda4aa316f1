//! The parameters of requests: a new server, a desired state, and consent.

use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_store::Check;
use serde::{Deserialize, Serialize};

use super::{Intent, Owner, Power, ServerId, ServerSpec, ServerView};
use crate::ids::RegionId;

/// How many bytes of user data a server may have, whatever its cloud allows: 32 KiB. A record contains user data up to three times, as
/// requested, as sent and as applied, and has a size limit of its own.
pub const MAX_USER_DATA_BYTES: usize = fleetwright_cloud_init::MAX_BYTES;

/// How many security groups a server may have. Each is a check of the transaction and an entry of the record's index.
pub const MAX_SECURITY_GROUPS: usize = 32;

/// A server to create.
///
/// ```
/// use fleetwright_region::{
///     ids::{FlavorId, ImageId, NetworkId, RegionId},
///     server::{Intent, NewServer, Owner, Power, ServerId, ServerSpec},
/// };
/// use uuid::Uuid;
///
/// let network = NetworkId::from_uuid(Uuid::from_u128(3));
/// let spec = ServerSpec::new(FlavorId::new("small")?, ImageId::new("debian-13")?, network);
/// let tenant = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
/// let (id, owner) = (ServerId::from_uuid(Uuid::from_u128(7)), Owner::new("instance", "web-01"));
/// let mut new = NewServer::new(id, owner, RegionId::new("north")?, tenant, spec);
/// new.intent = Intent::new(Power::Stopped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewServer {
    /// The id of the server. The owner derives it, so that a repeated request is for the same server.
    pub id: ServerId,
    /// The owner.
    pub owner: Owner,
    /// The region it runs in.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// The desired spec.
    pub spec: ServerSpec,
    /// The desired power state. Reboots and replacements that are counted here are done once the first machine is launched.
    pub intent: Intent,
    /// Further checks of the transaction that creates it, such as that the owner is unchanged. A check that fails is returned as the
    /// store's conflict. If the server exists already, nothing is checked.
    pub guards: Vec<Check>,
}

impl NewServer {
    /// Creates the parameters of a server that runs, without guards.
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

/// The complete desired state of a server, kept by the owner in a record of its own. Applying the same state again changes nothing, so
/// an owner that does not know whether it was applied applies it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredState {
    /// The desired spec.
    pub spec: ServerSpec,
    /// The desired power state, and the owner's counts of reboots and replacements, which never fall.
    pub intent: Intent,
}

/// What a caller agrees to lose by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Nothing: a destructive change is refused.
    KeepEverything,
    /// The root disk and the addresses.
    Destroy,
}

/// The result of [`Servers::ensure_with`](super::Servers::ensure_with).
#[derive(Clone, Debug)]
pub enum EnsuredServer {
    /// It was created, together with what the caller added.
    Created(ServerView),
    /// It existed.
    Existing(ServerView),
}
