//! The scan record: one for each region, written once per scan, so that a scan without changes writes one record instead of one for each
//! server.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::InstanceId;
use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize};

use crate::ids::RegionId;

/// How many orphans a scan record lists.
pub const MAX_LISTED_ORPHANS: usize = 50;

/// The result of the last scan of a region. Written only by its [monitor](super::Monitor), after all changes are in the records of the
/// servers.
///
/// ```
/// use fleetwright_region::{ids::RegionId, monitor::RegionScan};
/// use fleetwright_store::Table;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
/// # let region = fleetwright_facade_testkit::TestRegion::new(std::sync::Arc::new(cloud));
/// region.monitor.scan().await?;
/// let scans = Table::<RegionScan>::new(region.store.clone())?;
/// let scan = scans.get(&RegionScan::key(&RegionId::new("north")?)?).await?;
/// assert_eq!(scan.map(|scan| scan.value.machines), Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegionScan {
    /// The region.
    pub region: RegionId,
    /// When the scan started.
    pub at: DateTime<Utc>,
    /// The time between two scans.
    pub tick: Duration,
    /// How many machines were listed, including those of others in the account.
    pub machines: u64,
    /// How many servers have a machine.
    pub servers: u64,
    /// The parts of the account that could not be listed.
    pub gaps: Vec<String>,
    /// Why the scan is not trusted, and no orphan is terminated: gaps, too many absent machines, or too many orphans. `None` if the scan is trusted.
    pub frozen: Option<String>,
    /// The first [`MAX_LISTED_ORPHANS`] orphans.
    pub orphans: Vec<Orphan>,
}

/// A machine of a region that belongs to no server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// The machine.
    pub machine: InstanceId,
    /// The server that its tags name.
    pub server: Option<String>,
    /// Since when it is known.
    pub since: DateTime<Utc>,
    /// What was done about it.
    pub outcome: OrphanOutcome,
}

/// What was done about an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrphanOutcome {
    /// It was reported.
    Reported,
    /// The cloud accepted its termination.
    Terminated,
    /// The termination failed; the next scan retries it.
    TerminationFailed,
    /// It was reported, and the monitor never terminates it: no record proves that this system is done with it. An operator has to find out
    /// whose machine it is.
    Kept,
}

impl Document for RegionScan {
    const KIND: &'static str = "region-scan";
    const INERT: &'static [&'static str] = &["/orphans"];
}

impl RegionScan {
    /// Returns the key of a region's scan record.
    pub fn key(region: &RegionId) -> Result<Key, Invalid> {
        Key::new(region.as_str())
    }
}
