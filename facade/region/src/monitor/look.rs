//! One look: the order of its reads and writes.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use fleetwright::{
    ErrorKind, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, ListItem, ProvisionError,
};
use fleetwright_runtime::clock::later;
use fleetwright_store::{IndexName, Transaction, Versioned};
use futures_util::{StreamExt as _, stream};
use metrics::{counter, gauge};

use super::{
    LookError, Monitor, Orphan, Pulse,
    judge::{self, Look, Sight},
};
use crate::server::{Drift, Presence, REGION_INDEX, Server};

/// How many records are written at once.
const CONCURRENT_WRITES: usize = 16;
/// How often a record is tried that others write, too.
const TRIES: usize = 8;

/// What a look came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// Machines listed, other people's too.
    pub machines: u64,
    /// Servers that have a machine.
    pub servers: u64,
    /// How many of those machines were not listed.
    pub absent: u64,
    /// Servers by the sort of their drift.
    pub drift: BTreeMap<Drift, u64>,
    /// What could not be seen.
    pub gaps: Vec<String>,
    /// Why nothing was declared missing and nothing swept, if that is so.
    pub frozen: Option<String>,
    /// Machines that no server claims, with what was done about each.
    pub orphans: Vec<Orphan>,
    /// How many records were written.
    pub written: u64,
}

impl Monitor {
    /// Looks once.
    pub async fn look(&self) -> Result<Findings, LookError> {
        let began = self.clock.now();
        let (listed, gaps) = self.list().await?;
        let servers = self.records().await?;
        let mut findings = Findings {
            machines: count(listed.len()),
            servers: count(servers.len()),
            gaps,
            ..Findings::default()
        };
        let named = servers
            .iter()
            .filter_map(|read| read.value.instance.as_ref());
        let named = named.map(|machine| machine.id.clone()).collect();
        let sights = self.sights(&servers, &listed, began, &mut findings).await;
        let unwritten = self
            .write_all(servers, &sights, began, &mut findings)
            .await?;
        self.orphans(&listed, &named, began, &mut findings).await?;
        self.measure(&findings);
        if unwritten > 0 {
            return Err(LookError::Busy(unwritten));
        }
        self.beat(began, &findings).await?;
        Ok(findings)
    }

    /// Every machine in the account that is not terminated, and what could not be seen.
    async fn list(
        &self,
    ) -> Result<(BTreeMap<InstanceId, InstanceInfo>, Vec<String>), ProvisionError> {
        let filter = InstanceFilter::new();
        let mut stream = self.cloud.stream_instances(&filter);
        let (mut listed, mut gaps) = (BTreeMap::new(), Vec::new());
        while let Some(seen) = stream.next().await {
            match seen? {
                ListItem::Instance(info) => {
                    listed.insert(info.id.clone(), *info);
                }
                ListItem::Gap { scope, error: _ } => gaps.push(scope.to_string()),
            }
        }
        Ok((listed, gaps))
    }

    /// The region's servers that have a machine.
    async fn records(&self) -> Result<Vec<Versioned<Server>>, LookError> {
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        let unreadable = page.damaged.len() as u64;
        counter!("fleetwright_region_unreadable_total", "region" => self.label())
            .increment(unreadable);
        let has_machine = |item: &Versioned<Server>| item.value.instance.is_some();
        Ok(page.items.into_iter().filter(has_machine).collect())
    }

    /// What the look shows of each machine that a record names.
    async fn sights(
        &self,
        servers: &[Versioned<Server>],
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        began: DateTime<Utc>,
        findings: &mut Findings,
    ) -> BTreeMap<InstanceId, Sight> {
        let window = self.cloud.capabilities().consistency_window;
        let (mut sights, mut leaving, mut strange) = (BTreeMap::new(), Vec::new(), Vec::new());
        for server in servers {
            let Some(machine) = &server.value.instance else {
                continue;
            };
            if let Some(info) = listed.get(&machine.id) {
                let tags = Some(info.tags.clone());
                let sight = Sight::Shown(Box::new(info.clone().into()), tags);
                sights.insert(machine.id.clone(), sight);
                continue;
            }
            let known = server.value.seen();
            if known.is_some_and(|seen| seen.state.is_final()) {
                continue;
            }
            findings.absent += 1;
            sights.insert(machine.id.clone(), Sight::Absent);
            let visible = began > later(machine.recorded_at, window);
            let missing = known.is_some_and(|seen| matches!(seen.presence, Presence::Missing(_)));
            if missing || !visible {
            } else if machine.ending.is_some() {
                leaving.push(machine.id.clone());
            } else {
                strange.push(machine.id.clone());
            }
        }
        let limit = self.policy.limit.among(findings.servers);
        if !findings.gaps.is_empty() {
            findings.frozen = Some(format!("the list has gaps: {}", findings.gaps.join(", ")));
        } else if count(strange.len()) > limit {
            let absent = strange.len();
            findings.frozen = Some(format!(
                "{absent} machines are absent at once, more than the {limit} that are believed"
            ));
        }
        if findings.frozen.is_none() {
            leaving.append(&mut strange);
        }
        sights.extend(self.ask(&leaving).await);
        sights
    }

