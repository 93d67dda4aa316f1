//! The machine of a server: its launch, the changes made to it, and what was observed of it.

use std::{collections::BTreeSet, net::IpAddr};

use chrono::{DateTime, Utc};
use fleetwright::{
    AccountId, CloudInstanceState, InstanceConfig, InstanceId, InstanceStatus, LaunchToken,
    MacAddress, OptionalVerb,
};
use serde::{Deserialize, Serialize};

use super::{Field, Plan, ServerSpec};
use crate::{
    ids::{FlavorId, ImageId},
    secret::UnopenedUserData,
};

/// A launch. It is stored before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// The number of the machine that it launches, counted from 1 and never reused.
    pub incarnation: u64,
    /// The launch token: [`Server::token`](super::Server::token) of the incarnation.
    pub token: LaunchToken,
    /// The number of the launch in its life, counted from 1. A life starts when the server is created or replaced on request.
    pub attempt: u32,
    /// The first incarnation of its life.
    pub life: u64,
    /// The number of replacement requests that this launch satisfies.
    pub replaces: u64,
    /// The number of reboot requests that this launch makes unnecessary.
    pub reboots: u64,
    /// The desired spec when it was launched.
    pub spec: ServerSpec,
    /// The config that was sent to the cloud. Every retry sends the same.
    #[serde(deserialize_with = "crate::secret::read_config")]
    pub config: InstanceConfig,
    /// Set if the user data of the config cannot be opened. Such a launch is not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_user_data: Option<UnopenedUserData>,
    /// When it was last sent, while its outcome is unknown.
    pub sent_at: Option<DateTime<Utc>>,
    /// Whether the token is spent, and the cloud lists no machine for it.
    #[serde(default)]
    pub spent: bool,
    /// Set before the launch is sent, and removed once its result is stored and the account was confirmed after it, or it is settled. While
    /// it is set, the launch may have reached another account, also if the process that sent it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<UnconfirmedLaunch>,
}

/// What is known of a launch that may have reached another account. Nothing is known before its result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnconfirmedLaunch {
    /// The other account that the provider reported after the launch was sent. `None` if none was reported.
    pub account: Option<AccountId>,
    /// The machine that the launch returned, if it returned one.
    pub machine: Option<InstanceId>,
}

impl UnconfirmedLaunch {
    pub(crate) fn new(account: Option<AccountId>, machine: Option<InstanceId>) -> Self {
        Self { account, machine }
    }

    /// Whether nothing says that the launch reached another account, except that its result is not known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.account.is_none() && self.machine.is_none()
    }
}

/// The cloud instance that a server has now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// Its id at the cloud.
    pub id: InstanceId,
    /// Its number among the machines of the server.
    pub incarnation: u64,
    /// When its id was recorded.
    pub recorded_at: DateTime<Utc>,
    /// The spec that was last applied to it.
    pub applied: ServerSpec,
    /// Changes that may have been applied in addition: stored before a change is sent, and removed when its result is known.
    #[serde(default)]
    pub unconfirmed: UnconfirmedChange,
    /// How many reboot requests are done or no longer necessary.
    #[serde(default)]
    pub reboots: u64,
    /// The last change that the cloud accepted. An earlier observation does not show it.
    #[serde(default)]
    pub last_action: Option<LastAction>,
    /// Changes that the cloud refused.
    #[serde(default)]
    pub refused: RefusedChanges,
    /// Set once the machine is to be terminated.
    #[serde(default)]
    pub termination: Option<Termination>,
    /// When the termination for a replacement was withdrawn. A call that was in flight may still have an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<DateTime<Utc>>,
}

/// Values that the cloud refused for a machine. They are not sent again while the machine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedChanges {
    /// The refused flavor.
    #[serde(default)]
    pub flavor: Option<RefusedValue<FlavorId>>,
    /// The refused image.
    #[serde(default)]
    pub image: Option<RefusedValue<ImageId>>,
}

/// A value that the cloud refused for a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedValue<T> {
    /// The value.
    pub value: T,
    /// Why it was refused, and what to do.
    pub message: String,
    /// From when on it may be sent again, to a machine that is stopped on request.
    pub retry_at: DateTime<Utc>,
}

/// Changes that were sent and whose results are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedChange {
    /// The fields in which the machine may differ from the recorded spec.
    pub fields: BTreeSet<Field>,
    /// The keys of tags that it may have.
    pub tag_keys: BTreeSet<String>,
    /// When a reimage was sent whose result is not known.
    #[serde(default)]
    pub reimage_sent_at: Option<DateTime<Utc>>,
}

