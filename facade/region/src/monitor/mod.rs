//! The monitor: looks at a region once per tick, with one list for any number of servers, and writes what it saw.
//!
//! Owns what is observed, and never acts on a server's machine. It is the only one that destroys what no record names, and only
//! where its operator allows that.
//!
//! # A look
//!
//! 1. Everything in the account is listed, once. MachineAccess are told by their ids, so that one whose tags were taken away is
//!    not missing.
//! 2. Then the records of the region are read: a machine that was launched after the list began is too young to be missed.
//! 3. MachineAccess that were not listed are asked for by their ids, in one batch: those that are on their way out, and, if the
//!    list was complete and not too many are absent, the others. "Not found" past the consistency window is missing.
//! 4. What has changed is written to the servers' records; then the scan, which says that all others are as they were.
//!
//! # When it is not believed
//!
//! A list with gaps, and a count of absent or unclaimed machines above the [limit](Limit), freeze it: nothing is declared
//! missing and nothing swept, and the [scan](RegionScan) and the metrics say why. A look that fails, or whose report cannot be
//! written, leaves the scan as it was: what was not looked at within two ticks has unknown health.
//!
//! # Metrics
//!
//! All have the label `region`.
//!
//! | name | kind | what |
//! | --- | --- | --- |
//! | `fleetwright_region_scans_total` | counter | looks, by `outcome`: `ok`, `frozen`, `failed` |
//! | `fleetwright_region_machines` | gauge | machines listed |
//! | `fleetwright_region_servers` | gauge | servers with a machine |
//! | `fleetwright_region_machines_absent` | gauge | machines of servers that were not listed |
//! | `fleetwright_region_drift` | gauge | servers that have drifted, by `kind` |
//! | `fleetwright_region_orphans` | gauge | machines of the region that no server claims |
//! | `fleetwright_region_orphans_terminated_total` | counter | orphans destroyed |
//! | `fleetwright_region_frozen` | gauge | 1 while nothing is declared missing or swept |
//! | `fleetwright_region_scan_seconds` | histogram | how long a look took |
//! | `fleetwright_region_unreadable_total` | counter | records of servers that cannot be read |
//!
//! The controller adds `fleetwright_region_steps_total` by `step`, `fleetwright_region_call_failures_total` by `operation` and
//! `kind`, `fleetwright_region_store_failures_total`, `fleetwright_region_servers_queued` and
//! `fleetwright_region_servers_deleted_total`.

mod cleanup;
mod observation;
mod orphan;
mod policy;
mod record;
mod scan;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleetwright::{InstanceProvisioner, ProvisionError};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, StoreError, Table};
use metrics::{counter, histogram};
use tokio::time::{Instant, sleep_until};

use crate::{ids::RegionId, server::Server};

pub use policy::{Limit, Policy, Sweep};
pub use record::{MAX_LISTED_ORPHANS, Orphan, OrphanOutcome, RegionScan};
pub use scan::ScanReport;

use orphan::FirstSeen;

/// Looks at a region once per tick. See the [module](self).
///
/// # Guarantees
///
/// - One list for each look, whatever the number of servers.
/// - A machine that exists past the consistency window is never declared missing, and one that a record names, or a launch
///   under way may have made, is never swept.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
pub struct Monitor {
    region: RegionId,
    store: Arc<dyn Store>,
    servers: Table<Server>,
    scans: Table<RegionScan>,
    cloud: Arc<dyn InstanceProvisioner>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    unclaimed: Mutex<FirstSeen>,
}

/// Why a look came to nothing. What it saw until then may be written; the scan is as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The cloud did not show what there is.
    #[error("the region cannot be listed")]
    Cloud(#[from] ProvisionError),
    /// The store did not take what was seen.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// Others wrote the same records again and again.
    #[error("{0} servers were changed by others during the scan: the next scan includes them")]
    Busy(u64),
}

impl From<Invalid> for ScanError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl Monitor {
    /// The monitor of a region, on a store whose schema has [its kinds](crate::schema::add_kinds).
    pub fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        cloud: Arc<dyn InstanceProvisioner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            region,
            servers: Table::new(Arc::clone(&store))?,
            scans: Table::new(Arc::clone(&store))?,
            store,
            cloud,
            clock,
            policy: Policy::default(),
            unclaimed: Mutex::default(),
        })
    }

    /// With another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How often it looks.
    pub fn tick(&self) -> Duration {
        self.policy.tick_with(self.cloud.capabilities())
    }

    /// Looks, tick by tick, until it is dropped.
    pub async fn run(&self) {
        loop {
            let began = Instant::now();
            let outcome = match self.scan().await {
                Ok(report) if report.frozen.is_some() => "frozen",
                Ok(_) => "ok",
                Err(error) => {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(region = %self.region, %error, ?source, "a scan failed");
                    "failed"
                }
            };
            let labels = [("region", self.label()), ("outcome", outcome.to_owned())];
            counter!("fleetwright_region_scans_total", &labels).increment(1);
            histogram!("fleetwright_region_scan_seconds", "region" => self.label())
                .record(began.elapsed());
            // From the beginning, so that a slow list does not make the looks rarer; and never without a pause.
            let next = began + self.tick();
            sleep_until(next.max(Instant::now() + self.tick() / 4)).await;
        }
    }

    fn first_seen(&self) -> std::sync::MutexGuard<'_, FirstSeen> {
        // What is in it is replaced as a whole: a panic elsewhere leaves it whole.
        self.unclaimed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn label(&self) -> String {
        self.region.to_string()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
