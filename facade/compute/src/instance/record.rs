//! The record of an instance.
//!
//! # One writer for each field
//!
//! | writer | fields |
//! | --- | --- |
//! | nobody, after it is made | `id`, `server`, `name`, `organization`, `project`, `region`, `network`, `created_at`, `created_by` |
//! | the service | `description`, `tags`, `spec`, `intent`, `consent`, `generation`, `modified`, `deletion` |
//! | the controller | `status` |
//! | both, each at the end | `events` |
//!
//! A writer reads the record, changes its own fields and replaces the record as it was read; if another one was faster, it
//! reads again. What pays for the instance is a record of its own, found by this one's name.

use chrono::{DateTime, Utc};
use fleetwright::Tags;
use fleetwright_identity::{Actor, OrganizationId, ProjectId, Scope};
use fleetwright_region::{
    ids::{NetworkId, RegionId},
    name::Name,
    server::{Consent, DesiredState, Intent, ServerId},
};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};

use super::{Event, EventKind, InstanceId, InstanceSpec, Status};

/// How many events a record keeps.
pub const EVENTS_KEPT: usize = 64;

/// What a tenant asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Instance {
    /// Which one.
    pub id: InstanceId,
    /// The server that realises it: written before there is one.
    pub server: ServerId,
    /// What its tenant calls it. No other instance in the network has the same name.
    pub name: Name,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// Where it runs: where its network is.
    pub region: RegionId,
    /// Where it stands.
    pub network: NetworkId,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// By whom.
    pub created_by: Actor,
    /// What its tenant says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tenant's tags, which its machine has too.
    #[serde(default)]
    pub tags: Tags,
    /// What it is asked to be.
    pub spec: InstanceSpec,
    /// What is asked to be done with it. Never [`Power::Deleted`](fleetwright_region::server::Power::Deleted): that is
    /// [`deletion`](Self::deletion).
    pub intent: Intent,
    /// What its tenant agreed to lose for the spec as it is now.
    pub consent: Consent,
    /// Raised with every change of what is asked.
    pub generation: u64,
    /// The last change of what is asked.
    #[serde(default)]
    pub modified: Option<Modification>,
    /// That it is to go, which is never taken back.
    #[serde(default)]
    pub deletion: Option<DeletionMark>,
    /// What is known of it.
    #[serde(default)]
    pub status: Status,
    /// The last things that happened, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Document for Instance {
    const KIND: &'static str = crate::schema::INSTANCE_KIND;
}

/// Who changed what is asked, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modification {
    /// When.
    pub at: DateTime<Utc>,
    /// By whom.
    pub by: Actor,
}

/// That an instance is to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletionMark {
    /// Since when.
    pub at: DateTime<Utc>,
    /// By whose word.
    pub by: Actor,
    /// What it goes with.
    #[serde(default)]
    pub cause: DeletionCause,
}

/// Why an instance is to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeletionCause {
    /// Somebody asked for it.
    #[default]
    Asked,
    /// Its network is going.
    Network,
}

impl Instance {
    /// Where it is, as permissions see it.
    pub fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    /// What its server is to be, in all.
    pub fn wish(&self) -> DesiredState {
        DesiredState {
            spec: self.spec.server(self.network, &self.tags),
            intent: self.intent.clone(),
        }
    }

    /// Asks for it to go, and writes that down as an event. If that was asked already, nothing is changed and the answer is
    /// `false`: who asked first is kept.
    pub fn mark_deleted(&mut self, at: DateTime<Utc>, by: &Actor, cause: DeletionCause) -> bool {
        if self.deletion.is_some() {
            return false;
        }
        let mark = DeletionMark {
            at,
            by: by.clone(),
            cause,
        };
        let words = match cause {
            DeletionCause::Asked => format!("{by} wants it deleted"),
            DeletionCause::Network => format!("its network {} is going, and it goes", self.network),
        };
        self.deletion = Some(mark);
        self.generation = self.generation.saturating_add(1);
        self.modified = Some(Modification { at, by: by.clone() });
        self.note(at, by, EventKind::DeletionAsked, words);
        true
    }

    /// Puts an event at the end, and forgets the oldest beyond [`EVENTS_KEPT`].
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
