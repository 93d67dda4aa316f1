//! Eventual consistency: how far reads and writes trail behind the truth.

use std::time::Duration;

use fleetwright_chaos::SeededRng;
use serde::{Deserialize, Serialize};

/// Eventual consistency, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Lag {
    /// A read sees the world as it was up to so long ago, by chance.
    #[serde(with = "super::millis")]
    pub reads: Duration,
    /// Up to so long after its launch, by chance, a call that names an instance does not find it.
    #[serde(with = "super::millis")]
    pub writes: Duration,
}

/// How far a read lags behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// By chance, up to the whole lag.
    #[default]
    Chance,
    /// By the whole lag.
    Stale,
}

impl Lag {
    /// The moment that a read made now sees; nothing where that is before the beginning.
    pub(crate) fn moment(&self, now: Duration, look: Look, dice: &mut SeededRng) -> Option<Duration> {
        if self.reads.is_zero() {
            return Some(now);
        }
        let behind = match look {
            Look::Chance => dice.up_to(self.reads),
            Look::Stale => self.reads,
        };
        now.checked_sub(behind)
    }

    /// Whether a call made now does not find yet what was made at `made`.
    pub(crate) fn hides(&self, made: Duration, now: Duration, dice: &mut SeededRng) -> bool {
        !self.writes.is_zero() && now < made.saturating_add(dice.up_to(self.writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_lag_everything_is_seen_and_no_dice_are_cast() {
        let (lag, now) = (Lag::default(), Duration::from_secs(5));
        let (mut dice, mut same) = (SeededRng::new(1), SeededRng::new(1));
        assert_eq!(lag.moment(now, Look::Stale, &mut dice), Some(now));
        assert!(!lag.hides(now, now, &mut dice));
        assert_eq!(dice.bits(), same.bits());
    }

    #[test]
    fn a_stale_read_looks_back_by_the_whole_lag() {
        let second = Duration::from_secs(1);
        let lag = Lag {
            reads: second,
            writes: second,
        };
        let mut dice = SeededRng::new(1);
        let moment = |now: u32, dice: &mut SeededRng| lag.moment(second * now, Look::Stale, dice);
        assert_eq!(moment(5, &mut dice), Some(second * 4));
        assert_eq!(moment(0, &mut dice), None);
        assert!(!lag.hides(second, second * 3, &mut dice));
    }
}
