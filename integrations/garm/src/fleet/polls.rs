//! Reads that are repeated until their result is proven.
//!
//! Owns when a read counts: a time has passed only for a read that began after it, because a slow read may show what was true when it began.

use std::time::Duration;

use fleetwright::InstanceProvisioner;
use tokio::time::{Instant, sleep};

/// Reads that are repeated for a time, at growing intervals.
pub(super) struct Polls {
    started: Instant,
    time: Duration,
    interval: Duration,
    /// When the last read began, at the latest.
    read_began: Instant,
}

impl Polls {
    /// The longest interval.
    const MAX: Duration = Duration::from_secs(15);

    /// Begins the first read.
    pub(super) fn new(cloud: &dyn InstanceProvisioner, time: Duration) -> Self {
        Self::at_intervals(cloud.capabilities().poll_interval, time)
    }

    fn at_intervals(interval: Duration, time: Duration) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            time,
            interval: interval.clamp(Duration::from_millis(1), Self::MAX),
            read_began: now,
        }
    }

    /// Waits for the next read. Returns `false` if the last read began after the time had passed.
    pub(super) async fn next(&mut self) -> bool {
        if self.read_began.saturating_duration_since(self.started) >= self.time {
            return false;
        }
        let left = self.time.saturating_sub(self.started.elapsed());
        sleep(self.interval.min(left)).await;
        self.interval = (self.interval * 3 / 2).min(Self::MAX);
        self.read_began = Instant::now();
        true
    }

    /// Counts from now on, for another time.
    pub(super) fn restart(&mut self, time: Duration) {
        self.started = Instant::now();
        self.time = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn polls(time: Duration) -> Polls {
        Polls::at_intervals(Duration::from_secs(4), time)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_read_begins_when_the_time_has_passed() {
        let began = Instant::now();
        let mut polls = polls(WINDOW);
        let mut reads = vec![began.elapsed()];
        while polls.next().await {
            reads.push(began.elapsed());
        }
        let seconds: Vec<_> = reads.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [0, 4, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_read_proves_nothing_about_the_time_that_it_took() {
        let mut polls = polls(WINDOW);
        sleep(WINDOW * 2).await;
        assert!(polls.next().await);
        assert!(!polls.next().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_needs_a_read_that_begins_after_the_new_time() {
        let mut polls = polls(WINDOW);
        while polls.next().await {}
        polls.restart(WINDOW);
        assert!(polls.next().await);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_one_read_is_enough() {
        assert!(!polls(Duration::ZERO).next().await);
    }
}
