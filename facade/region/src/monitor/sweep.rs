//! Finding orphans, and sweeping them where that is allowed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InstanceId, InstanceInfo};
use fleetwright_runtime::clock::between;
use metrics::counter;

use super::{
    Fate, LookError, Monitor, Orphan, Sweep,
    look::{Findings, count},
    orphan,
};
use crate::{
    controller::tags,
    server::{Server, ServerId},
};

impl Monitor {
    /// Finds the machines of the region that no server claims, and sweeps them if the look can be believed.
    pub(super) async fn orphans(
        &self,
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        named: &BTreeSet<InstanceId>,
        began: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Result<(), LookError> {
        let claimed = |id: &InstanceId| named.contains(id);
        let young_and_old = orphan::candidates(&self.region, listed, &claimed);
        self.first_seen().remember(&young_and_old, began);
        let since = |info: &InstanceInfo| self.first_seen().since(info, began);
        let is_old = |info: &&InstanceInfo| between(since(info), began) >= self.policy.orphan_age;
        let old: Vec<_> = young_and_old.into_iter().filter(is_old).collect();
        let limit = self.policy.limit.among(findings.servers);
        if count(old.len()) > limit && findings.frozen.is_none() {
            let orphans = old.len();
            findings.frozen = Some(format!(
                "{orphans} machines are unclaimed, more than the {limit} that are believed"
            ));
        }
        for info in old {
            // As the record is now, which may be younger than the list.
            let server = self.server_of(info).await?;
            if !orphan::is_unclaimed(info, server.as_ref()) {
                continue;
            }
            let allowed = self.policy.sweep == Sweep::Destroy;
            let fate = if allowed && findings.frozen.is_none() {
                self.sweep(&info.id).await
            } else {
                Fate::Reported
            };
            tracing::warn!(region = %self.region, instance = %info.id, ?fate, "an orphan");
            findings.orphans.push(Orphan {
                instance: info.id.clone(),
                server: info.tags.get(tags::SERVER).map(str::to_owned),
                since: since(info),
                fate,
            });
        }
        Ok(())
    }

    async fn sweep(&self, id: &InstanceId) -> Fate {
        match self.cloud.terminate_instance(id).await {
            Ok(()) => {
                counter!("fleetwright_region_swept_total", "region" => self.label()).increment(1);
                Fate::Swept
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Fate::Swept,
            Err(error) => {
                tracing::warn!(instance = %id, %error, "an orphan could not be swept");
                Fate::SweepFailed
            }
        }
    }

    /// The server that a machine's tags name, if there is one.
    async fn server_of(&self, info: &InstanceInfo) -> Result<Option<Server>, LookError> {
        let named = info.tags.get(tags::SERVER);
        let Some(id) = named.and_then(|text| text.parse::<ServerId>().ok()) else {
            return Ok(None);
        };
        let found = self.servers.get(&id.key()?).await?;
        let found = found.map(|read| read.value);
        Ok(found.filter(|server| server.region == self.region))
    }
}
