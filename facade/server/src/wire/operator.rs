//! What only operators see.

use fleetwright_api as api;
use fleetwright_compute::service::{Inspection, InstanceView};
use fleetwright_region::{
    account::{LeakedLaunch, RegionAccount},
    ids::RegionId,
    monitor::RegionScan,
    server::ServerView,
};

use super::{instance, word};

pub(crate) fn inspection(inspection: Inspection, view: InstanceView) -> api::Inspection {
    let allocation = inspection.allocation.map(|allocation| {
        let lines = allocation
            .amounts
            .iter()
            .map(|(kind, amount)| api::QuotaLimit {
                kind: kind.to_string(),
                limit: amount,
            });
        lines.collect()
    });
    api::Inspection {
        instance: instance::without_user_data(view),
        server: inspection.server.as_ref().map(server),
        allocation,
    }
}

fn server(view: &ServerView) -> api::ServerView {
    let server = &view.server;
    let machine = server.machine.as_ref();
    let conditions = server.conditions.iter().map(|condition| api::Condition {
        kind: word(&condition.kind),
        message: condition.message.clone(),
        since: condition.since,
    });
    let events = server.events.iter().map(|event| api::OperatorEvent {
        at: event.at,
        by: word(&event.by),
        message: event.message.clone(),
    });
    api::ServerView {
        id: server.id.to_string(),
        phase: word(&view.phase),
        generation: server.generation,
        observed_generation: server.observed_generation,
        machine: machine.map(|machine| machine.id.to_string()),
        incarnation: machine.map(|machine| machine.incarnation),
        drift: server.drift.iter().map(word).collect(),
        conditions: conditions.collect(),
        events: events.collect(),
    }
}

pub(crate) fn report(
    region: &RegionId,
    account: Option<&RegionAccount>,
    scan: Option<&RegionScan>,
) -> api::RegionReport {
    let other = account.and_then(|account| account.other.as_ref());
    let leaked = account.iter().flat_map(|account| &account.leaked);
    api::RegionReport {
        id: region.to_string(),
        other_account: other.map(|other| other.account.to_string()),
        leaked_launches: leaked.map(leak).collect(),
        account: account.map(|account| account.account.to_string()),
        scan: scan.map(self::scan),
    }
}

fn leak(leak: &LeakedLaunch) -> api::LeakedLaunch {
    api::LeakedLaunch {
        token: leak.token.to_string(),
        server: leak.server.to_string(),
        account: leak.account.as_ref().map(ToString::to_string),
        machine: leak.machine.as_ref().map(ToString::to_string),
        at: leak.at,
    }
}

fn scan(scan: &RegionScan) -> api::Scan {
    let orphans = scan.orphans.iter().map(|orphan| api::Orphan {
        machine: orphan.machine.to_string(),
        server: orphan.server.clone(),
        since: orphan.since,
        outcome: word(&orphan.outcome),
    });
    api::Scan {
        at: scan.at,
        machines: scan.machines,
        servers: scan.servers,
        gaps: scan.gaps.clone(),
        frozen: scan.frozen.clone(),
        orphans: orphans.collect(),
    }
}
