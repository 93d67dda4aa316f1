//! How long entries are kept, and the loop that removes older ones.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_runtime::clock::between;
use fleetwright_store::{Invalid, StoreError, Transaction};
use tokio::time::{Instant, sleep};

use super::{AuditLog, Stored};
use crate::OrganizationId;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest retention: one day.
pub const MIN_RETENTION: Duration = DAY;
/// How often the loop removes old entries.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// By how much the clock may differ from the timers between two passes.
const MAX_JUMP: Duration = Duration::from_secs(5 * 60);
/// How many entries one transaction removes.
const BATCH: u32 = 100;

/// How long entries are kept: 400 days by default, and another time for single organizations.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_identity::{AuditRetention, OrganizationId};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// let bank: OrganizationId = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// let retention = AuditRetention::new(90 * DAY)?.with_organization(bank, 3650 * DAY)?;
/// assert_eq!(retention.of(Some(bank)), 3650 * DAY);
/// assert!(AuditRetention::new(Duration::ZERO).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRetention {
    default: Duration,
    organizations: BTreeMap<OrganizationId, Duration>,
}

impl Default for AuditRetention {
    /// 400 days: a year, and time to look back at it.
    fn default() -> Self {
        Self {
            default: 400 * DAY,
            organizations: BTreeMap::new(),
        }
    }
}

impl AuditRetention {
    /// Keeps all entries for this long, also those of the platform and of deleted organizations.
    ///
    /// # Errors
    ///
    /// It is shorter than [`MIN_RETENTION`].
    pub fn new(keep: Duration) -> Result<Self, Invalid> {
        Ok(Self {
            default: checked(keep)?,
            organizations: BTreeMap::new(),
        })
    }

    /// Keeps the entries of one organization for another time.
    ///
    /// # Errors
    ///
    /// It is shorter than [`MIN_RETENTION`].
    pub fn with_organization(
        mut self,
        organization: OrganizationId,
        keep: Duration,
    ) -> Result<Self, Invalid> {
        self.organizations.insert(organization, checked(keep)?);
        Ok(self)
    }

    /// Returns how long the entries of an organization, or of the platform, are kept.
    pub fn of(&self, organization: Option<OrganizationId>) -> Duration {
        let own = organization.and_then(|organization| self.organizations.get(&organization));
        *own.unwrap_or(&self.default)
    }

    fn shortest(&self) -> Duration {
        let all = self.organizations.values().chain([&self.default]);
        all.min().copied().unwrap_or(self.default)
    }
}

fn checked(keep: Duration) -> Result<Duration, Invalid> {
    if keep >= MIN_RETENTION {
        return Ok(keep);
    }
    Err(Invalid::new(format!(
        "the retention of the audit log is {} seconds; it must be at least one day",
        keep.as_secs()
    )))
}

impl AuditLog {
    /// Removes the entries that are older than their retention, and returns how many. It removes no other entry, whoever calls it.
    ///
    /// # Errors
    ///
    /// The store fails. What was removed stays removed, and the next call continues.
    pub async fn prune(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let shortest = self.retention.shortest();
        let mut query = self.entries.all().limit(BATCH);
        let mut removed = 0;
        loop {
            let page = self.entries.list(&query).await?;
            let mut transaction = Transaction::new();
            let mut is_over = page.next.is_none();
            for found in &page.items {
                if self.is_expired(&found.value, now) {
                    transaction = transaction.delete(self.entries.id(&found.key));
                }
                // Entries are in the order of time, so no later one is old enough.
                is_over |= between(found.value.entry.at, now) < shortest;
            }
            removed += transaction.writes.len();
            if !transaction.writes.is_empty() {
                self.store.commit(&transaction).await?;
            }
            match page.next {
                Some(cursor) if !is_over => query = query.after(cursor),
                Some(_) | None => return Ok(removed),
            }
        }
    }

    fn is_expired(&self, stored: &Stored, now: DateTime<Utc>) -> bool {
        let keep = self.retention.of(stored.entry.organization);
        between(stored.entry.at, now) >= keep
    }

    /// Removes old entries once an hour. It never returns; drop the future to stop.
    ///
    /// A clock that jumps would make young entries look old: after a jump nothing is removed for a day.
    pub async fn run(&self) {
        let mut last = (self.clock.now(), Instant::now());
        let mut not_before = last.1;
        loop {
            let now = (self.clock.now(), Instant::now());
            let (dates, timers) = (between(last.0, now.0), now.1.duration_since(last.1));
            if dates.abs_diff(timers) > MAX_JUMP {
                tracing::warn!(before = %last.0, now = %now.0, "the clock jumped; no audit entry is removed for a day");
                not_before = now.1 + DAY;
            }
            last = now;
            if now.1 >= not_before {
                match self.prune().await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "old audit entries were removed"),
                    Err(error) => {
                        tracing::warn!(%error, "old audit entries are not removed; it is retried");
                    }
                }
            }
            sleep(INTERVAL).await;
        }
    }
}
