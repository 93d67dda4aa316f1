//! What a server is to those who look at it: a pure projection of its record, the region's scan and the date.

use chrono::{DateTime, Utc};
use fleetwright::CloudInstanceState;
use fleetwright_runtime::clock::between;
use serde::{Deserialize, Serialize};

use super::{ConditionKind, Drift, Power, Presence, Server, TerminationReason};
use crate::monitor::RegionScan;

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Nothing was launched yet.
    Pending,
    /// A machine is being launched or booting.
    Building,
    /// It runs.
    Running,
    /// It is shutting down.
    Stopping,
    /// It is stopped.
    Stopped,
    /// Its machine is being exchanged for another.
    Replacing,
    /// It is being deleted.
    Deleting,
    /// It cannot be made as it is asked for.
    Failed,
    /// It had booted, and its machine is gone.
    Lost,
}

/// How a server fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Nobody knows now: it was not looked at lately, or there is nothing to look at yet.
    Unknown,
    /// It is as it is asked to be. A server that is stopped on purpose is.
    Healthy,
    /// It is there, and not as it is asked to be.
    Degraded,
    /// It does not work and will not by itself.
    Error,
}

/// A server as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerView {
    /// The record.
    pub server: Server,
    /// The commit that wrote it last.
    pub revision: fleetwright_store::Revision,
    /// Where it is in its life.
    pub phase: Phase,
    /// How it fares.
    pub health: Health,
    /// When its machine was last looked at.
    pub observed_at: Option<DateTime<Utc>>,
}

impl Server {
    /// Where it is in its life, by what is recorded.
    pub fn phase(&self) -> Phase {
        if self.intent.power == Power::Deleted {
            return Phase::Deleting;
        }
        if self.condition(ConditionKind::Lost).is_some() {
            return Phase::Lost;
        }
        if self.condition(ConditionKind::AttemptsExhausted).is_some()
            || self.condition(ConditionKind::Refused).is_some()
        {
            return Phase::Failed;
        }
        let Some(instance) = &self.machine else {
            return match &self.launch {
                None => Phase::Pending,
                Some(launch) if launch.life > 1 => Phase::Replacing,
                Some(_) => Phase::Building,
            };
        };
        if let Some(termination) = instance.termination {
            return match termination.reason {
                TerminationReason::Delete => Phase::Deleting,
                TerminationReason::Replace => Phase::Replacing,
                TerminationReason::Failed | TerminationReason::Missing => Phase::Building,
            };
        }
        match self.current_observation().map(|seen| seen.state) {
            None | Some(CloudInstanceState::Pending) => Phase::Building,
            Some(CloudInstanceState::Running) => Phase::Running,
            Some(CloudInstanceState::Stopping) => Phase::Stopping,
            Some(CloudInstanceState::Stopped) => Phase::Stopped,
            // Until the controller says what follows from it.
            Some(CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                if self.has_booted() {
                    Phase::Lost
                } else {
                    Phase::Building
                }
            }
        }
    }

    /// When its machine was last looked at: by the look that saw a change, or by a later one that saw none.
    pub fn observed_at(&self, scan: Option<&RegionScan>) -> Option<DateTime<Utc>> {
        let seen = self.current_observation()?;
        let later = scan
            .map(|scan| scan.at)
            .filter(|at| seen.presence == Presence::Shown && *at > seen.at);
        Some(later.unwrap_or(seen.at))
    }

    /// How it fares at `now`. What was not looked at within two ticks of the monitor is unknown.
    pub fn health(&self, scan: Option<&RegionScan>, now: DateTime<Utc>) -> Health {
        let seen = match self.phase() {
            Phase::Running | Phase::Stopping | Phase::Stopped => true,
            Phase::Pending
            | Phase::Building
            | Phase::Replacing
            | Phase::Deleting
            | Phase::Failed
            | Phase::Lost => false,
        };
        let fresh = match (self.observed_at(scan), scan) {
            (Some(at), Some(scan)) => between(at, now) <= scan.tick * 2,
            (Some(_) | None, None) | (None, Some(_)) => false,
        };
        if seen && !fresh {
            return Health::Unknown;
        }
        self.last_observed_health()
    }

    /// How it fared when it was last seen, however long ago that is: for those who keep it, and judge its age when they are asked.
    pub fn last_observed_health(&self) -> Health {
        match self.phase() {
            Phase::Failed | Phase::Lost => Health::Error,
            Phase::Pending | Phase::Building | Phase::Replacing | Phase::Deleting => {
                Health::Unknown
            }
            Phase::Running | Phase::Stopping | Phase::Stopped => self.health_of_machine(),
        }
    }

    fn health_of_machine(&self) -> Health {
        let drifted = |drift: &Drift| match drift {
            Drift::Missing | Drift::Destroyed | Drift::Power | Drift::Stuck => true,
            // Nothing that its user would notice.
            Drift::Tags => false,
        };
        if self.drift.iter().any(drifted) {
            Health::Degraded
        } else {
            Health::Healthy
        }
    }
}

impl ServerView {
    /// A record as it is seen at `now`.
    pub fn new(
        read: fleetwright_store::Versioned<Server>,
        scan: Option<&RegionScan>,
        now: DateTime<Utc>,
    ) -> Self {
        let server = read.value;
        Self {
            phase: server.phase(),
            health: server.health(scan, now),
            observed_at: server.observed_at(scan),
            revision: read.revision,
            server,
        }
    }
}
