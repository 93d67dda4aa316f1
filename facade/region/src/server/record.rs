//! The record of a server: what it is asked to be, how it is being made so, and what was seen of it.
//!
//! # One writer for each field
//!
//! | writer | fields |
//! | --- | --- |
//! | nobody, after it is made | `id`, `owner`, `region`, `organization`, `project`, `created_at` |
//! | [`Servers`](super::Servers), the service | `spec`, `intent`, `generation` |
//! | [`Controller`](crate::controller::Controller) | `launch`, `instance`, `retry`, `conditions`, `observed_generation` |
//! | [`Monitor`](crate::monitor::Monitor) | `observed`, `booted`, `drift` |
//! | all three, each at the end | `events` |
//!
//! A writer reads the record, changes its own fields and replaces the record as it was read; if another one was faster, it
//! reads again.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use fleetwright::{LaunchToken, Reboot};
use fleetwright_identity::{OrganizationId, ProjectId, Scope};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Booted, Condition, ConditionKind, Drift, Event, EventKind, Launch, Machine, Observed, Owner,
    ServerId, ServerSpec, Writer,
};
use crate::{ids::RegionId, schema::SERVER_KIND};

/// A server, hidden behind its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Server {
    /// Which one.
    pub id: ServerId,
    /// Whose. No other server has the same owner.
    pub owner: Owner,
    /// Where it runs.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// When the record was made.
    pub created_at: DateTime<Utc>,
    /// What it is asked to be.
    pub spec: ServerSpec,
    /// What is asked to be done with it.
    pub intent: Intent,
    /// Raised with every change of spec or intent.
    pub generation: u64,
    /// The generation that the controller has made true.
    #[serde(default)]
    pub observed_generation: u64,
    /// The launch that made its machine, or is to make it. Stored before it is sent.
    #[serde(default)]
    pub launch: Option<Launch>,
    /// Its machine, once the cloud has named it.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// That the cloud refused or failed a call, and when the next one may be made.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// What is wrong or pending, in words.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What the cloud showed of its machine.
    #[serde(default)]
    pub observed: Option<Observed>,
    /// The last machine that was seen running. Never taken back.
    #[serde(default)]
    pub booted: Option<Booted>,
    /// In what the machine differs from what it should be, by somebody else's doing.
    #[serde(default)]
    pub drift: BTreeSet<Drift>,
    /// The public half of its key pair, if it has one: the line for `authorized_keys`, which each of its machines is launched
    /// with. The private half is [sealed](crate::secret::ServerKeys), in a record of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// The last things that happened, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Document for Server {
    const KIND: &'static str = SERVER_KIND;
}

/// What is asked to be done with a server: wishes that hold until they are changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// Whether it is to run.
    pub power: Power,
    /// How often a reboot was asked for.
    #[serde(default)]
    pub reboots: u64,
    /// How the last of them is to be done.
    pub reboot_how: Reboot,
    /// How often another machine was asked for.
    #[serde(default)]
    pub replaces: u64,
}

impl Intent {
    /// Nothing was asked for but this.
    pub fn new(power: Power) -> Self {
        Self {
            power,
            reboots: 0,
            reboot_how: Reboot::Soft,
            replaces: 0,
        }
    }
}

/// Whether a server is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// It is to run.
    Running,
    /// It is to be stopped, and to stay so also when it is replaced.
    Stopped,
    /// It is to go, with everything. Final.
    Deleted,
}

/// That a call failed, and when the next one may be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Not before this, unless something else is asked of the server.
    pub not_before: DateTime<Utc>,
    /// How many calls failed in a row.
    pub failures: u32,
    /// What was asked when it failed.
    pub generation: u64,
}

/// How many events a record keeps.
pub const EVENTS_KEPT: usize = 32;

impl Server {
    /// Where it is, as permissions see it.
    pub fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    /// What its `incarnation`th machine is called. A server that is deleted and made anew under the same id is another one,
    /// and so are its machines.
    ///
    /// Frozen, as is [`token`](Self::token): another derivation would forget the launches that are under way.
    pub fn machine_name(&self, incarnation: u64) -> String {
        format!("{}-{incarnation}", self.created_at.timestamp_micros())
    }

    /// The name of the launch that makes its `incarnation`th machine, the same in every process.
    pub fn token(&self, incarnation: u64) -> LaunchToken {
        let name = self.machine_name(incarnation);
        Uuid::new_v5(&self.id.as_uuid(), name.as_bytes()).into()
    }

    /// What was seen of the machine it has now.
    pub fn current_observation(&self) -> Option<&Observed> {
        let instance = self.machine.as_ref()?;
        let observed = self.observed.as_ref();
        observed.filter(|seen| seen.machine == instance.id)
    }

    /// Whether a machine of its present life was ever seen running.
    pub fn has_booted(&self) -> bool {
        match (&self.launch, &self.booted) {
            (Some(launch), Some(booted)) => booted.incarnation >= launch.life,
            (Some(_) | None, None) | (None, Some(_)) => false,
        }
    }

    /// Puts an event at the end, and forgets the oldest beyond [`EVENTS_KEPT`]. One that says the same as the last one is
    /// not repeated.
    pub fn note(
        &mut self,
        at: DateTime<Utc>,
        by: Writer,
        kind: EventKind,
        message: impl Into<String>,
    ) {
        let message = message.into();
        let again = |last: &Event| last.kind == kind && last.message == message;
        if self.events.last().is_some_and(again) {
            return;
        }
        self.events.push(Event {
            at,
            by,
            kind,
            message,
        });
        let surplus = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..surplus);
    }

    /// The condition of this kind, if it is in force.
    pub fn condition(&self, kind: ConditionKind) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// Puts a condition in force. One that is keeps its date.
    pub fn set_condition(&mut self, at: DateTime<Utc>, kind: ConditionKind, message: String) {
        match self.conditions.iter_mut().find(|found| found.kind == kind) {
            Some(found) => found.message = message,
            None => self.conditions.push(Condition {
                kind,
                message,
                since: at,
            }),
        }
    }

    /// Ends all conditions but those to be kept.
    pub fn keep_conditions(&mut self, keep: &[ConditionKind]) {
        self.conditions
            .retain(|condition| keep.contains(&condition.kind));
    }
}
