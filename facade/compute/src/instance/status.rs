//! What is known of an instance: written by the controller, derived from the server's record.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use fleetwright::MacAddress;
use fleetwright_region::server::{Health, Phase, Plan};
use serde::{Deserialize, Serialize};

use super::{Condition, ConditionKind, Instance};

/// What was seen of an instance, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The generation that its server was last asked for.
    pub passed_generation: u64,
    /// The generation that is true: its server and machine are as that asked.
    pub observed_generation: u64,
    /// The server, once one was seen.
    #[serde(default)]
    pub server: Option<ServerLink>,
    /// Where it is in its life.
    pub phase: Phase,
    /// How it fared when that last changed; what is older than two looks of the region's monitor counts as unknown.
    pub health: Health,
    /// Its address inside its network.
    #[serde(default)]
    pub private_ip: Option<IpAddr>,
    /// Its public address.
    #[serde(default)]
    pub public_ip: Option<IpAddr>,
    /// Its hardware address.
    #[serde(default)]
    pub mac_address: Option<MacAddress>,
    /// When its machine was looked at, by the look that last saw a change.
    #[serde(default)]
    pub observed_at: Option<DateTime<Utc>>,
    /// What is wrong or pending, in words.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What is being done to its machine to make true what is asked.
    #[serde(default)]
    pub pending: Option<PendingAction>,
}

/// That an instance has, or had, a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLink {
    /// The number of requests for another machine that it was made for or has heard of. If it is gone, only a later one makes
    /// another.
    pub replaces: u64,
    /// Its generation as it was last seen.
    pub generation: u64,
}

/// What is being done to a machine, and what is lost by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAction {
    /// For each changed field, how.
    pub plan: Plan,
    /// Why, in one line.
    pub reason: String,
    /// What is lost by it, in one line; nothing if nothing is.
    #[serde(default)]
    pub lost: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// How far an instance is, in five words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provisioning {
    /// Nothing was done for it yet.
    Pending,
    /// It is being made what it is asked to be.
    Provisioning,
    /// It is what it is asked to be.
    Provisioned,
    /// It is being deleted.
    Deprovisioning,
    /// It will not become what it is asked to be without somebody's word.
    Error,
}

impl Status {
    /// Of an instance of which nothing has happened yet.
    pub fn new() -> Self {
        Self {
            passed_generation: 0,
            observed_generation: 0,
            server: None,
            phase: Phase::Pending,
            health: Health::Unknown,
            private_ip: None,
            public_ip: None,
            mac_address: None,
            observed_at: None,
            conditions: Vec::new(),
            pending: None,
        }
    }

    /// The condition of this kind, if it is in force.
    pub fn condition(&self, kind: ConditionKind) -> Option<&Condition> {
        let mut found = self.conditions.iter();
        found.find(|condition| condition.kind == kind)
    }
}

impl Default for Status {
    fn default() -> Self {
        Self::new()
    }
}

impl ConditionKind {
    /// Whether nothing goes on until somebody says something.
    pub fn needs_a_word(self) -> bool {
        match self {
            Self::Refused
            | Self::AttemptsExhausted
            | Self::Lost
            | Self::Unsupported
            | Self::ConsentNeeded
            | Self::ServerMissing
            | Self::ServerTaken => true,
            Self::NoCapacity
            | Self::AccountLimit
            | Self::CloudError
            | Self::NextLaunch
            | Self::ServerGoing
            | Self::NetworkGoing => false,
        }
    }
}

impl Instance {
    /// How far it is.
    pub fn provisioning(&self) -> Provisioning {
        if self.deletion.is_some() {
            return Provisioning::Deprovisioning;
        }
        let stuck = |condition: &Condition| condition.kind.needs_a_word();
        match self.status.phase {
            Phase::Failed | Phase::Lost => return Provisioning::Error,
            // Its server goes, and not by its own word.
            Phase::Deleting => return Provisioning::Provisioning,
            Phase::Pending
            | Phase::Building
            | Phase::Running
            | Phase::Stopping
            | Phase::Stopped
            | Phase::Replacing => {}
        }
        if self.status.conditions.iter().any(stuck) {
            Provisioning::Error
        } else if self.status.observed_generation == self.generation {
            Provisioning::Provisioned
        } else if self.status.server.is_none() {
            Provisioning::Pending
        } else {
            Provisioning::Provisioning
        }
    }
}
