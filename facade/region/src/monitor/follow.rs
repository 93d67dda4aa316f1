//! Describing machines between two scans, while they are changing.
//!
//! Owns when a machine that was launched, started, stopped or terminated is described: at first after a short delay, then after delays
//! that double up to a tick, and all that are due together. What it finds is applied like the result of a scan. A machine that is not found is left to the scan.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, InstanceId};
use fleetwright_runtime::watch_keys;
use fleetwright_store::{
    Change, Commit, Document as _, IndexName, Interest, Kind, StoreError, Table, Watch,
};
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep_until};

use super::{Monitor, observation::Observation};
use crate::server::{MachineAction, Presence, REGION_INDEX, Server, ServerId};

/// How many records are read and written at once.
const CONCURRENT_WRITES: usize = 16;

/// A change of a machine that is not complete, by the record of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MachineChange {
    machine: InstanceId,
    /// The last call, and the last termination, that the cloud accepted.
    calls: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

impl MachineChange {
    /// Returns the change that a server waits for, if there is one.
    fn of(server: &Server) -> Option<Self> {
        use CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating};
        let machine = server.machine.as_ref()?;
        let terminated_at = machine.termination.and_then(|sent| sent.accepted_at);
        let action = machine.last_action.filter(|last| match last.action {
            MachineAction::Start | MachineAction::Stop | MachineAction::Reimage => true,
            // They do not change the state.
            MachineAction::Reboot | MachineAction::Resize | MachineAction::Retag => false,
        });
        let changing = match server.current_observation() {
            None => true,
            Some(seen) if seen.presence != Presence::Shown => false,
            Some(seen) => match seen.state {
                Terminated => false,
                Pending | Stopping | Terminating => true,
                Running | Stopped => {
                    let called = action.map(|last| last.at).max(terminated_at);
                    called.is_some_and(|at| at >= seen.at)
                }
            },
        };
        changing.then(|| Self {
            machine: machine.id.clone(),
            calls: (action.map(|last| last.at), terminated_at),
        })
    }
}

/// When a machine is described next.
#[derive(Clone, Debug)]
struct Followed {
    change: MachineChange,
    /// How often it was described for this change.
    described: u32,
    /// `None` once the scans are as frequent.
    next: Option<Instant>,
}

/// The delays between the descriptions of one change.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// The one before the first description, and the least between two calls.
    first_look: Duration,
    /// The next one, which doubles.
    follow_after: Duration,
    tick: Duration,
}

impl Delays {
    /// Returns the delay before a machine that was described this often is described again, if it is shorter than a tick.
    fn after(&self, described: u32) -> Option<Duration> {
        // With a provider that is polled rarely, the first delay is none of its own: it would cost a call and gain nothing.
        let doublings = if self.first_look < self.follow_after {
            described.checked_sub(1)
        } else {
            Some(described)
        };
        let delay = doublings.map_or(self.first_look, |doublings| {
            self.follow_after.saturating_mul(1 << doublings.min(20))
        });
        Some(delay).filter(|delay| *delay < self.tick)
    }
}

/// The machines that are changing, by server.
#[derive(Debug)]
struct Schedule {
    delays: Delays,
    followed: BTreeMap<ServerId, Followed>,
    /// The earliest time of the next call.
    not_before: Instant,
}

impl Schedule {
    fn new(delays: Delays) -> Self {
        Self {
            delays,
            followed: BTreeMap::new(),
            not_before: Instant::now(),
        }
    }

    /// Records a server. A change that is known already keeps its schedule.
    fn update(&mut self, server: &Server, now: Instant) {
        let Some(change) = MachineChange::of(server) else {
            self.followed.remove(&server.id);
            return;
        };
        let known = self.followed.get(&server.id);
        if known.is_some_and(|known| known.change == change) {
            return;
        }
        let next = self.delays.after(0).map(|delay| now + delay);
        let followed = Followed {
            change,
            described: 0,
            next,
        };
        self.followed.insert(server.id, followed);
    }

