//! Orphans: machines with the region's tag that belong to no server, and what the records prove about them.

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

/// What the records say about a machine of the region that no record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It may be the machine of its server, or of a launch whose outcome is still unknown.
    Claimed,
    /// This system launched it, and its server has another machine now.
    Superseded,
    /// No record shows that this system is done with it. With the reason.
    Unproven(&'static str),
}

const NO_SERVER: &str = "the store has no record of its server: another installation may use the same region name, or the store was restored from a backup";
const NOT_LAUNCHED: &str = "the record of its server does not have this launch: the store may have been restored from a backup";

/// Returns what the current record of the server that a machine's tags name says about it.
///
/// A store from a backup does not know the servers, the replacements and the machines that came after it, and two installations with one
/// region name in one account do not know the servers of each other. So only a launch that the record itself has made proves something.
pub(super) fn claim(info: &InstanceInfo, server: Option<&Server>) -> Claim {
    let Some(server) = server else {
        return Claim::Unproven(NO_SERVER);
    };
    let current = server.machine.as_ref();
    if current.is_some_and(|machine| machine.id == info.id) {
        return Claim::Claimed;
    }
    let last = server
        .launch
        .as_ref()
        .map_or(0, |launch| launch.incarnation);
    match incarnation(info, server) {
        Some(incarnation) if incarnation == last && current.is_none() => Claim::Claimed,
        Some(incarnation) if (1..=last).contains(&incarnation) => Claim::Superseded,
        Some(_) | None => Claim::Unproven(NOT_LAUNCHED),
    }
}

/// Returns the incarnation that the tags of a machine name, if it is one of this server and not of an earlier one with the same id.
fn incarnation(info: &InstanceInfo, server: &Server) -> Option<u64> {
    let name = info.tags.get(tags::MACHINE)?;
    let incarnation = name.rsplit_once('-')?.1.parse().ok()?;
    (server.machine_name(incarnation) == name).then_some(incarnation)
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
