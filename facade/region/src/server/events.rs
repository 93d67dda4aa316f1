//! What a record tells people: conditions that hold, and events that happened. No secret goes in here.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Something that holds now and that somebody may want to know, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What.
    pub kind: ConditionKind,
    /// In one line.
    pub message: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// A sort of condition. At most one of each holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionKind {
    /// The cloud has no machine of this kind now. It is tried again.
    NoCapacity,
    /// The account's limit is reached. It is tried again.
    QuotaReached,
    /// What is asked for is refused, and will be until it is changed.
    Refused,
    /// The cloud cannot be used now: throttled, unreachable, credentials. It is tried again.
    CloudError,
    /// No machine booted in all the attempts there are. Ask for a replacement.
    AttemptsExhausted,
    /// The machine had booted and is gone. Its disk is lost. Ask for a replacement.
    Lost,
    /// A change that takes effect with the next launch.
    NextLaunch,
    /// Something asked for is not offered by this cloud.
    Unsupported,
}

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was written down.
    pub at: DateTime<Utc>,
    /// By whom.
    pub by: Writer,
    /// What.
    pub kind: EventKind,
    /// In one line.
    pub message: String,
}

/// Who writes records of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Writer {
    Service,
    Controller,
    Monitor,
}

/// A sort of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The record was made.
    Created,
    /// Something else is asked for.
    Requested,
    /// A launch is sent.
    Launching,
    /// A launch was answered with a machine.
    Launched,
    /// A machine that an earlier process launched was found by its token.
    Adopted,
    /// A call failed or was refused.
    Failed,
    /// The machine was changed in place.
    Changed,
    /// The machine is being destroyed.
    Terminating,
    /// There is nothing more to do without somebody's word.
    GaveUp,
    /// The machine was seen in another state.
    StateObserved,
    /// The machine differs from what it should be, by somebody else's doing.
    Drifted,
}