impl Machine {
    /// Returns the plan that gives the machine this spec. An unconfirmed field is changed even if the recorded value is the desired one.
    pub fn plan_to(&self, wanted: &ServerSpec, verbs: &BTreeSet<OptionalVerb>) -> Plan {
        let mut plan = Plan::between(&self.applied, wanted, verbs);
        let doubtful = self.unconfirmed.fields.iter();
        plan.methods
            .extend(doubtful.map(|field| (*field, field.needs(verbs))));
        plan
    }
}

/// The last call that the cloud accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAction {
    /// The call.
    pub action: MachineAction,
    /// When it was accepted.
    pub at: DateTime<Utc>,
}

/// A change that keeps the machine.
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

/// The mark that a machine is to be terminated: stored before the call. It is removed only if the machine was missing and is listed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Termination {
    /// Why it is terminated.
    pub reason: TerminationReason,
    /// When the cloud last accepted the call, or did not find the machine.
    pub accepted_at: Option<DateTime<Utc>>,
    /// What the cloud returned.
    #[serde(default)]
    pub response: Option<TerminationResponse>,
}

/// What the cloud returned to a termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminationResponse {
    /// It accepted the termination.
    Accepted,
    /// It did not find the machine.
    NotFound,
}

/// Why a machine is terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminationReason {
    /// The server is deleted.
    Delete,
    /// A replacement was requested.
    Replace,
    /// It did not boot in time.
    Failed,
    /// It never ran, and the cloud no longer lists it. It is terminated so that it cannot appear beside its successor.
    Missing,
}

/// What the monitor last observed of a machine.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceStatus};
/// use fleetwright_region::server::Observed;
///
/// let status = InstanceStatus::new(InstanceId::new("i-1")?, CloudInstanceState::Running);
/// let start = DateTime::<Utc>::UNIX_EPOCH;
/// let first = Observed::of(status.clone(), start, None);
/// let second = Observed::of(status, start + TimeDelta::minutes(1), Some(&first));
/// assert_eq!(second.since, start, "running since the first observation");
/// assert!(second.same_observation(&first));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Observed {
    /// The machine.
    pub machine: InstanceId,
    /// When the scan or the call that first observed this began. Later scans that observed no change are
    /// only in the region's [scan record](crate::monitor::RegionScan).
    pub at: DateTime<Utc>,
    /// Its state.
    pub state: CloudInstanceState,
    /// Since when it was observed in this state.
    pub since: DateTime<Utc>,
    /// Its state in the cloud's own term.
    pub native_state: Option<String>,
    /// Why it is in that state, in the cloud's words.
    pub state_reason: Option<String>,
    /// Its address inside its network.
    pub private_ip: Option<IpAddr>,
    /// Its public address.
    pub public_ip: Option<IpAddr>,
    /// Its hardware address.
    pub mac_address: Option<MacAddress>,
    /// Whether the cloud listed it.
    pub presence: Presence,
}

impl Observed {
    /// Creates an observation from a status that was requested at `at`, with the one before.
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

    /// Returns a date at which the cloud showed the machine. `None` if it never did, and is only known not to find it.
    pub fn shown_at(&self) -> Option<DateTime<Utc>> {
        match self.presence {
            Presence::Shown | Presence::Absent(_) => Some(self.at),
            // A machine that was never shown is missing since its first observation.
            Presence::Missing(since) => Some(self.at).filter(|at| *at < since),
        }
    }

    /// Whether both observations are the same, apart from their times.
    pub fn same_observation(&self, other: &Self) -> bool {
        let timeless = |seen: &Self| Self {
            at: DateTime::UNIX_EPOCH,
            ..seen.clone()
        };
        timeless(self) == timeless(other)
    }
}

/// Whether the last scan found a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// The cloud listed it.
    Shown,
    /// The cloud did not list it, which is no proof yet. The other fields are from the last scan that found it.
    Absent(DateTime<Utc>),
    /// The machine does not exist: a complete list did not contain it and a describe call returned "not found", both after the
    /// consistency window.
    Missing(DateTime<Utc>),
}

/// The record that a machine was observed running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// The incarnation.
    pub incarnation: u64,
    /// When that was first observed.
    pub at: DateTime<Utc>,
}

/// A difference between machine and desired state that fleetwright did not cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drift {
    /// The machine does not exist.
    Missing,
    /// It was terminated outside this system.
    Destroyed,
    /// It was started or stopped outside this system.
    Power,
    /// Its tags were changed outside this system.
    Tags,
    /// It has been in a transitional state for too long.
    Stuck,
}

impl Drift {
    /// Every kind of drift.
    pub const ALL: [Self; 5] = [
        Self::Missing,
        Self::Destroyed,
        Self::Power,
        Self::Tags,
        Self::Stuck,
    ];

    /// Returns the name in metrics and events.
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
