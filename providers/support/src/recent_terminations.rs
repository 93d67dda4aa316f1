//! The recent terminations of one handle.
//!
//! Owns the memory with which a handle recognizes an instance that it has terminated, although a stale read
//! still shows it running.

use std::time::Duration;

use fleetwright::InstanceId;

use crate::recent::RecentMap;

/// The instances that a handle terminated within the last consistency window.
///
/// ```
/// use std::time::Duration;
///
/// use fleetwright::InstanceId;
/// use fleetwright_provider_support::RecentTerminations;
///
/// let (id, window) = (InstanceId::new("i-1")?, Duration::from_secs(20));
/// let terminations = RecentTerminations::new();
/// assert!(!terminations.contains(&id, window));
/// terminations.record([id.clone()], window);
/// assert!(terminations.contains(&id, window));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Debug, Default)]
pub struct RecentTerminations {
    ids: RecentMap<InstanceId, ()>,
}

impl RecentTerminations {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the cloud has accepted the termination of these instances just now, and forgets those
    /// that were terminated `window` ago or earlier. Records nothing if reads are consistent, that is if
    /// `window` is zero.
    pub fn record(&self, ids: impl IntoIterator<Item = InstanceId>, window: Duration) {
        if !window.is_zero() {
            self.ids.record(ids.into_iter().map(|id| (id, ())), window);
        }
    }

    /// Returns whether the instance was terminated less than `window` ago. Until then a read may still show
    /// it running.
    pub fn contains(&self, id: &InstanceId, window: Duration) -> bool {
        self.ids.get(id, window).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn recent_termination_expires_after_window() {
        let (terminations, id) = (RecentTerminations::new(), InstanceId::new("i-1").unwrap());
        terminations.record([id.clone()], Duration::ZERO);
        assert_eq!(terminations.ids.sizes(), (0, 0));
        terminations.record([id.clone()], WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        assert!(terminations.contains(&id, WINDOW));
        tokio::time::sleep(WINDOW / 2).await;
        assert!(!terminations.contains(&id, WINDOW));
    }
}
