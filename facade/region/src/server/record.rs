//! The record of a server: its desired state, the progress of applying it, and the observed state.
//!
//! # One writer for each field
//!
//! | writer | fields |
//! | --- | --- |
//! | nobody, after creation | `id`, `owner`, `region`, `organization`, `project`, `created_at` |
//! | [`Servers`](super::Servers), the service | `spec`, `intent`, `generation` |
//! | [`Controller`](crate::controller::Controller) | `launch`, `machine`, `retry`, `conditions`, `observed_generation` |
//! | [`Monitor`](crate::monitor::Monitor) | `observed`, `booted`, `drift` |
//! | all three, each at the end | `events` |
//!
//! An observation that shows that the desired state is reached is written together with the controller's
//! [`Done`](crate::controller::Step::Done), by the controller's own function, in the monitor's transaction.
//!
//! A writer reads the record, changes its own fields and replaces the revision that it read. On a conflict it reads again.

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

/// A server. Tenants see its owner instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Server {
    /// The id.
    pub id: ServerId,
    /// The owner. No other server has the same owner.
    pub owner: Owner,
    /// The region it runs in.
    pub region: RegionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The tenant's project.
    pub project: ProjectId,
    /// When the record was created.
    pub created_at: DateTime<Utc>,
    /// The desired spec.
    pub spec: ServerSpec,
    /// The desired power state, reboots and replacements.
    pub intent: Intent,
    /// Grows with every change of spec or intent.
    pub generation: u64,
    /// The last generation that the controller has fully applied.
    #[serde(default)]
    pub observed_generation: u64,
    /// The launch of its machine. Stored before it is sent.
    #[serde(default)]
    pub launch: Option<Launch>,
    /// Its machine, once the cloud has returned an id.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// Set after a failed call: when the next call may be made.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// Problems and pending steps.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The last observation of its machine.
    #[serde(default)]
    pub observed: Option<Observed>,
    /// The last machine that was observed running. Never removed.
    #[serde(default)]
    pub booted: Option<Booted>,
    /// How the machine differs from the desired state without fleetwright having caused it.
    #[serde(default)]
    pub drift: BTreeSet<Drift>,
    /// The public half of its key pair, if it has one: the line for `authorized_keys`, which each of its machines is launched
    /// with. The private half is [sealed](crate::secret::ServerKeys), in a record of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// The last events, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Document for Server {
    const KIND: &'static str = SERVER_KIND;
    const INERT: &'static [&'static str] = &["/conditions", "/drift", "/events"];
}

/// The desired power state, and how many reboots and replacements were requested. It holds until it is changed.
///
/// ```
/// use fleetwright_region::server::{Intent, Power};
///
/// let mut intent = Intent::new(Power::Stopped);
/// intent.replaces += 1; // one replacement is requested
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// The desired power state.
    pub power: Power,
    /// How many reboots were requested.
    #[serde(default)]
    pub reboots: u64,
    /// How the last requested reboot is done.
    pub reboot_how: Reboot,
    /// How many replacements were requested.
    #[serde(default)]
    pub replaces: u64,
}

impl Intent {
    /// Creates an intent without reboots and replacements.
    pub fn new(power: Power) -> Self {
        Self {
            power,
            reboots: 0,
            reboot_how: Reboot::Soft,
            replaces: 0,
        }
    }
}

/// The desired power state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Running.
    Running,
    /// Stopped, also after a replacement.
    Stopped,
    /// Deleted, with its machine. Final.
    Deleted,
}

/// When the next call may be made after a failed one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// When the call failed. Records from before this field have none.
    #[serde(default)]
    pub since: Option<DateTime<Utc>>,
    /// The earliest time of the next call. A change of the desired state overrides it.
    pub not_before: DateTime<Utc>,
    /// How many calls failed in a row.
    pub failures: u32,
    /// The generation at the time of the failure.
    pub generation: u64,
}

/// How many events a record keeps.
pub const EVENTS_KEPT: usize = 32;

impl Server {
    /// Returns its scope for permission checks.
    pub fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    /// Returns the name of a machine by its incarnation. A server that is deleted and created again under the same id gets other machine
    /// names.
    ///
    /// Frozen, as is [`token`](Self::token): another derivation would forget the launches that are under way.
    pub fn machine_name(&self, incarnation: u64) -> String {
        format!("{}-{incarnation}", self.created_at.timestamp_micros())
    }

    /// Returns the launch token of an incarnation, the same in every process.
    pub fn token(&self, incarnation: u64) -> LaunchToken {
        let name = self.machine_name(incarnation);
        Uuid::new_v5(&self.id.as_uuid(), name.as_bytes()).into()
    }

    /// Returns the last observation of the machine that it has now.
    pub fn current_observation(&self) -> Option<&Observed> {
        let instance = self.machine.as_ref()?;
        let observed = self.observed.as_ref();
        observed.filter(|seen| seen.machine == instance.id)
    }

    /// Returns whether a machine of its current life was ever observed running.
    pub fn has_booted(&self) -> bool {
        match (&self.launch, &self.booted) {
            (Some(launch), Some(booted)) => booted.incarnation >= launch.life,
            (Some(_) | None, None) | (None, Some(_)) => false,
        }
    }

    /// Adds an event, and drops the oldest beyond [`EVENTS_KEPT`]. An event that repeats the last one is not added.
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

    /// Returns the condition of this kind, if it holds.
    pub fn condition(&self, kind: ConditionKind) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// Sets a condition. One that holds already keeps its date.
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

    /// Removes all conditions except these kinds.
    pub fn keep_conditions(&mut self, keep: &[ConditionKind]) {
        self.conditions
            .retain(|condition| keep.contains(&condition.kind));
    }
}
