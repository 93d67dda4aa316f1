//! The region's scan: one record for each region, written once per look, so that a look that sees no change writes one record
//! and not one for each server.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fleetwright::InstanceId;
use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize};

use crate::ids::RegionId;

/// How many orphans a scan names.
pub const MAX_LISTED_ORPHANS: usize = 50;

/// What the last look at a region came to. Written by its [monitor](super::Monitor) alone, after everything that the look saw
/// is in the records of the servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegionScan {
    /// Which region.
    pub region: RegionId,
    /// When the look began.
    pub at: DateTime<Utc>,
    /// How often it is looked.
    pub tick: Duration,
    /// How many machines were shown in all, other people's too.
    pub machines: u64,
    /// How many servers have one.
    pub servers: u64,
    /// What could not be seen.
    pub gaps: Vec<String>,
    /// Why nothing is declared missing and nothing swept, if that is so.
    pub frozen: Option<String>,
    /// MachineAccess of this region that no server claims, the first [`MAX_LISTED_ORPHANS`] of them.
    pub orphans: Vec<Orphan>,
}

/// A machine of a region that no server claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// Which machine.
    pub machine: InstanceId,
    /// The server that its tags name.
    pub server: Option<String>,
    /// Since when it was there.
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
    /// The cloud accepted to destroy it.
    Terminated,
    /// The cloud did not; it is tried again with the next look.
    TerminationFailed,
}

impl Document for RegionScan {
    const KIND: &'static str = "region-scan";
}

impl RegionScan {
    /// The key of a region's scan.
    pub fn key(region: &RegionId) -> Result<Key, Invalid> {
        Key::new(region.as_str())
    }
}
