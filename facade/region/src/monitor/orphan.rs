//! MachineAccess that carry the region's tag and that no server claims.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, InstanceInfo};

use crate::{controller::tags, ids::RegionId, server::Server};

/// The region's machines among those listed that no record names, with the date since which each is known.
pub(super) fn candidates<'a>(
    region: &RegionId,
    listed: &'a BTreeMap<InstanceId, InstanceInfo>,
    claimed: &dyn Fn(&InstanceId) -> bool,
) -> Vec<&'a InstanceInfo> {
    let ours = |info: &&InstanceInfo| info.tags.get(tags::REGION) == Some(region.as_str());
    let unclaimed = |info: &&InstanceInfo| !info.state.is_ending() && !claimed(&info.id);
    listed.values().filter(ours).filter(unclaimed).collect()
}

/// Whether the server that a machine's tags name does not claim it, by the record as it is now.
pub(super) fn is_unclaimed(info: &InstanceInfo, server: Option<&Server>) -> bool {
    let Some(server) = server else {
        return true;
    };
    if let Some(machine) = &server.machine {
        return machine.id != info.id;
    }
    // Its launch may be the one whose answer nobody has yet.
    let machine = info.tags.get(tags::MACHINE);
    let launch = server.launch.as_ref();
    let launching = launch.map(|launch| server.machine_name(launch.incarnation));
    launching.is_none() || launching.as_deref() != machine
}

/// Since when each unclaimed machine is known to be so.
#[derive(Debug, Default)]
pub(super) struct FirstSeen(BTreeMap<InstanceId, DateTime<Utc>>);

impl FirstSeen {
    /// Remembers these, and no others.
    pub(super) fn remember(&mut self, unclaimed: &[&InstanceInfo], now: DateTime<Utc>) {
        let since = |info: &&InstanceInfo| {
            let seen = self.0.get(&info.id).copied();
            (info.id.clone(), seen.unwrap_or(now))
        };
        self.0 = unclaimed.iter().map(since).collect();
    }

    /// Since when a machine is there without a server that claims it, as far as is known here. Clocks and clouds differ in
    /// what a launch time is, so that it can make a machine younger and never older.
    pub(super) fn since(&self, info: &InstanceInfo, now: DateTime<Utc>) -> DateTime<Utc> {
        let seen = self.0.get(&info.id).copied().unwrap_or(now);
        info.launch_time.map_or(seen, |launched| launched.max(seen))
    }
}