    /// Asks for machines by name.
    async fn ask(&self, ids: &[InstanceId]) -> Vec<(InstanceId, Sight)> {
        if ids.is_empty() {
            return Vec::new();
        }
        let answers = self.cloud.describe_instances(ids).await;
        let sight = |answer: Result<InstanceStatus, ProvisionError>| match answer {
            Ok(status) => Sight::Shown(Box::new(status), None),
            Err(error) if error.kind() == ErrorKind::NotFound => Sight::Missing,
            Err(_) => Sight::Absent,
        };
        let answers = answers.into_iter().map(sight);
        ids.iter().cloned().zip(answers).collect()
    }

    /// Writes every record that a sight changes, and answers how many could not be.
    async fn write_all(
        &self,
        servers: Vec<Versioned<Server>>,
        sights: &BTreeMap<InstanceId, Sight>,
        began: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Result<u64, LookError> {
        let writes = servers
            .into_iter()
            .map(|read| self.write(read, sights, began));
        let mut writes = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES);
        let mut unwritten = 0;
        while let Some(written) = writes.next().await {
            let Some(server) = written? else {
                unwritten += 1;
                continue;
            };
            findings.written += u64::from(server.changed);
            for sort in server.drift {
                *findings.drift.entry(sort).or_default() += 1;
            }
        }
        Ok(unwritten)
    }

    /// Writes what was seen of one server; nothing if others were faster all the time.
    async fn write(
        &self,
        mut read: Versioned<Server>,
        sights: &BTreeMap<InstanceId, Sight>,
        began: DateTime<Utc>,
    ) -> Result<Option<Written>, LookError> {
        let look = Look {
            began,
            window: self.cloud.capabilities().consistency_window,
            stuck_after: self.policy.stuck_after,
        };
        for _ in 0..TRIES {
            let machine = read.value.instance.as_ref().map(|machine| &machine.id);
            let mut server = read.value.clone();
            if let Some(sight) = machine.and_then(|id| sights.get(id)) {
                judge::apply(&mut server, sight, &look);
            }
            let drift: Vec<_> = server.drift.iter().copied().collect();
            if server == read.value {
                let changed = false;
                return Ok(Some(Written { drift, changed }));
            }
            let transaction = self.servers.replace(Transaction::new(), &read, &server)?;
            match self.store.commit(&transaction).await {
                Ok(_) => {
                    let changed = true;
                    return Ok(Some(Written { drift, changed }));
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
            match self.servers.get(&read.key).await? {
                Some(newer) => read = newer,
                None => {
                    let (drift, changed) = (Vec::new(), false);
                    return Ok(Some(Written { drift, changed }));
                }
            }
        }
        Ok(None)
    }

    /// Says that everything which the look saw is written.
    async fn beat(&self, began: DateTime<Utc>, findings: &Findings) -> Result<(), LookError> {
        let key = Pulse::key(&self.region)?;
        let mut orphans = findings.orphans.clone();
        orphans.truncate(super::ORPHANS_NAMED);
        let pulse = Pulse {
            region: self.region.clone(),
            at: began,
            tick: self.tick(),
            machines: findings.machines,
            servers: findings.servers,
            gaps: findings.gaps.clone(),
            frozen: findings.frozen.clone(),
            orphans,
        };
        let transaction = match self.pulses.get(&key).await? {
            // Another monitor looked later.
            Some(newer) if newer.value.at > began => return Ok(()),
            Some(older) => self.pulses.replace(Transaction::new(), &older, &pulse)?,
            None => self.pulses.create(Transaction::new(), &key, &pulse)?,
        };
        match self.store.commit(&transaction).await {
            Ok(_) => Ok(()),
            Err(error) if error.conflict().is_some() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
    fn measure(&self, findings: &Findings) {
        let set = |name: &'static str, value: u64| {
            gauge!(name, "region" => self.label()).set(value as f64);
        };
        set("fleetwright_region_machines", findings.machines);
        set("fleetwright_region_servers", findings.servers);
        set("fleetwright_region_absent", findings.absent);
        set("fleetwright_region_orphans", count(findings.orphans.len()));
        set(
            "fleetwright_region_frozen",
            findings.frozen.is_some().into(),
        );
        for sort in Drift::ALL {
            let servers = findings.drift.get(&sort).copied().unwrap_or_default();
            let labels = [("region", self.label()), ("kind", sort.as_str().to_owned())];
            gauge!("fleetwright_region_drift", &labels).set(servers as f64);
        }
    }
}

/// What became of the record of a server.
struct Written {
    drift: Vec<Drift>,
    changed: bool,
}

pub(super) fn count(items: usize) -> u64 {
    items as u64
}
