//! Conditions that hold now and events that happened, for tenants and operators to read. They never contain a secret, and neither their
//! kinds nor their messages mention the server behind an instance.

use chrono::{DateTime, Utc};
use fleetwright_identity::Actor;
use fleetwright_region::server;
use serde::{Deserialize, Serialize};

/// A problem or a pending step. It is shown until it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The kind, for programs.
    pub kind: ConditionKind,
    /// One line for people: what is wrong, and what to do.
    pub message: String,
    /// The time since which it holds.
    pub since: DateTime<Utc>,
}

/// The kind of a condition. An instance has at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionKind {
    /// The cloud has no capacity for the flavor now. The launch is retried.
    NoCapacity,
    /// The region's account at the cloud has reached a limit. The launch is retried.
    AccountLimit,
    /// The request is refused, and will be until it is changed.
    Refused,
    /// The cloud does not respond or fails. The call is retried.
    CloudError,
    /// No machine booted in all permitted attempts. Replace the instance to try again.
    AttemptsExhausted,
    /// The machine was terminated outside this system; its disk is lost. Replace the instance to get another machine.
    Lost,
    /// A change takes effect at the next launch.
    NextLaunch,
    /// The region's cloud does not offer something that was requested.
    Unsupported,
    /// Applying the change would destroy data that did not exist when the change was requested. Update with consent, or take the
    /// change back.
    ConsentNeeded,
    /// An operator removed the machine; its disk and addresses are lost. Replace the instance to get another machine.
    #[serde(alias = "server-missing")]
    MachineRemoved,
    /// The id of the instance is in use. Only an operator can resolve that.
    #[serde(alias = "server-conflict")]
    IdConflict,
    /// An operator is removing the machine.
    #[serde(alias = "server-deleting")]
    MachineDeleting,
    /// The network is being deleted, and the instance with it.
    NetworkDeleting,
}

impl From<server::ConditionKind> for ConditionKind {
    fn from(kind: server::ConditionKind) -> Self {
        match kind {
            server::ConditionKind::NoCapacity => Self::NoCapacity,
            server::ConditionKind::QuotaReached => Self::AccountLimit,
            server::ConditionKind::Refused => Self::Refused,
            server::ConditionKind::CloudError => Self::CloudError,
            server::ConditionKind::AttemptsExhausted => Self::AttemptsExhausted,
            server::ConditionKind::Lost => Self::Lost,
            server::ConditionKind::NextLaunch => Self::NextLaunch,
            server::ConditionKind::Unsupported => Self::Unsupported,
        }
    }
}

/// Something that happened to an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// Who caused it.
    pub by: Actor,
    /// The kind, for programs.
    pub kind: EventKind,
    /// One line for people.
    pub message: String,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It was created.
    Created,
    /// Its description, tags or spec were changed.
    Updated,
    /// A start, a stop or a reboot was requested.
    Requested,
    /// Its tenant accepted the loss of its disk, its addresses or both.
    LossAccepted,
    /// Its deletion was requested.
    DeletionRequested,
    /// A snapshot of it was requested. Reads of its key and its console are in the audit log.
    Accessed,
    /// The region accepted it: its launch is being prepared.
    #[serde(alias = "server-created")]
    Accepted,
    /// A requested change is being applied.
    Applied,
    /// It entered another phase.
    Phase,
    /// Something prevents progress.
    Problem,
    /// Everything requested so far is applied.
    Completed,
}
