//! The machine of a server: how it is launched, what was done to it, and what was seen of it.

use std::{collections::BTreeSet, net::IpAddr};

use chrono::{DateTime, Utc};
use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceStatus, LaunchToken, MacAddress,
    OptionalVerb,
};
use serde::{Deserialize, Serialize};

use super::{Field, Plan, ServerSpec};

/// A launch, written down before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// Which machine of the server it makes, counted from 1 and never reused.
    pub incarnation: u64,
    /// The name of the launch: [`Server::token`](super::Server::token) of the incarnation.
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
pub struct Machine {
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
    pub unconfirmed: UnconfirmedChange,
    /// How many requests to reboot were carried out or are needless.
    #[serde(default)]
    pub reboots: u64,
    /// The last change that the cloud accepted. What was seen before it says nothing about it.
    #[serde(default)]
    pub last_action: Option<LastAction>,
    /// That it is to be destroyed, and why.
    #[serde(default)]
    pub termination: Option<Termination>,
}

/// What nobody knows of a machine, because a change was sent and not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedChange {
    /// The fields of the spec that the machine may have otherwise than it is recorded.
    pub fields: BTreeSet<Field>,
    /// Keys of tags that it may have.
    pub tag_keys: BTreeSet<String>,
}

impl Machine {
    /// What it takes to give it this spec. A field in unconfirmed is changed even if it is recorded to be as wanted.
    pub fn plan_to(&self, wanted: &ServerSpec, verbs: &BTreeSet<OptionalVerb>) -> Plan {
        let mut plan = Plan::between(&self.applied, wanted, verbs);
        let doubtful = self.unconfirmed.fields.iter();
        plan.methods
            .extend(doubtful.map(|field| (*field, field.needs(verbs))));
        plan
    }
}

/// A call that the cloud accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAction {
    /// Which.
    pub action: MachineAction,
    /// When.
    pub at: DateTime<Utc>,
}

/// A change of a machine that stays the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum MachineAction {
    Start,
    Stop,
    Reboot,
    Resize,
    Reimage,
    Retag,
}

/// That a machine is to be destroyed: written down before the cloud is asked, and never taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// What for.
    pub reason: TerminationReason,
    /// When the cloud accepted it last, if it did.
    pub accepted_at: Option<DateTime<Utc>>,
}

/// Why a machine is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminationReason {
    /// The server is deleted.
    Delete,
    /// Another machine was asked for.
    Replace,
    /// It never booted.
    Failed,
    /// It is not shown any more: so that it does not come back beside its successor.
    Missing,
}

/// What a monitor saw of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Observed {
    /// Of which machine.
    pub machine: InstanceId,
    /// When the look began that saw this first. Looks that saw no change are in the region's
    /// [scan](crate::monitor::RegionScan).
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
        let same = before.filter(|seen| seen.machine == status.id && seen.state == status.state);
        Self {
            machine: status.id,
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
    pub fn same_observation(&self, other: &Self) -> bool {
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
