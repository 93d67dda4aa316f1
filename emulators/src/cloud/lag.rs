//! Eventual consistency: how far reads lag behind, and how late a new resource is found.

use std::time::Duration;

use fleetwright_chaos::SeededRng;
use serde::{Deserialize, Serialize};

/// Eventual consistency. Both durations are milliseconds in JSON and zero by default: every read
/// returns the current state.
///
/// AWS gives no bound for EC2 and advises to repeat reads for a few minutes ("Eventual consistency in the Amazon
/// EC2 API"). Azure's lists omit machines for minutes (azure-sdk-for-go#17195). For Compute Engine the lag is
/// assumed: Google documents neither a lag nor its absence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Lag {
    /// The consistency window of reads: each read returns the state of a random time within it.
    #[serde(with = "super::millis")]
    pub reads: Duration,
    /// The consistency window of calls that name an instance: within a random part of it after the
    /// launch, they do not find the instance.
    #[serde(with = "super::millis")]
    pub writes: Duration,
}

/// How far one read lags behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadLag {
    /// By a random duration of at most [`Lag::reads`].
    #[default]
    Random,
    /// By all of [`Lag::reads`], for the fault `stale_read`.
    Maximum,
}

impl Lag {
    /// Returns the time whose state a read returns, or `None` if that is before the start.
    pub(crate) fn read_time(
        &self,
        now: Duration,
        read_lag: ReadLag,
        rng: &mut SeededRng,
    ) -> Option<Duration> {
        if self.reads.is_zero() {
            return Some(now);
        }
        let behind = match read_lag {
            ReadLag::Random => rng.up_to(self.reads),
            ReadLag::Maximum => self.reads,
        };
        now.checked_sub(behind)
    }

    /// Whether a call does not yet find a resource that was created at `created`.
    pub(crate) fn hides(&self, created: Duration, now: Duration, rng: &mut SeededRng) -> bool {
        !self.writes.is_zero() && now < created.saturating_add(rng.up_to(self.writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lag_means_current_reads_and_no_random_draw() {
        let (lag, now) = (Lag::default(), Duration::from_secs(5));
        let (mut rng, mut same) = (SeededRng::new(1), SeededRng::new(1));
        assert_eq!(lag.read_time(now, ReadLag::Maximum, &mut rng), Some(now));
        assert!(!lag.hides(now, now, &mut rng));
        assert_eq!(rng.bits(), same.bits());
    }

    #[test]
    fn stale_read_lags_by_the_whole_window() {
        let second = Duration::from_secs(1);
        let lag = Lag {
            reads: second,
            writes: second,
        };
        let mut rng = SeededRng::new(1);
        let read_time =
            |now: u32, rng: &mut SeededRng| lag.read_time(second * now, ReadLag::Maximum, rng);
        assert_eq!(read_time(5, &mut rng), Some(second * 4));
        assert_eq!(read_time(0, &mut rng), None);
        assert!(!lag.hides(second, second * 3, &mut rng));
    }
}
