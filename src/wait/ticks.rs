//! The moments at which the waits of a process poll. Owns when the next one is.
//!
//! Waits that began at different times poll at the same ticks, so that [`Coalesce`](crate::layer::Coalesce) sends their polls
//! together. Ticks with longer steps are a part of those with shorter ones. Each process counts from its own start, so the polls of
//! many processes stay apart.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;

/// Returns the first tick that is at least `delay` after `now`, and less than twice as long. The steps between ticks are
/// `interval`, doubled as long as they are not longer than `delay`.
pub(super) fn next_tick(now: Instant, delay: Duration, interval: Duration) -> Instant {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let first = *FIRST.get_or_init(|| now);
    // Clocks of tests can be before the first tick of the process.
    let since_first = now.saturating_duration_since(first);
    now + delay + rest_of_step(since_first + delay, step(delay, interval))
}

/// Returns the longest step for a delay.
fn step(delay: Duration, interval: Duration) -> Duration {
    let mut step = interval.max(Duration::from_millis(1));
    while step <= delay / 2 {
        step *= 2;
    }
    step
}

/// Returns the time from `time` to the next multiple of `step`.
fn rest_of_step(time: Duration, step: Duration) -> Duration {
    let nanos = u128::max(step.as_nanos(), 1);
    match time.as_nanos() % nanos {
        0 => Duration::ZERO,
        over => Duration::from_nanos(u64::try_from(nanos - over).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn steps_are_doubled_intervals() {
        let two = millis(2_000);
        let steps = [2_000, 3_999, 4_000, 6_750, 10_000].map(|delay| step(millis(delay), two));
        assert_eq!(steps, [2_000, 2_000, 4_000, 4_000, 8_000].map(millis));
        assert_eq!(step(Duration::ZERO, Duration::ZERO), millis(1));
    }

    proptest! {
        #[test]
        fn waits_with_the_same_step_meet(interval in 1_u64..5_000, grown in 0_u64..60_000, start in 0_u64..1_000_000) {
            let (interval, delay) = (millis(interval), millis(interval + grown));
            let (step, time) = (step(delay, interval), millis(start));
            let tick = time + delay + rest_of_step(time + delay, step);
            prop_assert_eq!(tick.as_nanos() % step.as_nanos(), 0);
            prop_assert_eq!(tick.as_nanos() % interval.as_nanos(), 0, "also a tick of the shortest step");
            prop_assert!(tick - time >= delay && tick - time < delay * 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_that_begin_within_a_step_poll_together() {
        let interval = millis(2_000);
        let mut ticks = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            ticks.insert(next_tick(Instant::now(), interval, interval));
            tokio::time::advance(millis(1)).await;
        }
        assert!(ticks.len() <= 2, "{ticks:?}");
    }
}