    /// Returns when the next call is due.
    fn next(&self) -> Option<Instant> {
        let next = self.followed.values().filter_map(|one| one.next).min();
        next.map(|next| next.max(self.not_before))
    }

    /// Returns the machines of the next call, and schedules the one after it. Those that are due soon are included, so that calls do not
    /// follow each other closely.
    fn take_due(&mut self, now: Instant) -> Vec<(ServerId, InstanceId)> {
        let soon = now + self.delays.first_look;
        let mut due = Vec::new();
        for (id, one) in &mut self.followed {
            if one.next.is_none_or(|next| next > soon) {
                continue;
            }
            due.push((*id, one.change.machine.clone()));
            one.described += 1;
            let next = self.delays.after(one.described);
            one.next = next.map(|delay| now + delay);
        }
        self.not_before = soon;
        due
    }
}

impl Monitor {
    /// Describes the machines that are changing, until the future is dropped.
    pub(super) async fn follow_changes(&self) {
        let capabilities = self.cloud.capabilities();
        let mut schedule = Schedule::new(Delays {
            first_look: self.policy.first_look_with(capabilities),
            follow_after: self.policy.follow_after_with(capabilities),
            tick: self.tick(),
        });
        let changes = watch_keys(
            "servers",
            || self.all_servers(),
            |commit| self.servers_of(commit),
        );
        let mut changes = std::pin::pin!(changes);
        loop {
            let next = schedule.next();
            let due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                servers = changes.next() => {
                    for server in servers.into_iter().flatten() {
                        schedule.update(&server, Instant::now());
                    }
                }
                () = due => {
                    let due = schedule.take_due(Instant::now());
                    self.describe_changing(due).await;
                }
            }
        }
    }

    /// Describes machines in one batch, and applies what was found.
    async fn describe_changing(&self, due: Vec<(ServerId, InstanceId)>) {
        let began = self.clock.now();
        let ids: Vec<_> = due.iter().map(|(_, machine)| machine.clone()).collect();
        let described = self.describe(&ids).await;
        let shown = |(_, seen): &(InstanceId, Observation)| matches!(seen, Observation::Shown(..));
        let observations: BTreeMap<_, _> = described.into_iter().filter(shown).collect();
        let found = due
            .into_iter()
            .filter(|(_, id)| observations.contains_key(id));
        let found: Vec<_> = found.map(|(server, _)| server).collect();
        let writes = found.into_iter();
        let writes = writes.map(|server| self.apply_to(server, &observations, began));
        let mut writes = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES);
        while let Some(written) = writes.next().await {
            if let Err(error) = written {
                // The next scan finds the same.
                tracing::warn!(region = %self.region, %error, "an observation could not be written");
            }
        }
    }

    /// Applies an observation to the current record of a server.
    async fn apply_to(
        &self,
        server: ServerId,
        observations: &BTreeMap<InstanceId, Observation>,
        began: DateTime<Utc>,
    ) -> Result<(), super::ScanError> {
        if let Some(read) = self.servers.get(&server.key()?).await? {
            self.write(read, observations, began).await?;
        }
        Ok(())
    }

    /// Lists the servers of the region, and watches from there.
    async fn all_servers(&self) -> Result<(Vec<Server>, Watch), StoreError> {
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        let interest = Interest::kinds([Kind::new(Server::KIND)?]);
        let watch = self.store.watch(page.revision, interest).await?;
        Ok((
            page.items.into_iter().map(|item| item.value).collect(),
            watch,
        ))
    }

    /// Returns the servers of the region that a commit changed. One that was deleted is as it was before, without a machine.
    fn servers_of(&self, commit: &Commit) -> Vec<Server> {
        let server = |change: &Change| {
            let mut server = Table::<Server>::read(change.record().clone()).ok()?.value;
            if matches!(change, Change::Deleted(_)) {
                server.machine = None;
            }
            (server.region == self.region).then_some(server)
        };
        commit.changes.iter().filter_map(server).collect()
    }
}
