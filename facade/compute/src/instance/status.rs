//! The observed state of an instance, which the controller derives from the server's record.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use fleetwright::MacAddress;
use fleetwright_region::server::{Health, Phase, Plan};
use serde::{Deserialize, Serialize};

use super::{Condition, ConditionKind, Instance};

/// The observed state of an instance.
///
/// ```
/// use fleetwright_compute::{instance::Status, prelude::Phase};
///
/// let status = Status::new(); // of an instance that was just requested
/// assert_eq!((status.phase, status.observed_generation), (Phase::Pending, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The last generation that became the desired state of its server.
    pub applied_generation: u64,
    /// The last generation that server and machine have fully applied.
    pub observed_generation: u64,
    /// Its server, once one existed.
    #[serde(default)]
    pub server: Option<ServerLink>,
    /// Its phase.
    pub phase: Phase,
    /// Its health when that last changed. Readers treat an observation older than two scans as unknown.
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
    /// The date of the scan that last observed a change of its machine.
    #[serde(default)]
    pub observed_at: Option<DateTime<Utc>>,
    /// Problems and pending steps.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// What is being done to its machine.
    #[serde(default)]
    pub pending: Option<PendingAction>,
}

/// Records that an instance has, or had, a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLink {
    /// The number of replacement requests that the server has received. If the server disappears, only a further request creates
    /// another one.
    pub replaces: u64,
    /// Its generation when it was last read.
    pub generation: u64,
}

/// A change of the machine that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAction {
    /// The changed fields with their change methods.
    pub plan: Plan,
    /// The reason, in one line.
    pub reason: String,
    /// What is lost by it, in one line, or `None`.
    #[serde(default)]
    pub lost: Option<String>,
    /// When it began.
    pub since: DateTime<Utc>,
}

/// The progress of an instance, in one word: the first row that applies.
///
/// | the instance | progress |
/// | --- | --- |
/// | is marked as deleted | deprovisioning |
/// | cannot be launched, has lost its machine, or has a condition that [needs a decision](ConditionKind::needs_decision) | error |
/// | has applied its last generation | provisioned |
/// | has no server yet | pending |
/// | otherwise | provisioning |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provisioning {
    /// It has no server yet.
    Pending,
    /// The desired state is being applied.
    Provisioning,
    /// The desired state is applied.
    Provisioned,
    /// It is being deleted.
    Deprovisioning,
    /// It makes no progress until its tenant or an operator decides something.
    Error,
}

impl Status {
    /// The status of a new instance.
    pub fn new() -> Self {
        Self {
            applied_generation: 0,
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

    /// The condition of this kind, if it holds.
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
    /// Whether nothing progresses until the tenant or an operator decides something.
    pub fn needs_decision(self) -> bool {
        match self {
            Self::Refused
            | Self::AttemptsExhausted
            | Self::Lost
            | Self::Unsupported
            | Self::ConsentNeeded
            | Self::MachineRemoved
            | Self::IdConflict => true,
            Self::NoCapacity
            | Self::AccountLimit
            | Self::CloudError
            | Self::NextLaunch
            | Self::MachineDeleting
            | Self::NetworkDeleting => false,
        }
    }
}

impl Instance {
    /// Its progress.
    pub fn provisioning(&self) -> Provisioning {
        if self.deletion.is_some() {
            return Provisioning::Deprovisioning;
        }
        let stuck = |condition: &Condition| condition.kind.needs_decision();
        match self.status.phase {
            Phase::Failed | Phase::Lost => return Provisioning::Error,
            // An operator is deleting its server.
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
