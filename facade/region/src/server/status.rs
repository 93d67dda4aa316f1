//! Phase and health of a server: a pure summary of its record, the last region scan and the date.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::CloudInstanceState;
use fleetwright_runtime::clock::{between, later};
use serde::{Deserialize, Serialize};

use super::{ConditionKind, Drift, Power, Presence, Server, TerminationReason};
use crate::monitor::RegionScan;

/// How much the clocks of two processes may differ without a date counting as one of the future.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);

/// Returns whether a date is from before a clock was set back: it says nothing about how long ago that was.
///
/// ```
/// use chrono::{TimeDelta, Utc};
/// use fleetwright_region::server::is_from_the_future;
///
/// let now = Utc::now();
/// assert!(is_from_the_future(now + TimeDelta::hours(1), now));
/// // The clocks of two processes may differ a little.
/// assert!(!is_from_the_future(now + TimeDelta::seconds(1), now));
/// ```
pub fn is_from_the_future(date: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    date > later(now, CLOCK_DIFFERENCE)
}

/// The phase of a server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// No machine was launched yet.
    Pending,
    /// A machine is being launched or booting.
    Building,
    /// Its machine runs.
    Running,
    /// It is shutting down.
    Stopping,
    /// It is stopped.
    Stopped,
    /// Its machine is being replaced.
    Replacing,
    /// It is being deleted.
    Deleting,
    /// It cannot be launched as requested.
    Failed,
    /// Its machine had booted and no longer exists.
    Lost,
}

/// The health of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Unknown: there was no recent scan, or there is no machine yet.
    Unknown,
    /// In the desired state. A server that was stopped on request is healthy.
    Healthy,
    /// The machine exists and is not in the desired state.
    Degraded,
    /// It does not work, and the controller will not repair it.
    Error,
}

/// A server with its summary, as the service returns it.
///
/// ```
/// use fleetwright_region::server::{Health, Phase};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
/// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
/// # let region = TestRegion::new(std::sync::Arc::new(cloud));
/// # let (servers, admin, new) = (&region.servers, server_admin(), bare_server(1));
/// let view = servers.ensure(&admin, &new).await?;
/// assert_eq!((view.phase, view.health), (Phase::Pending, Health::Unknown));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerView {
    /// The record.
    pub server: Server,
    /// The revision of the record.
    pub revision: fleetwright_store::Revision,
    /// The phase.
    pub phase: Phase,
    /// The health.
    pub health: Health,
    /// When its machine was last observed.
    pub observed_at: Option<DateTime<Utc>>,
}

impl Server {
    /// Returns the phase, by the record alone.
    pub fn phase(&self) -> Phase {
        if self.intent.power == Power::Deleted {
            return Phase::Deleting;
        }
        if self.condition(ConditionKind::Lost).is_some() {
            return Phase::Lost;
        }
        let refused = self.condition(ConditionKind::Refused).is_some();
        if self.condition(ConditionKind::AttemptsExhausted).is_some()
            || (refused && self.machine.is_none())
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
            // Until the controller has decided what follows.
            Some(CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                if self.has_booted() {
                    Phase::Lost
                } else {
                    Phase::Building
                }
            }
        }
    }

    /// Returns when its machine was last observed, at `now`: by the scan that found a change, or a later one that found none.
    ///
    /// An observation from the future is from before a clock was set back, and is not counted: the next scan replaces it.
    pub fn observed_at(
        &self,
        scan: Option<&RegionScan>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let seen = self.current_observation()?;
        let known = |at: &DateTime<Utc>| !is_from_the_future(*at, now);
        if !known(&seen.at) {
            return None;
        }
        let confirmed = scan
            .map(|scan| scan.at)
            .filter(known)
            .filter(|at| seen.presence == Presence::Shown && *at > seen.at);
        Some(confirmed.unwrap_or(seen.at).min(now))
    }

    /// Returns the health at `now`. A machine that was not observed within two ticks of the monitor has unknown health.
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
        let fresh = match (self.observed_at(scan, now), scan) {
            (Some(at), Some(scan)) => between(at, now) <= scan.tick * 2,
            (Some(_) | None, None) | (None, Some(_)) => false,
        };
        if seen && !fresh {
            return Health::Unknown;
        }
        self.last_observed_health()
    }

    /// Returns the health at the last observation, however old that is: for callers that store it and check its age themselves.
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
            // The tenant does not notice it.
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
    /// Summarizes a record at `now`.
    pub fn new(
        read: fleetwright_store::Versioned<Server>,
        scan: Option<&RegionScan>,
        now: DateTime<Utc>,
    ) -> Self {
        let server = read.value;
        Self {
            phase: server.phase(),
            health: server.health(scan, now),
            observed_at: server.observed_at(scan, now),
            revision: read.revision,
            server,
        }
    }
}
