//! What tenants ask for.

use fleetwright::Tags;
use fleetwright_identity::{OrganizationId, ProjectId};
use fleetwright_region::{ids::NetworkId, name::Name, server::Consent};
use fleetwright_store::Revision;

use crate::instance::{Instance, InstanceSpec};

/// An instance that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewInstance {
    /// What it is to be called. It never changes.
    pub name: Name,
    /// What its tenant says of it.
    pub description: Option<String>,
    /// Its tags.
    pub tags: Tags,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Where it is to stand, which says in which region. It never changes.
    pub network: NetworkId,
    /// What it is to be.
    pub spec: InstanceSpec,
}

impl NewInstance {
    /// One without description and tags.
    pub fn new(
        name: Name,
        tenant: (OrganizationId, ProjectId),
        network: NetworkId,
        spec: InstanceSpec,
    ) -> Self {
        Self {
            name,
            description: None,
            tags: Tags::new(),
            organization: tenant.0,
            project: tenant.1,
            network,
            spec,
        }
    }
}

/// What an instance is asked to be instead: all that its tenant says of it, also what stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateInstance {
    /// Its name, which is the one it has.
    pub name: Name,
    /// What its tenant says of it.
    pub description: Option<String>,
    /// Its tags, all of them.
    pub tags: Tags,
    /// What it is to be.
    pub spec: InstanceSpec,
    /// What may be lost for it. It holds for this spec alone, and until another one is asked for.
    pub consent: Consent,
    /// Only if nobody has written the record since this revision, what was seen of the instance included.
    pub if_revision: Option<Revision>,
}

impl UpdateInstance {
    /// What an instance is asked to be already: change what is to change. Nothing may be lost unless that is said.
    pub fn of(instance: &Instance) -> Self {
        Self {
            name: instance.name.clone(),
            description: instance.description.clone(),
            tags: instance.tags.clone(),
            spec: instance.spec.clone(),
            consent: Consent::KeepEverything,
            if_revision: None,
        }
    }

    /// All that is said of an instance, of which nothing may be lost.
    pub fn new(name: Name, spec: InstanceSpec) -> Self {
        Self {
            name,
            description: None,
            tags: Tags::new(),
            spec,
            consent: Consent::KeepEverything,
            if_revision: None,
        }
    }
}
