//! One scan: the order of its reads and writes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use fleetwright::{AccountId, InstanceFilter, InstanceId, InstanceInfo, ListItem, ProvisionError};
use fleetwright_store::{IndexName, Transaction, Versioned};
use futures_util::{StreamExt as _, stream};
use metrics::{counter, gauge};

use super::{
    Monitor, Orphan, RegionScan, ScanError,
    observation::{self, Observation, ScanContext},
};
use crate::{
    account::{AccountError, AccountState},
    controller::conclude,
    server::{Drift, REGION_INDEX, Server},
};

/// How many records are written at once.
const CONCURRENT_WRITES: usize = 16;
/// Why no orphan is terminated before the account of the region is recorded.
const UNKNOWN_ACCOUNT: &str = "there are machines without a server, and the account of the region is not recorded yet, so they may belong to somebody else: \
     the first launch records it";
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
    /// How many records of servers cannot be read. Their machines are not observed, and no orphan is terminated meanwhile.
    pub unreadable: u64,
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
        let (unrecorded, confirmed) = match self.account_at_start(began).await? {
            AtStart::Confirmed(unrecorded) => (unrecorded, true),
            AtStart::Outage => (None, false),
        };
        let (listed, gaps) = self.list().await?;
        let (servers, unreadable) = self.records().await?;
        let mut report = ScanReport {
            unreadable,
            machines: count(listed.len()),
            servers: count(servers.len()),
            gaps,
            ..ScanReport::default()
        };
        let named = servers
            .iter()
            .filter_map(|read| read.value.machine.as_ref());
        let named: BTreeSet<_> = named.map(|machine| machine.id.clone()).collect();
        let mut observations = self
            .observations(&servers, &listed, began, &mut report)
            .await;
        let missing = |seen: &Observation| matches!(seen, Observation::Missing);
        if !confirmed {
            observations.retain(|_, seen| !missing(seen));
            report.frozen = Some("the account cannot be confirmed now".to_owned());
        } else if observations.values().any(missing) || self.has_orphans(&listed, &named) {
            // The list is believed only if it was one of the region's account at its end as well.
            self.check_account(began).await?;
        }
        if unrecorded.is_some() && report.frozen.is_none() && self.has_orphans(&listed, &named) {
            report.frozen = Some(UNKNOWN_ACCOUNT.to_owned());
        }
        if let Some(account) = unrecorded.filter(|_| listed.keys().any(|id| named.contains(id))) {
            self.account.adopt(account, began).await?;
        }
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

    /// Compares the accounts before a scan. An outage of what reports the account does not end the scans of a region at once: they go on for
    /// a while, and believe no absence.
    async fn account_at_start(&self, now: DateTime<Utc>) -> Result<AtStart, ScanError> {
        match self.compare_account(now).await {
            Ok(unrecorded) => Ok(AtStart::Confirmed(unrecorded?)),
            Err(error) if self.account.is_recently_confirmed(&error) => {
                tracing::warn!(region = %self.region, ?error, "the account cannot be read now; machines are observed, and none is believed to be missing");
                Ok(AtStart::Outage)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn check_account(&self, now: DateTime<Utc>) -> Result<Option<AccountId>, ScanError> {
        self.compare_account(now).await?
    }

    /// Compares the account of the provider with the region's. Returns the account of the provider if none is recorded yet.
    async fn compare_account(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Result<Option<AccountId>, ScanError>, AccountError> {
        let state = self.account.current().await?;
        let differs = matches!(state, AccountState::Other { .. });
        gauge!("fleetwright_region_account_differs", "region" => self.label()).set(if differs {
            1.0
        } else {
            0.0
        });
        Ok(match state {
            AccountState::NotRecorded(current) => Ok(current),
            AccountState::Same => {
                let leaked = self.account.report(None, now).await?;
                let gauge = gauge!("fleetwright_region_leaked_launches", "region" => self.label());
                #[expect(clippy::cast_precision_loss, reason = "gauges are f64")]
                gauge.set(leaked as f64);
                Ok(None)
            }
            AccountState::Other { recorded, current } => {
                self.account.report(Some(&current), now).await?;
                let region = self.region.clone();
                Err(ScanError::OtherAccount {
                    region,
                    recorded,
                    current,
                })
            }
        })
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

    /// Reads the region's servers that have a machine, and returns how many records cannot be read.
    async fn records(&self) -> Result<(Vec<Versioned<Server>>, u64), ScanError> {
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        let unreadable = count(page.damaged.len());
        counter!("fleetwright_region_unreadable_total", "region" => self.label())
            .increment(unreadable);
        let has_machine = |item: &Versioned<Server>| item.value.machine.is_some();
        let servers = page.items.into_iter().filter(has_machine).collect();
        Ok((servers, unreadable))
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
    pub(super) async fn write(
        &self,
        mut read: Versioned<Server>,
        observations: &BTreeMap<InstanceId, Observation>,
        began: DateTime<Utc>,
    ) -> Result<Option<Written>, ScanError> {
        let context = ScanContext {
            began,
            now: self.clock.now(),
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
            conclude(&mut server, self.cloud.capabilities(), context.now);
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
        let now = self.clock.now();
        let transaction = match self.scans.get(&key).await? {
            // Another monitor has written a later scan. One from the future hides no other: a clock was set back.
            Some(newer) if newer.value.at > began && newer.value.at <= now => return Ok(()),
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

/// The account before a scan.
enum AtStart {
    /// It is the region's, or there is none to compare with. With the account of the provider if none is recorded yet.
    Confirmed(Option<AccountId>),
    /// It cannot be read now, and was confirmed a short while ago.
    Outage,
}

/// The result of writing the record of a server.
pub(super) struct Written {
    drift: Vec<Drift>,
    changed: bool,
}

pub(super) fn count(items: usize) -> u64 {
    items as u64
}
