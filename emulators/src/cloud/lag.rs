//! Eventual consistency: how far reads and writes trail behind the truth.

use std::time::Duration;

use fleetwright_chaos::SeededRng;
use serde::{Deserialize, Serialize};

/// Eventual consistency, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Lag {
    /// A read sees the engine as it was up to so long ago, by chance.
    #[serde(with = "super::millis")]
    pub reads: Duration,
    /// Up to so long after its launch, by chance, a call that names an instance does not find it.
    #[serde(with = "super::millis")]
    pub writes: Duration,
}

/// How far a read lags behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadLag {
    /// By chance, up to the whole lag.
    #[default]
    Random,
    /// By the whole lag.
    Maximum,
}

impl Lag {
    /// The moment that a read made now sees; nothing where that is before the beginning.
    pub(crate) fn moment(
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

    /// Whether a call made now does not find yet what was made at `made`.
    pub(crate) fn hides(&self, made: Duration, now: Duration, rng: &mut SeededRng) -> bool {
        !self.writes.is_zero() && now < made.saturating_add(rng.up_to(self.writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_lag_everything_is_seen_and_no_dice_are_cast() {
        let (lag, now) = (Lag::default(), Duration::from_secs(5));
        let (mut rng, mut same) = (SeededRng::new(1), SeededRng::new(1));
        assert_eq!(lag.moment(now, ReadLag::Maximum, &mut rng), Some(now));
        assert!(!lag.hides(now, now, &mut rng));
        assert_eq!(rng.bits(), same.bits());
    }

    #[test]
    fn a_stale_read_looks_back_by_the_whole_lag() {
        let second = Duration::from_secs(1);
        let lag = Lag {
            reads: second,
            writes: second,
        };
        let mut rng = SeededRng::new(1);
        let moment =
            |now: u32, rng: &mut SeededRng| lag.moment(second * now, ReadLag::Maximum, rng);
        assert_eq!(moment(5, &mut rng), Some(second * 4));
        assert_eq!(moment(0, &mut rng), None);
        assert!(!lag.hides(second, second * 3, &mut rng));
    }
}
