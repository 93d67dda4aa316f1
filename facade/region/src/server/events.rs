//! Conditions and events of a record, for tenants and operators. They must never contain secrets.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A problem or a pending step that holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The kind of condition.
    pub kind: ConditionKind,
    /// A message in one line.
    pub message: String,
    /// Since when it holds.
    pub since: DateTime<Utc>,
}

/// The kinds of conditions. A record has at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionKind {
    /// The cloud has no capacity for the machine. The launch is retried.
    NoCapacity,
    /// The quota of the cloud account is reached. The launch is retried.
    QuotaReached,
    /// The desired state is refused, and will be until it is changed.
    Refused,
    /// The cloud cannot be used now: throttled, unreachable, or bad credentials. The call is retried.
    CloudError,
    /// No machine booted in any attempt. Nothing more is launched until a replacement is requested.
    AttemptsExhausted,
    /// The machine had booted and no longer exists. Its disk is lost. Nothing is launched until a replacement is requested.
    Lost,
    /// A change takes effect at the next launch.
    NextLaunch,
    /// A request is not supported by this cloud.
    Unsupported,
}

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// Who recorded it.
    pub by: Writer,
    /// The kind of event.
    pub kind: EventKind,
    /// A message in one line.
    pub message: String,
}

/// The writers of server records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Writer {
    Service,
    Controller,
    Monitor,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The record was created.
    Created,
    /// The desired state was changed.
    Requested,
    /// A launch was sent.
    Launching,
    /// A launch returned a machine.
    Launched,
    /// A machine that an earlier process launched was found by its token.
    Adopted,
    /// A call failed or was refused.
    Failed,
    /// The machine was changed in place.
    Changed,
    /// The machine is being terminated.
    Terminating,
    /// The controller does nothing more until the desired state changes.
    GaveUp,
    /// The monitor observed the machine in another state.
    StateObserved,
    /// The machine was changed outside this system.
    Drifted,
}
