//! Finding orphans, and terminating them if the policy allows that.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InstanceId, InstanceInfo};
use fleetwright_runtime::clock::between;
use fleetwright_store::StoreError;
use metrics::counter;

use super::{
    Monitor, Orphan, OrphanOutcome, OrphanPolicy, ScanError,
    orphan::{self, Claim},
    scan::{ScanReport, count},
};
use crate::{
    controller::tags,
    server::{Server, ServerId},
};

impl Monitor {
    /// Returns whether the list has a machine of the region that no record names.
    pub(super) fn has_orphans(
        &self,
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        named: &BTreeSet<InstanceId>,
    ) -> bool {
        let claimed = |id: &InstanceId| named.contains(id);
        !orphan::candidates(&self.region, listed, &claimed).is_empty()
    }

    /// Finds the orphans of the region, and terminates them if the policy allows it and the scan is trusted.
    pub(super) async fn orphans(
        &self,
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        named: &BTreeSet<InstanceId>,
        began: DateTime<Utc>,
        report: &mut ScanReport,
    ) -> Result<(), ScanError> {
        let claimed = |id: &InstanceId| named.contains(id);
        let all_candidates = orphan::candidates(&self.region, listed, &claimed);
        self.first_seen().remember(&all_candidates, began);
        let since = |info: &InstanceInfo| self.first_seen().since(info, began);
        let is_old = |info: &&InstanceInfo| between(since(info), began) >= self.policy.orphan_age;
        let old: Vec<_> = all_candidates.into_iter().filter(is_old).collect();
        let limit = self.policy.limit.among(report.servers);
        if count(old.len()) > limit && report.frozen.is_none() {
            let orphans = old.len();
            report.frozen = Some(format!(
                "{orphans} machines belong to no server, more than the limit of {limit}"
            ));
        }
        for info in old {
            // The current record, which may be newer than the list.
            let server = match self.server_of(info).await? {
                NamedServer::Read(server) => Some(*server),
                NamedServer::Absent => None,
                // It may be its machine.
                NamedServer::Unreadable => continue,
            };
            let unproven = match orphan::claim(info, server.as_ref()) {
                Claim::Claimed => continue,
                Claim::Superseded => None,
                // It was to be terminated before, and was not found then.
                Claim::Unproven(_) if self.account.is_not_found(&info.id).await? => None,
                Claim::Unproven(reason) => Some(reason),
            };
            // Without its tag, the machine of a record that cannot be read looks like an orphan.
            let allowed = self.policy.orphans == OrphanPolicy::Terminate && report.unreadable == 0;
            let outcome = if unproven.is_some() {
                OrphanOutcome::Kept
            } else if allowed && report.frozen.is_none() {
                self.terminate_orphan(&info.id).await
            } else {
                OrphanOutcome::Reported
            };
            tracing::warn!(region = %self.region, instance = %info.id, ?outcome, reason = unproven, "found an orphan");
            report.orphans.push(Orphan {
                machine: info.id.clone(),
                server: info.tags.get(tags::SERVER).map(str::to_owned),
                since: since(info),
                outcome,
            });
        }
        Ok(())
    }

    async fn terminate_orphan(&self, id: &InstanceId) -> OrphanOutcome {
        match self.cloud.terminate_instance(id).await {
            Ok(()) => {
                counter!("fleetwright_region_orphans_terminated_total", "region" => self.label())
                    .increment(1);
                OrphanOutcome::Terminated
            }
            Err(error) if error.kind() == ErrorKind::NotFound => OrphanOutcome::Terminated,
            Err(error) => {
                tracing::warn!(instance = %id, %error, "an orphan could not be terminated");
                OrphanOutcome::TerminationFailed
            }
        }
    }

    /// Returns the server that the tags of a machine name.
    async fn server_of(&self, info: &InstanceInfo) -> Result<NamedServer, ScanError> {
        let named = info.tags.get(tags::SERVER);
        let Some(id) = named.and_then(|text| text.parse::<ServerId>().ok()) else {
            return Ok(NamedServer::Absent);
        };
        let found = match self.servers.get(&id.key()?).await {
            Ok(found) => found.map(|read| read.value),
            Err(error @ (StoreError::Corrupt { .. } | StoreError::Incompatible { .. })) => {
                tracing::warn!(instance = %info.id, %error, "the server of a machine cannot be read; the machine is left alone");
                return Ok(NamedServer::Unreadable);
            }
            Err(error) => return Err(error.into()),
        };
        let found = found.filter(|server| server.region == self.region);
        Ok(found.map_or(NamedServer::Absent, |server| {
            NamedServer::Read(Box::new(server))
        }))
    }
}

/// The server that the tags of a machine name.
enum NamedServer {
    /// There is none in the region.
    Absent,
    /// It exists.
    Read(Box<Server>),
    /// It exists, and is damaged or of a newer version.
    Unreadable,
}
