//! Orphans: machines with the region's tag that belong to no server.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, InstanceInfo};

use crate::{controller::tags, ids::RegionId, server::Server};

/// Returns the listed machines of the region that no record names.
pub(super) fn candidates<'a>(
    region: &RegionId,
    listed: &'a BTreeMap<InstanceId, InstanceInfo>,
    claimed: &dyn Fn(&InstanceId) -> bool,
) -> Vec<&'a InstanceInfo> {
    let ours = |info: &&InstanceInfo| info.tags.get(tags::REGION) == Some(region.as_str());
    let unclaimed = |info: &&InstanceInfo| !info.state.is_ending() && !claimed(&info.id);
    listed.values().filter(ours).filter(unclaimed).collect()
}

/// Returns whether the server that a machine's tags name does not own it, by its current record.
pub(super) fn is_unclaimed(info: &InstanceInfo, server: Option<&Server>) -> bool {
    let Some(server) = server else {
        return true;
    };
    if let Some(machine) = &server.machine {
        return machine.id != info.id;
    }
    // It may come from the launch whose outcome is still unknown.
    let machine = info.tags.get(tags::MACHINE);
    let launch = server.launch.as_ref();
    let launching = launch.map(|launch| server.machine_name(launch.incarnation));
    launching.is_none() || launching.as_deref() != machine
}

/// When each machine without a server was first observed.
#[derive(Debug, Default)]
pub(super) struct FirstSeen(BTreeMap<InstanceId, DateTime<Utc>>);

impl FirstSeen {
    /// Keeps these machines and forgets all others.
    pub(super) fn remember(&mut self, unclaimed: &[&InstanceInfo], now: DateTime<Utc>) {
        let since = |info: &&InstanceInfo| {
            let seen = self.0.get(&info.id).copied();
            // A date in the future is from before the clock was set back.
            (info.id.clone(), seen.map_or(now, |seen| seen.min(now)))
        };
        self.0 = unclaimed.iter().map(since).collect();
    }

    /// Returns since when a machine has been without a server, as far as this process knows. Clocks and clouds differ in the meaning of a
    /// launch time, so it can make a machine younger, and never older.
    pub(super) fn since(&self, info: &InstanceInfo, now: DateTime<Utc>) -> DateTime<Utc> {
        let seen = self.0.get(&info.id).copied().unwrap_or(now);
        info.launch_time.map_or(seen, |launched| launched.max(seen))
    }
}
