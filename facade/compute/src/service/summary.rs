//! An instance as lists show it: without user data and without events, so that a page is small and contains no secret.
//!
//! It is another type than the record, so that no update can be made from a summary, which would remove the user data.

use chrono::{DateTime, Utc};
use fleetwright::Tags;
use fleetwright_identity::{Actor, OrganizationId, ProjectId};
use fleetwright_region::{
    ids::{FlavorId, ImageId, NetworkId, RegionId, SshAuthorityId},
    name::Name,
    server::{Health, Power},
};
use fleetwright_store::Revision;
use serde::Serialize;

use super::{InstanceView, Waiting};
use crate::instance::{DeletionMark, Instance, InstanceId, Networking, Provisioning, Status};

/// An instance in a list. [`read`](super::Instances::read) returns the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedInstance {
    /// The record, without user data and events.
    pub instance: InstanceSummary,
    /// The commit that last wrote the record.
    pub revision: Revision,
    /// Its progress.
    pub provisioning: Provisioning,
    /// Its health. Unknown if its region was not scanned within two intervals of the monitor.
    pub health: Health,
    /// When its machine was last observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// What it waits for, or `None` if the desired state is applied. The last attempt is shown to callers who may read the instance.
    pub waiting: Option<Waiting>,
    /// The places of the record that this version does not understand, because a newer one wrote them.
    pub unknown: Vec<String>,
}

/// The record of an instance, without user data and events. The fields are those of [`Instance`] and of its spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the record documents them")]
pub struct InstanceSummary {
    pub id: InstanceId,
    pub name: Name,
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub region: RegionId,
    pub network: NetworkId,
    pub created_at: DateTime<Utc>,
    pub created_by: Actor,
    pub description: Option<String>,
    pub tags: Tags,
    pub flavor: FlavorId,
    pub image: ImageId,
    pub networking: Networking,
    pub ssh_authority: Option<SshAuthorityId>,
    pub power: Power,
    pub generation: u64,
    pub deletion: Option<DeletionMark>,
    pub status: Status,
}

impl From<Instance> for InstanceSummary {
    fn from(instance: Instance) -> Self {
        Self {
            id: instance.id,
            name: instance.name,
            organization: instance.organization,
            project: instance.project,
            region: instance.region,
            network: instance.network,
            created_at: instance.created_at,
            created_by: instance.created_by,
            description: instance.description,
            tags: instance.tags,
            flavor: instance.spec.flavor,
            image: instance.spec.image,
            networking: instance.spec.networking,
            ssh_authority: instance.spec.ssh_authority,
            power: instance.intent.power,
            generation: instance.generation,
            deletion: instance.deletion,
            status: instance.status,
        }
    }
}

/// What a caller may do with a listed instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListAccess {
    /// Read it.
    Read,
    /// Only list it.
    ListOnly,
}

impl ListedInstance {
    /// Leaves out what lists do not show.
    pub(super) fn new(view: InstanceView, access: ListAccess) -> Self {
        let mut waiting = view.waiting;
        if let (ListAccess::ListOnly, Some(waiting)) = (access, &mut waiting) {
            waiting.last_attempt = None;
        }
        Self {
            instance: view.instance.into(),
            revision: view.revision,
            provisioning: view.provisioning,
            health: view.health,
            observed_at: view.observed_at,
            waiting,
            unknown: view.unknown,
        }
    }
}
