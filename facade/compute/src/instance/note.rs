//! What a record tells people: conditions that hold, and events that happened. No secret goes in here.

use chrono::{DateTime, Utc};
use fleetwright_identity::Actor;
use fleetwright_region::server;
use serde::{Deserialize, Serialize};

/// Something that holds now and that somebody may want to know, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What.
    pub kind: ConditionKind,
    /// In one line: what, and what to do.
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
    /// The limit of the region's account is reached. It is tried again.
    AccountLimit,
    /// What is asked for is refused, and will be until it is changed.
    Refused,
    /// The cloud cannot be used now. It is tried again.
    CloudError,
    /// No machine booted in all the attempts there are. Ask for a replacement.
    AttemptsExhausted,
    /// The machine had booted and is gone, and its disk with it. Ask for a replacement.
    Lost,
    /// A change that takes effect with the next launch.
    NextLaunch,
    /// Something asked for is not offered by this cloud.
    Unsupported,
    /// What is asked for would destroy something of the tenant's that was not there when it was asked for. Consent, or change it.
    ConsentNeeded,
    /// The server that there was is gone, by nobody's word here. Ask for a replacement.
    ServerMissing,
    /// The server of this id is another owner's. Nothing is done until an operator has seen to it.
    ServerTaken,
    /// The server is being deleted, by an operator. It is waited for.
    ServerGoing,
    /// The network is going, and the instance with it.
    NetworkGoing,
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
    /// When it was written down.
    pub at: DateTime<Utc>,
    /// By whom.
    pub by: Actor,
    /// What.
    pub kind: EventKind,
    /// In one line.
    pub message: String,
}

/// A sort of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It was asked for.
    Created,
    /// Something else is asked of it.
    Updated,
    /// It is to run, to be stopped, to reboot.
    Asked,
    /// Its disk, its addresses or both are to be lost, with consent.
    DestructionAgreed,
    /// It is to go.
    DeletionAsked,
    /// Its key was shown, its console was opened, an image was made of its disk.
    Accessed,
    /// Its server was made.
    ServerMade,
    /// The server has heard what is asked of it.
    PassedOn,
    /// It came into another phase.
    Phase,
    /// Something is in the way.
    Trouble,
    /// What was asked of it is true.
    Settled,
}
