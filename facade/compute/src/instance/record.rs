//! The record of an instance.
//!
//! # One writer for each field
//!
//! | writer | fields |
//! | --- | --- |
//! | nobody, after creation | `id`, `server`, `name`, `organization`, `project`, `region`, `network`, `created_at`, `created_by` |
//! | the service | `description`, `tags`, `spec`, `intent`, `consent`, `generation`, `modified`, `deletion` |
//! | the controller | `status` |
//! | both, each at the end | `events` |
//!
//! A writer reads the record, changes its own fields and replaces the record at the revision it read; on a conflict it reads again.
//! The instance's allocation of quota is another record, found by this one's id.

use chrono::{DateTime, Utc};
use fleetwright::Tags;
use fleetwright_identity::{Actor, Amounts, OrganizationId, ProjectId, Scope};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    name::Name,
    server::{Consent, DesiredState, Intent, ServerId},
};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};

use super::{Event, EventKind, InstanceId, InstanceSpec, Status};

/// The number of events that a record keeps. Older ones are dropped.
pub const EVENTS_KEPT: usize = 64;

/// A tenant's instance: the desired state, and the status that a controller observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// The id of its server. It is known before the server exists.
    pub server: ServerId,
    /// Its name, unique in its network.
    pub name: Name,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Its network's region.
    pub region: RegionId,
    /// Its network.
    pub network: NetworkId,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: Actor,
    /// The tenant's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tenant's tags. Its machine has them too.
    #[serde(default)]
    pub tags: Tags,
    /// The desired shape.
    pub spec: InstanceSpec,
    /// The desired power state, and how many reboots and replacements were requested. Never [`Power::Deleted`](fleetwright_region::server::Power::Deleted): that is
    /// [`deletion`](Self::deletion).
    pub intent: Intent,
    /// What its tenant consented to lose for the current spec.
    pub consent: Consent,
    /// Grows with every change of the desired state.
    pub generation: u64,
    /// What it costs once the requested spec is applied to its machine. Until then it is charged at least for what the machine is. `None`
    /// if it is charged for its spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_to: Option<Amounts>,
    /// The last change of the desired state.
    #[serde(default)]
    pub modified: Option<Modification>,
    /// Set once its deletion was requested.
    #[serde(default)]
    pub deletion: Option<DeletionMark>,
    /// What was last observed of it.
    #[serde(default)]
    pub status: Status,
    /// The last events, oldest first; at most [`EVENTS_KEPT`].
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Document for Instance {
    const KIND: &'static str = crate::schema::INSTANCE_KIND;
    const INERT: &'static [&'static str] = &["/events", "/status/conditions"];
}

/// The last change of the desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modification {
    /// The time.
    pub at: DateTime<Utc>,
    /// The caller.
    pub by: Actor,
}

/// The request to delete an instance. It is never removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletionMark {
    /// When the deletion was requested.
    pub at: DateTime<Utc>,
    /// Who requested it.
    pub by: Actor,
    /// The cause of the deletion.
    #[serde(default)]
    pub cause: DeletionCause,
}

/// Why an instance is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeletionCause {
    /// A caller requested it.
    #[default]
    Requested,
    /// Its network is being deleted.
    Network,
}

impl Instance {
    /// The scope in which permissions on it are checked.
    pub fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    /// The desired state of its server.
    pub fn desired_state(&self) -> DesiredState {
        DesiredState {
            spec: self.spec.server(self.network, &self.tags),
            intent: self.intent.clone(),
        }
    }

    /// Marks it as deleted and adds an event. Returns `false` and changes nothing if it is marked already: the first caller is kept.
    pub fn mark_deleted(&mut self, at: DateTime<Utc>, by: &Actor, cause: DeletionCause) -> bool {
        if self.deletion.is_some() {
            return false;
        }
        let mark = DeletionMark {
            at,
            by: by.clone(),
            cause,
        };
        let message = match cause {
            DeletionCause::Requested => format!("{by} requested the deletion"),
            DeletionCause::Network => format!(
                "its network {} is being deleted, and the instance with it",
                self.network
            ),
        };
        self.deletion = Some(mark);
        self.generation = self.generation.saturating_add(1);
        self.modified = Some(Modification { at, by: by.clone() });
        self.note(at, by, EventKind::DeletionRequested, message);
        true
    }

    /// Appends an event, and drops the oldest ones beyond [`EVENTS_KEPT`].
    pub fn note(&mut self, at: DateTime<Utc>, by: &Actor, kind: EventKind, message: String) {
        self.events.push(Event {
            at,
            by: by.clone(),
            kind,
            message,
        });
        let surplus = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..surplus);
    }
}
