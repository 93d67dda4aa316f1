//! The monitor: scans a region once per tick, with one list for any number of servers, and records what it observes.
//!
//! Owns the observed state, and never changes the machine of a server. It is the only part that terminates orphans, and only if the
//! operator allows that.
//!
//! # A scan
//!
//! 1. It compares the [account](crate::account) of the provider with the region's, and ends if it is another one.
//! 2. It lists every machine of the account once. Machines are identified by id, so one that lost its tags is not missing.
//! 3. Then it reads the records of the region. A machine that was launched after the list started is too young to be missing.
//! 4. It describes the machines that were not listed: those that are being terminated, and, if the list was complete and not too many
//!    are absent, the others. "Not found" after the consistency window means missing. Before that is believed, the accounts are compared
//!    again.
//! 5. It writes the changes to the records of the servers, and then the [scan record](RegionScan), which covers all unchanged servers.
//!
//! # When a scan is not trusted
//!
//! A few absent machines are believed at once: a tenth of the servers, and at least one, if the list contains another machine of the
//! region. More of them, or all of them, whatever the size of the region, are missing only if they are not found for a
//! [time](Policy::confirm_after) and then once more when each is described on its own. Until then, and after a list with gaps, or with more absent machines
//! than the [limit](Limit), the scan is frozen: no machine is declared missing, except those
//! that are being terminated, and no orphan is terminated. If there are more orphans than the limit, none of them is terminated, nor
//! before the [account](crate::account) of the region is recorded, if the provider reports one. The
//! scan record and the metrics say why. A scan that fails, or whose results cannot be written, leaves the
//! scan record unchanged: a server that was not observed within two ticks has unknown health.
//!
//! # Which orphans are terminated
//!
//! Tags alone prove nothing: a store that was restored from a backup does not know the servers and replacements that came after it, and
//! another installation may use the same region name in the same account. An orphan is terminated only if the record of its server shows
//! that this system launched it and has replaced it since, or if its termination was requested before and did not find it. Any other
//! orphan is [kept](OrphanOutcome::Kept) and reported for the operator.
//!
//! # Between two scans
//!
//! A machine that was launched, started, stopped or terminated is described after a [short delay](Policy::first_look), again after a second, and
//! then after delays that double up to a tick, until it has reached its state: all machines that are changing together, and at most five
//! times a second, or once in the provider's poll interval. So a boot is observed when it happens, and the scan finds what this has missed.
//!
//! # Clocks
//!
//! A date in the future, from before a clock was set back, is replaced: it hides no later observation.
//!
//! # Metrics
//!
//! All have the label `region`.
//!
//! | name | kind | what |
//! | --- | --- | --- |
//! | `fleetwright_region_scans_total` | counter | scans, by `outcome`: `ok`, `frozen`, `failed` |
//! | `fleetwright_region_machines` | gauge | machines listed |
//! | `fleetwright_region_servers` | gauge | servers with a machine |
//! | `fleetwright_region_machines_absent` | gauge | machines of servers that were not listed |
//! | `fleetwright_region_drift` | gauge | servers that have drifted, by `kind` |
//! | `fleetwright_region_orphans` | gauge | orphans found |
//! | `fleetwright_region_orphans_terminated_total` | counter | orphans terminated |
//! | `fleetwright_region_frozen` | gauge | 1 if the last scan was frozen |
//! | `fleetwright_region_account_differs` | gauge | 1 if the provider uses another account than the region's |
//! | `fleetwright_region_leaked_launches` | gauge | launches that reached another account and wait for an operator |
//! | `fleetwright_region_scan_seconds` | histogram | duration of a scan |
//! | `fleetwright_region_unreadable_total` | counter | records of servers that cannot be read |
//!
//! The controller adds `fleetwright_region_steps_total` by `step`, `fleetwright_region_call_failures_total` by `operation` and
//! `kind`, `fleetwright_region_store_failures_total`, `fleetwright_region_servers_queued` and
//! `fleetwright_region_servers_deleted_total`.

mod absence;
mod cleanup;
mod follow;
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

