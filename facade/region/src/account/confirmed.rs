//! When the account of a region was last confirmed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// For how long after the account was confirmed the calls that destroy and create nothing go on while it cannot be read.
const CONFIRMED_FOR: Duration = Duration::from_secs(300);

/// When the account of one region was last confirmed, by any part of the region in this process. Clones share it.
///
/// The parts of a region that share one continue for the same five minutes while the account cannot be read, and end together. A part without
/// a shared one counts its own comparisons only.
///
/// ```
/// use fleetwright_region::account::ConfirmedAccount;
/// # use fleetwright_facade_testkit::TestRegion;
/// # let cloud = std::sync::Arc::new(fleetwright_memory::MemoryCloud::new().provisioner());
/// # let TestRegion { controller, monitor, .. } = TestRegion::new(cloud);
///
/// let confirmed = ConfirmedAccount::default();
/// let controller = controller.with_confirmed_account(&confirmed);
/// let monitor = monitor.with_confirmed_account(&confirmed);
/// # drop((controller, monitor));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConfirmedAccount(Arc<Mutex<Option<Instant>>>);

impl ConfirmedAccount {
    /// Records a comparison that started at `at`: the account was the recorded one, or it was not.
    pub(super) fn set(&self, at: Instant, is_same: bool) {
        let mut confirmed_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *confirmed_at = is_same.then(|| confirmed_at.map_or(at, |before| before.max(at)));
    }

    /// Whether it was confirmed a short while ago, and no other account was found since.
    pub(super) fn is_recent(&self) -> bool {
        let confirmed_at = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        confirmed_at.is_some_and(|at| at.elapsed() < CONFIRMED_FOR)
    }
}
