//! Checks of the final state, and of the status that every reader sees.

mod instance;
mod leftovers;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{CloudInstanceState, InstanceInfo, PublicAddress};
use fleetwright_compute::service::InstanceView;
use fleetwright_region::{
    account::RegionAccount,
    controller::tags,
    monitor::RegionScan,
    server::{ConditionKind, Health, Power, Server, ServerId, ServerView, TerminationReason},
};
use fleetwright_runtime::clock::Clock as _;
use fleetwright_store::{Document as _, Record, RecordId, Store as _, Table, Versioned};

use crate::{client::Expected, constants, environment::catalog_name, rules::Rules};

/// Compares the records with the cloud's real state.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The records and the cloud's real state.
    pub rules: &'a Rules,
    /// What tenants may expect.
    pub expected: &'a Expected,
    /// Whether the cloud supports changes of tags.
    pub retags: bool,
}

impl Check<'_> {
    /// Checks that no server is reported healthy without a recent scan, or a recent description between two scans.
    pub async fn check_health(&self) {
        let now = self.rules.clock.now();
        // A date that is a little in the future counts as one of now.
        let clock_difference = self.rules.journal.facts(|facts| {
            let seconds = if facts.clocks_were_set { 5 } else { 0 };
            Duration::from_secs(seconds)
        });
        let last_read = self.rules.journal.facts(|facts| {
            let known = facts.processes.values();
            let reads =
                known.map(|known| known.list.map(|(began, _)| began).max(known.description));
            reads.max().flatten()
        });
        // The date of a scan from before a clock was set says nothing to a reader with the new time. The next scan that is recorded
        // replaces it. A scan that began in the same virtual instant may have begun before.
        let (set_at, recorded) = self.rules.journal.facts(|facts| {
            let recorded = facts.processes.values().map(|known| known.recorded_list);
            (facts.clock_set_at, recorded.max().flatten())
        });
        if set_at.is_some() && set_at >= recorded {
            return;
        }
        let fresh = last_read.is_some_and(|began| {
            let age = now.signed_duration_since(began).to_std();
            age.unwrap_or_default() <= constants::TICK * 2 + clock_difference
        });
        for id in self.rules.fixtures.servers() {
            let Some(view) = self.server_view(id).await else {
                continue;
            };
            if view.health == Health::Healthy && !fresh {
                self.rules.journal.report_violation(format!(
                    "server {id} is reported healthy without a scan in the last two intervals"
                ));
            }
            let instance = self.instance_view(id).await;
            if instance.is_some_and(|view| view.health == Health::Healthy) && !fresh {
                self.rules.journal.report_violation(format!(
                    "instance {id} is reported healthy without a scan in the last two intervals"
                ));
            }
        }
    }

    /// Checks that everything is as requested, or returns what is not.
    pub async fn check_settled(&self) -> Result<(), String> {
        let scan = self.scan().await.ok_or("there is no scan record")?;
        let accounts: Vec<Arc<RegionAccount>> = self.rules.all(RegionAccount::KIND).await;
        // Before the first launch nobody can tell whose machines these are: no orphan is terminated, and they are reported only.
        let has_launched = !accounts.is_empty();
        if let Some(reason) = scan.frozen.filter(|_| has_launched) {
            return Err(format!("the monitor is frozen: {reason}"));
        }
        self.check_instances().await?;
        self.check_leftovers().await?;
        self.rules.check_strays().await?;
        let mut claimed = Vec::new();
        for id in self.rules.fixtures.servers() {
            let view = self.server_view(id).await;
            let machine = view.as_ref().and_then(|view| view.server.machine.as_ref());
            claimed.extend(machine.map(|machine| machine.id.clone()));
            self.check_server(id, view)
                .map_err(|problem| format!("server {id} {problem}"))?;
        }
        let (foreign, orphans) = self
            .rules
            .journal
            .facts(|facts| (facts.foreign.clone(), facts.orphans.clone()));
        if let Some(id) = foreign.iter().find(|id| !self.rules.oracle.exists(id)) {
            return Err(format!("machine {id} of another owner was terminated"));
        }
        let mut reported = Vec::new();
        for (info, server) in self.rules.oracle.live() {
            if !orphans.contains(&info.id) {
                continue;
            }
            // Without the record of its launch nothing proves that it is one: it is reported only.
            let server = match server {
                Some(server) if has_launched => self.rules.server(server).await,
                Some(_) | None => None,
            };
            let machine = info.tags.get(tags::MACHINE);
            if server.is_some_and(|server| machine == Some(&server.machine_name(1))) {
                return Err(format!("orphan {} still exists", info.id));
            }
            reported.push(info.id);
        }
        let live = self
            .rules
            .oracle
            .live()
            .into_iter()
            .map(|(info, _)| info.id);
        let known = |id: &_| claimed.contains(id) || foreign.contains(id) || reported.contains(id);
        match live.into_iter().find(|id| !known(id)) {
            Some(id) => Err(format!("machine {id} has no server")),
            None => Ok(()),
        }
    }

    fn check_server(&self, id: ServerId, view: Option<ServerView>) -> Result<(), String> {
        let journal = &self.rules.journal;
        let mut live = self.rules.oracle.live_of(id);
        live.retain(|info| !journal.facts(|facts| facts.is_of_others(&info.id)));
        let Some(view) = view else {
            return match live.first() {
                Some(info) => Err(format!("is removed although machine {} exists", info.id)),
                None => Ok(()),
            };
        };
        let server = &view.server;
        if server.intent.power == Power::Deleted {
            return Err(format!("is not removed: {}", describe_server(server)));
        }
        let destroyed = self.rules.journal.facts(|facts| facts.failed_boots());
        let lost = server.condition(ConditionKind::Lost).is_some();
        let used_up = server.condition(ConditionKind::AttemptsExhausted).is_some();
        if lost || used_up {
            let needed = if lost { 1 } else { 3 };
            return match live.first() {
                Some(info) => Err(format!("has given up although machine {} exists", info.id)),
                None if destroyed < needed => Err("has given up without a cause".to_owned()),
                None => Ok(()),
            };
        }
        let refused = server.condition(ConditionKind::Refused).is_some();
        let [info] = live.as_slice() else {
            let ended = server.machine.as_ref().and_then(|one| one.termination);
            let replaced = ended.is_some_and(|ended| ended.reason == TerminationReason::Replace);
            if refused && live.is_empty() && (!server.has_booted() || replaced) {
                // It was never launched, or its tenant requested a replacement and then a spec that cannot be launched. Its instance says
                // why.
                return Ok(());
            }
            return Err(format!(
                "has {} machines: {}",
                live.len(),
                describe_server(server)
            ));
        };
        if refused {
            // Its instance says why the spec is not applied; its power state is.
            let power = power_of(server);
            return if info.state == power {
                Ok(())
            } else {
                Err(format!("is not {power}: {}", describe_server(server)))
            };
        }
        self.compare(&view, info)
    }

    fn compare(&self, view: &ServerView, info: &InstanceInfo) -> Result<(), String> {
        let server = &view.server;
        let recorded = server.machine.as_ref().ok_or("does not name its machine")?;
        let observed = server.current_observation().ok_or("was never observed")?;
        let wanted = power_of(server);
        let now = self.rules.clock.now();
        let age = view
            .observed_at
            .and_then(|at| now.signed_duration_since(at).to_std().ok());
        let tagged = info
            .tags
            .contains_all(&tags::of(server, recorded.incarnation));
        let address = match server.spec.public_ip {
            PublicAddress::Assigned => wanted == CloudInstanceState::Running,
            PublicAddress::Absent => false,
        };
        // A machine keeps the native names of the mapping that it was launched with.
        let text = |name: Option<&str>| catalog_name(name.unwrap_or_default()).to_owned();
        let rules = [
            (recorded.id == info.id, "names another machine"),
            (info.state == wanted, "is not in the requested state"),
            (
                observed.state == info.state,
                "was observed in another state",
            ),
            (
                observed.private_ip == info.private_ip,
                "was observed with another address",
            ),
            (
                observed.public_ip == info.public_ip,
                "was observed with another public address",
            ),
            (
                info.public_ip.is_some() == address,
                "has or lacks a public address",
            ),
            (tagged || !self.retags, "has other tags"),
            (
                text(info.instance_type.as_ref().map(AsRef::as_ref)) == server.spec.flavor.as_str(),
                "has another size",
            ),
            (
                text(info.image.as_ref().map(AsRef::as_ref)) == server.spec.image.as_str(),
                "has another image",
            ),
            (
                recorded.reboots == server.intent.reboots,
                "was not rebooted",
            ),
            (
                server.observed_generation == server.generation,
                "has not applied its generation",
            ),
            (server.retry.is_none(), "still waits for a retry"),
            (view.health == Health::Healthy, "is not healthy"),
            (
                age.is_some_and(|age| age <= constants::TICK * 2),
                "was not observed recently",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(format!("{problem}: {}", describe_server(server))),
            None => Ok(()),
        }
    }

    async fn instance_view(&self, id: ServerId) -> Option<InstanceView> {
        let read = self.rules.instances.get(&id.key().ok()?).await.ok()??;
        let scan = self.scan().await;
        Some(InstanceView::new(read, scan.as_ref(), self.reader_now()))
    }

    async fn server_view(&self, id: ServerId) -> Option<ServerView> {
        let read = self.rules.servers.get(&id.key().ok()?).await.ok()??;
        let scan = self.scan().await;
        Some(ServerView::new(read, scan.as_ref(), self.reader_now()))
    }

    /// Returns the date by the clock of the process that readers call.
    fn reader_now(&self) -> DateTime<Utc> {
        let process = self.rules.environments.first();
        process.map_or_else(|| self.rules.clock.now(), |process| process.clock.now())
    }

    async fn scan(&self) -> Option<RegionScan> {
        let id = RecordId::new(RegionScan::KIND, constants::region().as_str());
        let record: Record = self.rules.store.get(&id.ok()?).await.ok()??;
        let read: Versioned<RegionScan> = Table::read(record).ok()?;
        Some(read.value)
    }
}

/// Returns the state that a server's machine must have.
fn power_of(server: &Server) -> CloudInstanceState {
    match server.intent.power {
        Power::Running => CloudInstanceState::Running,
        Power::Stopped | Power::Deleted => CloudInstanceState::Stopped,
    }
}

/// Returns a server in one line.
fn describe_server(server: &Server) -> String {
    let last = server.events.iter().rev().take(3).rev();
    let events: Vec<_> = last.map(|event| event.message.as_str()).collect();
    format!(
        "phase {:?}, generation {}/{}, {:?}; {}",
        server.phase(),
        server.observed_generation,
        server.generation,
        server
            .current_observation()
            .map(|observed| (observed.state, observed.presence)),
        events.join("; ")
    )
}