use fleetwright::{AccountId, InstanceProvisioner, ProvisionError};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, StoreError, Table};
use metrics::{counter, histogram};
use tokio::time::{Instant, sleep_until};

use crate::{
    account::{AccountError, AccountGuard, ConfirmedAccount, guarded},
    ids::RegionId,
    server::Server,
};

pub use policy::{Limit, OrphanPolicy, Policy};
pub use record::{MAX_LISTED_ORPHANS, Orphan, OrphanOutcome, RegionScan};
pub use scan::ScanReport;

use orphan::FirstSeen;

/// Scans a region once per tick. See the [module](self).
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::{ids::RegionId, monitor::{Monitor, OrphanPolicy, Policy}};
/// use fleetwright_runtime::clock::SystemClock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// let mut policy = Policy::default();
/// policy.orphans = OrphanPolicy::Terminate;
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let monitor = Monitor::new(RegionId::new("north")?, store, cloud, Arc::new(SystemClock))?
///     .with_policy(policy);
///
/// let report = monitor.scan().await?; // `run` scans once per tick
/// assert_eq!(report.frozen, None);
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// - One list per scan, whatever the number of servers, and at most five batches of descriptions a second in between, or one in the
///   provider's poll interval.
/// - A machine that exists after the consistency window is never declared missing. A machine that belongs to a record, or that a
///   pending launch may have created, is never terminated.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
pub struct Monitor {
    region: RegionId,
    store: Arc<dyn Store>,
    servers: Table<Server>,
    scans: Table<RegionScan>,
    /// Refuses every call while the provider uses another account than the region's.
    cloud: Arc<dyn InstanceProvisioner>,
    account: Arc<AccountGuard>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    unclaimed: Mutex<FirstSeen>,
}

/// Why a scan failed. Some of its results may be written; the scan record is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The cloud could not be listed.
    #[error("the region cannot be listed")]
    Cloud(#[from] ProvisionError),
    /// The provider uses another account than the one of the region's machines.
    #[error(
        "the machines of region {region} are in the account {recorded}, and the provider uses {current}: nothing is observed or changed until \
         the credentials of {recorded} are configured, or the operator accepts {current}"
    )]
    OtherAccount {
        /// The region.
        region: RegionId,
        /// The account of the region's machines.
        recorded: AccountId,
        /// The account that the provider uses.
        current: AccountId,
    },
    /// The results could not be stored.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// Other writers changed the same records on every attempt.
    #[error("{0} servers were changed by others during the scan: the next scan includes them")]
    Busy(u64),
}

impl From<AccountError> for ScanError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Cloud(error) => Self::Cloud(error),
            AccountError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Invalid> for ScanError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl Monitor {
    /// Creates the monitor of a region, on a store with [the region's kinds](crate::schema::add_kinds).
    pub fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        cloud: Arc<dyn InstanceProvisioner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        let accounts = Table::new(Arc::clone(&store))?;
        let (cloud, account) = guarded(&region, &store, accounts, cloud);
        Ok(Self {
            region,
            servers: Table::new(Arc::clone(&store))?,
            scans: Table::new(Arc::clone(&store))?,
            store,
            cloud,
            account,
            clock,
            policy: Policy::default(),
            unclaimed: Mutex::default(),
        })
    }

    /// Shares with the other parts of the region when its account was last confirmed.
    #[must_use]
    pub fn with_confirmed_account(self, confirmed: &ConfirmedAccount) -> Self {
        self.account.share(confirmed);
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the time between two scans.
    pub fn tick(&self) -> Duration {
        self.policy.tick_with(self.cloud.capabilities())
    }

    /// Scans once per tick, and describes machines that are changing in between, until the future is dropped.
    pub async fn run(&self) {
        tokio::join!(self.run_scans(), self.follow_changes());
    }

    async fn run_scans(&self) {
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
            // Counted from the start, so that a slow list does not make scans rarer; and never without a pause.
            let next = began + self.tick();
            sleep_until(next.max(Instant::now() + self.tick() / 4)).await;
        }
    }

    fn first_seen(&self) -> std::sync::MutexGuard<'_, FirstSeen> {
        // The content is replaced as a whole, so a panic elsewhere leaves it consistent.
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
