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

use std::{collections::BTreeSet, net::IpAddr};

use chrono::{DateTime, Utc};
use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceStatus, LaunchToken, MacAddress,
    OptionalVerb, Reboot,
};
use fleetwright_identity::{OrganizationId, ProjectId, Scope};
use fleetwright_store::Document;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Condition, ConditionKind, Event, EventKind, Field, Owner, Plan, ServerId, ServerSpec, Writer,
};
use crate::{ids::RegionId, uses};

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
    pub instance: Option<CloudInstance>,
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
    /// The last things that happened, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Document for Server {
    const KIND: &'static str = uses::SERVER;
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

/// A launch, written down before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// Which machine of the server it makes, counted from 1 and never reused.
    pub incarnation: u64,
    /// The name of the launch: [`Server::token`] of the incarnation.
    pub token: LaunchToken,
    /// Which launch of its life it is, counted from 1. A life begins when the server is made or replaced on request.
    pub attempt: u32,
    /// The first incarnation of its life.
    pub life: u64,
    /// The number of requests to replace the server that it serves.
    pub replaces: u64,
    /// The number of requests to reboot that it makes needless.
    pub reboots: u64,
    /// What was asked for.
    pub spec: ServerSpec,
    /// The same as it was sent to the cloud, so that every repetition is the same launch.
    pub config: InstanceConfig,
    /// When it was last sent, as long as nobody knows what became of it.
    pub sent_at: Option<DateTime<Utc>>,
    /// Whether the cloud refuses the token for good, and shows no machine of it.
    #[serde(default)]
    pub spent: bool,
}

/// The machine of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CloudInstance {
    /// What the cloud calls it.
    pub id: InstanceId,
    /// Which machine of the server it is.
    pub incarnation: u64,
    /// When its id was written down.
    pub recorded_at: DateTime<Utc>,
    /// The spec that it has, changed with every change in place.
    pub applied: ServerSpec,
    /// What may have been applied beside that: written before a change in place is sent, and taken back once it is
    /// answered.
    #[serde(default)]
    pub doubt: Doubt,
    /// How many requests to reboot were carried out or are needless.
    #[serde(default)]
    pub reboots: u64,
    /// The last change that the cloud accepted. What was seen before it says nothing about it.
    #[serde(default)]
    pub acted: Option<Acted>,
    /// That it is to be destroyed, and why.
    #[serde(default)]
    pub ending: Option<Ending>,
}

/// What nobody knows of a machine, because a change was sent and not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// The fields of the spec that the machine may have otherwise than it is recorded.
    pub fields: BTreeSet<Field>,
    /// Keys of tags that it may have.
    pub tag_keys: BTreeSet<String>,
}

impl CloudInstance {
    /// What it takes to give it this spec. A field in doubt is changed even if it is recorded to be as wanted.
    pub fn plan_to(&self, wanted: &ServerSpec, verbs: &BTreeSet<OptionalVerb>) -> Plan {
        let mut plan = Plan::between(&self.applied, wanted, verbs);
        let doubtful = self.doubt.fields.iter();
        plan.ways
            .extend(doubtful.map(|field| (*field, field.needs(verbs))));
        plan
    }
}

/// A call that the cloud accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Which.
    pub act: Act,
    /// When.
    pub at: DateTime<Utc>,
}

/// A change of a machine that stays the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Act {
    Start,
    Stop,
    Reboot,
    Resize,
    Reimage,
    Retag,
}

/// That a machine is to be destroyed: written down before the cloud is asked, and never taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// What for.
    pub why: Why,
    /// When the cloud accepted it last, if it did.
    pub accepted_at: Option<DateTime<Utc>>,
}

/// Why a machine is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The server is deleted.
    Delete,
    /// Another machine was asked for.
    Replace,
    /// It never booted.
    Failed,
    /// It is not shown any more: so that it does not come back beside its successor.
    Missing,
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

/// What a monitor saw of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Observed {
    /// Of which machine.
    pub instance: InstanceId,
    /// When the look began that saw this first. Looks that saw no change are in the region's
    /// [pulse](crate::monitor::Pulse).
    pub at: DateTime<Utc>,
    /// Its state.
    pub state: CloudInstanceState,
    /// Since when it was seen in this state.
    pub since: DateTime<Utc>,
    /// Its state in the cloud's own word.
    pub native_state: Option<String>,
    /// Why it is in that state, in the cloud's words.
    pub state_reason: Option<String>,
    /// Its address inside its network.
    pub private_ip: Option<IpAddr>,
    /// Its public address.
    pub public_ip: Option<IpAddr>,
    /// Its hardware address.
    pub mac_address: Option<MacAddress>,
    /// Whether it was shown at all.
    pub presence: Presence,
}

impl Observed {
    /// What a status that was asked for at `at` shows, after what was seen before.
    pub fn of(status: InstanceStatus, at: DateTime<Utc>, before: Option<&Self>) -> Self {
        let same = before.filter(|seen| seen.instance == status.id && seen.state == status.state);
        Self {
            instance: status.id,
            at,
            state: status.state,
            since: same.map_or(at, |seen| seen.since),
            native_state: status.native_state,
            state_reason: status.state_reason,
            private_ip: status.private_ip,
            public_ip: status.public_ip,
            mac_address: status.mac_address,
            presence: Presence::Shown,
        }
    }

    /// Whether another look saw the same, whenever that was.
    pub fn same_sight(&self, other: &Self) -> bool {
        let timeless = |seen: &Self| Self {
            at: DateTime::UNIX_EPOCH,
            ..seen.clone()
        };
        timeless(self) == timeless(other)
    }
}

/// Whether the last look showed a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It did.
    Shown,
    /// It did not, which proves nothing yet. The other fields are of the last one that did.
    Absent(DateTime<Utc>),
    /// The cloud has no such machine: a complete list without it, and a question for it by name that was answered
    /// "not found", both past the consistency window.
    Missing(DateTime<Utc>),
}

/// That a machine was seen running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// Which machine of the server.
    pub incarnation: u64,
    /// When that was first seen.
    pub at: DateTime<Utc>,
}

/// A difference between what a machine is and what it should be, that nobody here made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drift {
    /// The cloud has no such machine.
    Missing,
    /// It was destroyed, and not from here.
    Destroyed,
    /// It was started or stopped, and not from here.
    Power,
    /// Its tags were changed.
    Tags,
    /// It has been in a passing state for too long.
    Stuck,
}

impl Drift {
    /// Every sort.
    pub const ALL: [Self; 5] = [
        Self::Missing,
        Self::Destroyed,
        Self::Power,
        Self::Tags,
        Self::Stuck,
    ];

    /// As metrics and events have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Destroyed => "destroyed",
            Self::Power => "power",
            Self::Tags => "tags",
            Self::Stuck => "stuck",
        }
    }
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
    pub fn seen(&self) -> Option<&Observed> {
        let instance = self.instance.as_ref()?;
        let observed = self.observed.as_ref();
        observed.filter(|seen| seen.instance == instance.id)
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
