//! How long entries are kept, and the loop that removes older ones.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright_runtime::clock::between;
use fleetwright_store::{Document, Invalid, Key, StoreError, Transaction};
use serde::{Deserialize, Serialize};
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
/// How far the date may be from that of the last removal by any process.
const MAX_GAP: TimeDelta = TimeDelta::days(1);
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
    /// A clock that is wrong would make young entries look old. So nothing is removed for a day after the clock jumped, nor while its date
    /// is more than a day from the one that any process has removed entries at: a process that starts with a wrong clock waits for a day,
    /// and for as long as others, whose clocks are right, remove entries.
    pub async fn run(&self) {
        let mut trust = ClockTrust::default();
        loop {
            match self.prune_with(&mut trust).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "old audit entries were removed"),
                Err(error) => {
                    tracing::warn!(%error, "old audit entries are not removed; it is retried");
                }
            }
            sleep(INTERVAL).await;
        }
    }

    async fn prune_with(&self, trust: &mut ClockTrust) -> Result<usize, StoreError> {
        let key = PruneDate::key()?;
        let stored = self.prune_dates.get(&key).await?;
        let known = stored.as_ref().map(|read| read.value.at);
        let now = self.clock.now();
        if !trust.check(now, Instant::now(), known) {
            return Ok(0);
        }
        let removed = self.prune().await?;
        let date = PruneDate { at: now };
        let transaction = match &stored {
            Some(read) => self.prune_dates.replace(Transaction::new(), read, &date)?,
            None => self.prune_dates.create(Transaction::new(), &key, &date)?,
        };
        match self.store.commit(&transaction).await {
            Ok(_) => Ok(removed),
            // Another process has removed entries at the same time.
            Err(error) if error.conflict().is_some() => Ok(removed),
            Err(error) => Err(error),
        }
    }
}

/// The date at which a process last removed old entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PruneDate {
    at: DateTime<Utc>,
}

impl Document for PruneDate {
    const KIND: &'static str = "audit-prune-date";
}

impl PruneDate {
    fn key() -> Result<Key, Invalid> {
        Key::new("last")
    }
}

/// What the loop knows about its clock.
#[derive(Debug, Default)]
struct ClockTrust {
    /// The date and the time of the last check.
    last: Option<(DateTime<Utc>, Instant)>,
    /// The date in the store, and since when it has been this one.
    known: Option<(Option<DateTime<Utc>>, Instant)>,
    /// Until when nothing is removed, because the clock jumped.
    jumped_until: Option<Instant>,
}

impl ClockTrust {
    /// Returns whether entries may be removed by this date. `known` is the date in the store.
    fn check(&mut self, now: DateTime<Utc>, timer: Instant, known: Option<DateTime<Utc>>) -> bool {
        if let Some((date, at)) = self.last.replace((now, timer)) {
            let (dates, timers) = (between(date, now), timer.duration_since(at));
            if dates.abs_diff(timers) > MAX_JUMP {
                tracing::warn!(before = %date, %now, "the clock jumped; no audit entry is removed for a day");
                self.jumped_until = Some(timer + DAY);
            }
        }
        let since = match self.known {
            Some((same, since)) if same == known => since,
            Some(_) | None => timer,
        };
        self.known = Some((known, since));
        let near = known.is_some_and(|known| known.signed_duration_since(now).abs() <= MAX_GAP);
        let settled = near || timer.duration_since(since) >= DAY;
        if !settled {
            tracing::warn!(?known, %now, "the clock is far from the date of the last removal; no audit entry is removed for a day");
        }
        settled && self.jumped_until.is_none_or(|until| timer >= until)
    }
}
