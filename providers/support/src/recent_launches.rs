//! The recent launches of one handle.
//!
//! Owns the memory with which a handle waits for its own launches to show in reads, instead of returning
//! "not found" for them.

use std::time::Duration;

use fleetwright::{Capabilities, ErrorKind, InstanceId, InstanceInfo, Result};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::recent::RecentMap;

/// The instances that a handle launched within the last consistency window.
///
/// ```
/// use std::time::Duration;
///
/// use fleetwright::{Call, Capabilities, CloudInstanceState, InstanceId, InstanceInfo, Operation, TagLimits};
/// use fleetwright_provider_support::RecentLaunches;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut capabilities = Capabilities::new("acme", TagLimits::new(50, 128, 256), 16_384);
/// capabilities.consistency_window = Duration::from_secs(20);
/// capabilities.poll_interval = Duration::from_millis(1);
/// let id = InstanceId::new("i-1")?;
/// let launched = InstanceInfo::new(id.clone(), CloudInstanceState::Pending);
///
/// let launches = RecentLaunches::new();
/// launches.record(&[launched], capabilities.consistency_window);
///
/// // The first read does not show the launch yet, so it is sent again.
/// let reads = std::sync::atomic::AtomicU32::new(0);
/// let read = |ids: Vec<InstanceId>| -> futures_util::future::BoxFuture<'_, _> {
///     let first = reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
///     let call = Call::new("acme", Operation::DescribeInstances);
///     let result = move |id: &InstanceId| if first { Err(call.not_found(id)) } else { Ok("running") };
///     Box::pin(async move { ids.iter().map(result).collect() })
/// };
/// let results = launches.retry_not_found(&[id], &capabilities, read).await;
/// assert_eq!(results[0].as_ref().ok(), Some(&"running"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct RecentLaunches {
    launches: RecentMap<InstanceId, ()>,
}

impl RecentLaunches {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records instances that were launched just now, and forgets those that were launched `window` ago or
    /// earlier. Records nothing if reads are consistent, that is if `window` is zero.
    pub fn record(&self, infos: &[InstanceInfo], window: Duration) {
        if window.is_zero() {
            return;
        }
        let ids = infos.iter().map(|info| (info.id.clone(), ()));
        self.launches.record(ids, window);
    }

    /// Returns after which time another read of an instance that is not found may show it: at most the usual
    /// lag of reads, while the consistency window since this handle launched it is not over. Zero for every
    /// other instance, because "not found" is then final.
    pub fn hidden_for(&self, id: &InstanceId, capabilities: &Capabilities) -> Duration {
        let remaining = self.launches.remaining(id, capabilities.consistency_window);
        remaining.min(capabilities.usual_lag())
    }

