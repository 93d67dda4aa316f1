//! Machines that were not listed: which of them are described, and what that proves.
//!
//! Owns how many absences are believed, and when.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InstanceId, InstanceInfo, InstanceStatus, ProvisionError};
use fleetwright_runtime::clock::later;
use fleetwright_store::Versioned;

use super::{
    Limit, Monitor,
    observation::Observation,
    scan::{ScanReport, count},
};
use crate::server::{Machine, Observed, Presence, Server};

/// A machine that was not listed, although it should exist.
struct Unexplained {
    id: InstanceId,
    /// Since when it is absent.
    since: DateTime<Utc>,
}

/// What is done about the machines that were not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Belief {
    /// They are described together.
    AtOnce,
    /// They are described together, and those that are not found are missing only after a time. With the reason.
    Confirm(String),
    /// None is described, with the reason.
    Freeze(String),
}

/// Decides how many absent machines are believed.
///
/// `shown` is the number of machines of the region that were listed: without any, nothing proves that it is a list of the region\'s account.
fn belief(limit: &Limit, servers: u64, absent: u64, shown: u64, gaps: &[String]) -> Belief {
    let most = limit.among(servers);
    if !gaps.is_empty() {
        Belief::Freeze(format!("the list has gaps: {}", gaps.join(", ")))
    } else if absent > most {
        Belief::Freeze(format!(
            "{absent} machines are absent at once, more than the limit of {most}"
        ))
    } else if absent > 0 && shown == 0 {
        Belief::Confirm("no machine of the region is listed".to_owned())
    } else if absent > limit.at_once(servers) {
        Belief::Confirm(format!("{absent} of {servers} machines are absent at once"))
    } else {
        Belief::AtOnce
    }
}

impl Monitor {
    /// Returns the observation of each machine that a record names.
    pub(super) async fn observations(
        &self,
        servers: &[Versioned<Server>],
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        began: DateTime<Utc>,
        report: &mut ScanReport,
    ) -> BTreeMap<InstanceId, Observation> {
        let window = self.cloud.capabilities().consistency_window;
        let (mut observations, mut to_describe, mut unexplained) =
            (BTreeMap::new(), Vec::new(), Vec::new());
        let mut shown = 0;
        for server in servers {
            let Some(machine) = &server.value.machine else {
                continue;
            };
            if let Some(info) = listed.get(&machine.id) {
                let tags = Some(info.tags.clone());
                let observation = Observation::Shown(Box::new(info.clone().into()), tags);
                observations.insert(machine.id.clone(), observation);
                shown += 1;
                continue;
            }
            let known = server.value.current_observation();
            if known.is_some_and(|seen| seen.state.is_final()) {
                continue;
            }
            report.absent += 1;
            observations.insert(machine.id.clone(), Observation::Absent);
            let visible = began > later(machine.recorded_at, window);
            let missing = known.is_some_and(|seen| matches!(seen.presence, Presence::Missing(_)));
            if missing || !visible {
            } else if machine.termination.is_some() {
                to_describe.push(machine.id.clone());
            } else {
                unexplained.push(Unexplained {
                    id: machine.id.clone(),
                    since: absent_since(machine, known, began),
                });
            }
        }
        let absent = count(unexplained.len());
        let limit = &self.policy.limit;
        match belief(limit, report.servers, absent, shown, &report.gaps) {
            Belief::Freeze(reason) => report.frozen = Some(reason),
            Belief::AtOnce => to_describe.extend(unexplained.into_iter().map(|one| one.id)),
            Belief::Confirm(reason) => {
                let confirmed = self.confirm(unexplained, reason, began, report).await;
                observations.extend(confirmed);
            }
        }
        observations.extend(self.describe(&to_describe).await);
        observations
    }

    /// Describes absent machines that are more than a few. One that the cloud shows is believed at once. One that it does not find is
    /// missing only if it has been absent for the time of the policy, and is then described once more, on its own.
    async fn confirm(
        &self,
        unexplained: Vec<Unexplained>,
        reason: String,
        began: DateTime<Utc>,
        report: &mut ScanReport,
    ) -> Vec<(InstanceId, Observation)> {
        let ids: Vec<_> = unexplained.iter().map(|one| one.id.clone()).collect();
        let mut observations = self.describe(&ids).await;
        let after = self.policy.confirm_after;
        for ((id, observation), one) in observations.iter_mut().zip(&unexplained) {
            if !matches!(observation, Observation::Missing) {
                continue;
            }
            *observation = if later(one.since, after) <= began {
                observation_of(self.cloud.describe_instance(id).await)
            } else {
                let reason = &reason;
                let message = format!("{reason}: what is absent for {after:?} counts as missing");
                report.frozen = Some(message);
                Observation::Absent
            };
        }
        observations
    }

    /// Describes machines by id.
    pub(super) async fn describe(&self, ids: &[InstanceId]) -> Vec<(InstanceId, Observation)> {
        if ids.is_empty() {
            return Vec::new();
        }
        let results = self.cloud.describe_instances(ids).await;
        let results = results.into_iter().map(observation_of);
        ids.iter().cloned().zip(results).collect()
    }
}

/// Returns what the result of a description proves.
fn observation_of(result: Result<InstanceStatus, ProvisionError>) -> Observation {
    match result {
        Ok(status) => Observation::Shown(Box::new(status), None),
        Err(error) if error.kind() == ErrorKind::NotFound => Observation::Missing,
        Err(_) => Observation::Absent,
    }
}

/// Returns since when a machine is absent. One that was never observed is absent since it was recorded.
fn absent_since(
    machine: &Machine,
    known: Option<&Observed>,
    began: DateTime<Utc>,
) -> DateTime<Utc> {
    match known.map(|seen| seen.presence) {
        Some(Presence::Absent(since) | Presence::Missing(since)) => since,
        // It was listed by the last scan.
        Some(Presence::Shown) => began,
        None => machine.recorded_at,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_machines_of_a_region_are_never_believed_to_be_gone_at_once(
            servers in 1_u64..200, least in 0_u64..20, percent in 0_u64..=100,
        ) {
            let limit = Limit::new(least, percent);
            prop_assert_ne!(belief(&limit, servers, servers, 0, &[]), Belief::AtOnce);
        }

        #[test]
        fn share_that_is_believed_at_once_does_not_depend_on_the_size(
            servers in 1_u64..2000, absent in 0_u64..2000,
        ) {
            let limit = Limit::new(5, 10);
            let absent = absent.min(servers);
            let believed = belief(&limit, servers, absent, servers - absent, &[]);
            if believed == Belief::AtOnce {
                prop_assert!(absent <= 1 || absent * 10 <= servers, "{absent} of {servers}");
            }
            if absent == 1 && servers > 1 {
                prop_assert_eq!(believed, Belief::AtOnce, "a single loss is reported at once");
            }
        }
    }
}
