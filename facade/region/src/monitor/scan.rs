//! One scan: the order of its reads and writes.

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
    Monitor, Orphan, RegionScan, ScanError,
    observation::{self, Observation, ScanContext},
};
use crate::server::{Drift, Presence, REGION_INDEX, Server};

/// How many records are written at once.
const CONCURRENT_WRITES: usize = 16;
/// How often a write is tried when others write the same record.
const TRIES: usize = 8;

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanReport {
    /// Listed machines, including those of others in the account.
    pub machines: u64,
    /// Servers that have a machine.
    pub servers: u64,
    /// How many of those machines were not listed.
    pub absent: u64,
    /// The number of servers by kind of drift.
    pub drift: BTreeMap<Drift, u64>,
    /// The parts of the account that could not be listed.
    pub gaps: Vec<String>,
    /// Why the scan is not trusted, and no orphan was terminated: gaps, too many absent machines, or too many orphans. `None` if the scan is trusted.
    pub frozen: Option<String>,
    /// The orphans, with what was done about each.
    pub orphans: Vec<Orphan>,
    /// How many records were written.
    pub written: u64,
}

impl Monitor {
    /// Scans the region once.
    pub async fn scan(&self) -> Result<ScanReport, ScanError> {
        let began = self.clock.now();
        let (listed, gaps) = self.list().await?;
        let servers = self.records().await?;
        let mut report = ScanReport {
            machines: count(listed.len()),
            servers: count(servers.len()),
            gaps,
            ..ScanReport::default()
        };
        let named = servers
            .iter()
            .filter_map(|read| read.value.machine.as_ref());
        let named = named.map(|machine| machine.id.clone()).collect();
        let observations = self
            .observations(&servers, &listed, began, &mut report)
            .await;
        let unwritten = self
            .write_all(servers, &observations, began, &mut report)
            .await?;
        self.orphans(&listed, &named, began, &mut report).await?;
        self.measure(&report);
        if unwritten > 0 {
            return Err(ScanError::Busy(unwritten));
        }
        self.write_scan_record(began, &report).await?;
        Ok(report)
    }

    /// Lists every machine in the account that is not terminated, with the gaps of the list.
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

    /// Reads the region's servers that have a machine.
    async fn records(&self) -> Result<Vec<Versioned<Server>>, ScanError> {
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        let unreadable = page.damaged.len() as u64;
        counter!("fleetwright_region_unreadable_total", "region" => self.label())
            .increment(unreadable);
        let has_machine = |item: &Versioned<Server>| item.value.machine.is_some();
        Ok(page.items.into_iter().filter(has_machine).collect())
    }

    /// Returns the observation of each machine that a record names.
    async fn observations(
        &self,
        servers: &[Versioned<Server>],
        listed: &BTreeMap<InstanceId, InstanceInfo>,
        began: DateTime<Utc>,
        report: &mut ScanReport,
    ) -> BTreeMap<InstanceId, Observation> {
        let window = self.cloud.capabilities().consistency_window;
        let (mut observations, mut to_describe, mut unexplained) =
            (BTreeMap::new(), Vec::new(), Vec::new());
        for server in servers {
            let Some(machine) = &server.value.machine else {
                continue;
            };
            if let Some(info) = listed.get(&machine.id) {
                let tags = Some(info.tags.clone());
                let observation = Observation::Shown(Box::new(info.clone().into()), tags);
                observations.insert(machine.id.clone(), observation);
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
                unexplained.push(machine.id.clone());
            }
        }
        let limit = self.policy.limit.among(report.servers);
        if !report.gaps.is_empty() {
            report.frozen = Some(format!("the list has gaps: {}", report.gaps.join(", ")));
        } else if count(unexplained.len()) > limit {
            let absent = unexplained.len();
            report.frozen = Some(format!(
                "{absent} machines are absent at once, more than the limit of {limit}"
            ));
        }
        if report.frozen.is_none() {
            to_describe.append(&mut unexplained);
        }
        observations.extend(self.describe(&to_describe).await);
        observations
    }