    /// Sends a call about `ids`, and sends it again for recent launches that are not found, until they are
    /// found, the usual lag of reads has passed, or their consistency window is over. Pauses by the poll
    /// interval in between.
    ///
    /// `send` returns one result for each id, in the same order. So does this function.
    pub async fn retry_not_found<'a, T>(
        &self,
        ids: &[InstanceId],
        capabilities: &Capabilities,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync,
    ) -> Vec<Result<T>> {
        let (window, usual_lag) = (capabilities.consistency_window, capabilities.usual_lag());
        let pause = capabilities.poll_interval.min(usual_lag);
        let began = Instant::now();
        // Computed before the call is sent: when its result arrives, the window may have long passed.
        let mut recent: Vec<_> = ids.iter().map(|id| self.contains(id, window)).collect();
        let mut results = send(ids.to_vec()).await;
        loop {
            let is_not_found = |result: &Result<T>| {
                let error = result.as_ref().err();
                error.is_some_and(|error| error.kind() == ErrorKind::NotFound)
            };
            let hidden: Vec<usize> = (0..ids.len())
                .filter(|index| recent[*index] && results.get(*index).is_some_and(is_not_found))
                .collect();
            if hidden.is_empty() {
                return results;
            }
            sleep(pause.max(Duration::from_millis(1))).await;
            let hidden_ids: Vec<_> = hidden.iter().map(|index| ids[*index].clone()).collect();
            let may_wait = began.elapsed() < usual_lag;
            for index in &hidden {
                recent[*index] = may_wait && self.contains(&ids[*index], window);
            }
            let retried = send(hidden_ids).await;
            for (index, result) in hidden.into_iter().zip(retried) {
                results[index] = result;
            }
        }
    }

    /// Returns whether a read that is sent now may not show the instance yet.
    fn contains(&self, id: &InstanceId, window: Duration) -> bool {
        self.launches.get(id, window).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{Call, CloudInstanceState, Operation, TagLimits};

    const WINDOW: Duration = Duration::from_secs(10);

    fn capabilities() -> Capabilities {
        let mut capabilities = Capabilities::new("test", TagLimits::new(1, 1, 1), 1);
        capabilities.consistency_window = WINDOW;
        capabilities.poll_interval = Duration::from_secs(1);
        capabilities
    }

    fn info(name: &str) -> InstanceInfo {
        InstanceInfo::new(InstanceId::new(name).unwrap(), CloudInstanceState::Pending)
    }

    #[tokio::test(start_paused = true)]
    async fn recent_launch_expires_after_window() {
        let (launches, one, two) = (RecentLaunches::new(), info("i-1"), info("i-2"));
        launches.record(std::slice::from_ref(&one), WINDOW);
        assert!(launches.contains(&one.id, WINDOW));
        assert!(!launches.contains(&two.id, WINDOW));
        assert_eq!(launches.hidden_for(&one.id, &capabilities()), WINDOW);
        assert_eq!(
            launches.hidden_for(&two.id, &capabilities()),
            Duration::ZERO
        );
        tokio::time::sleep(WINDOW - Duration::from_millis(1)).await;
        launches.record(std::slice::from_ref(&two), WINDOW);
        assert!(launches.contains(&one.id, WINDOW));
        let rest = Duration::from_millis(1);
        assert_eq!(launches.hidden_for(&one.id, &capabilities()), rest);
        assert_eq!(launches.launches.sizes().0, 2);
        tokio::time::sleep(rest).await;
        assert_eq!(
            launches.hidden_for(&one.id, &capabilities()),
            Duration::ZERO
        );
        assert!(!launches.contains(&one.id, WINDOW));
        launches.record(&[], WINDOW);
        assert_eq!(launches.launches.sizes(), (1, 1));
        assert!(launches.contains(&two.id, WINDOW));
    }

    #[tokio::test(start_paused = true)]
    async fn launch_that_is_recorded_again_is_recent_again() {
        let (launches, one) = (RecentLaunches::new(), info("i-1"));
        launches.record(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(std::slice::from_ref(&one), WINDOW);
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(&[], WINDOW);
        assert!(launches.contains(&one.id, WINDOW));
        tokio::time::sleep(WINDOW / 2).await;
        launches.record(&[], WINDOW);
        assert_eq!(launches.launches.sizes(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_recorded_without_a_window() {
        let (launches, one) = (RecentLaunches::new(), info("i-1"));
        launches.record(std::slice::from_ref(&one), Duration::ZERO);
        assert_eq!(launches.launches.sizes(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn call_waits_for_the_usual_lag_and_advises_a_retry_within_the_window() {
        let (launches, one, mut capabilities) =
            (RecentLaunches::new(), info("i-1"), capabilities());
        launches.record(std::slice::from_ref(&one), WINDOW);
        let missing = |ids: Vec<InstanceId>| -> BoxFuture<'static, Vec<Result<()>>> {
            let call = Call::new("test", Operation::DescribeInstances);
            let results = ids.iter().map(|id| Err(call.not_found(id))).collect();
            Box::pin(async move { results })
        };
        let usual = Duration::from_secs(2);
        capabilities.usual_lag = Some(usual);
        let ids = std::slice::from_ref(&one.id);
        for _ in 0..2 {
            let began = Instant::now();
            let results = launches.retry_not_found(ids, &capabilities, missing).await;
            assert!(results[0].is_err());
            assert_eq!(began.elapsed(), usual);
            assert_eq!(launches.hidden_for(&one.id, &capabilities), usual);
        }
        tokio::time::sleep(WINDOW - usual * 2).await;
        assert_eq!(launches.hidden_for(&one.id, &capabilities), Duration::ZERO);
    }
}