    /// Describes machines by id.
    async fn describe(&self, ids: &[InstanceId]) -> Vec<(InstanceId, Observation)> {
        if ids.is_empty() {
            return Vec::new();
        }
        let results = self.cloud.describe_instances(ids).await;
        let observation = |result: Result<InstanceStatus, ProvisionError>| match result {
            Ok(status) => Observation::Shown(Box::new(status), None),
            Err(error) if error.kind() == ErrorKind::NotFound => Observation::Missing,
            Err(_) => Observation::Absent,
        };
        let results = results.into_iter().map(observation);
        ids.iter().cloned().zip(results).collect()
    }

    /// Writes every record that an observation changes, and returns how many could not be written.
    async fn write_all(
        &self,
        servers: Vec<Versioned<Server>>,
        observations: &BTreeMap<InstanceId, Observation>,
        began: DateTime<Utc>,
        report: &mut ScanReport,
    ) -> Result<u64, ScanError> {
        let writes = servers
            .into_iter()
            .map(|read| self.write(read, observations, began));
        let mut writes = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES);
        let mut unwritten = 0;
        while let Some(written) = writes.next().await {
            let Some(server) = written? else {
                unwritten += 1;
                continue;
            };
            report.written += u64::from(server.changed);
            for sort in server.drift {
                *report.drift.entry(sort).or_default() += 1;
            }
        }
        Ok(unwritten)
    }

    /// Writes the observation of one server. Returns `None` if every attempt conflicted with another writer.
    async fn write(
        &self,
        mut read: Versioned<Server>,
        observations: &BTreeMap<InstanceId, Observation>,
        began: DateTime<Utc>,
    ) -> Result<Option<Written>, ScanError> {
        let context = ScanContext {
            began,
            window: self.cloud.capabilities().consistency_window,
            stuck_after: self.policy.stuck_after,
        };
        for _ in 0..TRIES {
            let machine = read.value.machine.as_ref().map(|machine| &machine.id);
            let mut server = read.value.clone();
            if let Some(observation) = machine.and_then(|id| observations.get(id)) {
                observation::apply(&mut server, observation, &context);
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

    /// Writes the scan record, after all changes are written.
    async fn write_scan_record(
        &self,
        began: DateTime<Utc>,
        report: &ScanReport,
    ) -> Result<(), ScanError> {
        let key = RegionScan::key(&self.region)?;
        let mut orphans = report.orphans.clone();
        orphans.truncate(super::MAX_LISTED_ORPHANS);
        let scan = RegionScan {
            region: self.region.clone(),
            at: began,
            tick: self.tick(),
            machines: report.machines,
            servers: report.servers,
            gaps: report.gaps.clone(),
            frozen: report.frozen.clone(),
            orphans,
        };
        let transaction = match self.scans.get(&key).await? {
            // Another monitor has written a later scan.
            Some(newer) if newer.value.at > began => return Ok(()),
            Some(older) => self.scans.replace(Transaction::new(), &older, &scan)?,
            None => self.scans.create(Transaction::new(), &key, &scan)?,
        };
        match self.store.commit(&transaction).await {
            Ok(_) => Ok(()),
            Err(error) if error.conflict().is_some() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges are f64")]
    fn measure(&self, report: &ScanReport) {
        let set = |name: &'static str, value: u64| {
            gauge!(name, "region" => self.label()).set(value as f64);
        };
        set("fleetwright_region_machines", report.machines);
        set("fleetwright_region_servers", report.servers);
        set("fleetwright_region_machines_absent", report.absent);
        set("fleetwright_region_orphans", count(report.orphans.len()));
        set("fleetwright_region_frozen", report.frozen.is_some().into());
        for sort in Drift::ALL {
            let servers = report.drift.get(&sort).copied().unwrap_or_default();
            let labels = [("region", self.label()), ("kind", sort.as_str().to_owned())];
            gauge!("fleetwright_region_drift", &labels).set(servers as f64);
        }
    }
}

/// The result of writing the record of a server.
struct Written {
    drift: Vec<Drift>,
    changed: bool,
}

pub(super) fn count(items: usize) -> u64 {
    items as u64
}
