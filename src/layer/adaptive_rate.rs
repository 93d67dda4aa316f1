//! The current rate of one group of operations.
//!
//! Owns the token bucket, how much of the configured rate is in use after the cloud throttled, and
//! the time before which nothing may be sent. It never sleeps and never sends a call.
//!
//! The rate in use is counted in eighths of the configured rate. A throttled call halves it, down
//! to one eighth; each recovery interval without throttling gives one eighth back.

use std::{
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};
use tokio::time::Instant;

use super::Rate;

type Limiter = RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Nanos>>;

/// How many shares the full rate has.
const FULL_SHARE: u32 = 8;

/// The longest time that a bucket takes to fill, and that its clock counts: 136 years. The limiter
/// counts nanoseconds in 64 bits and panics on overflow.
const MAX_DURATION: Duration = Duration::from_secs(1 << 32);

/// A rate that falls when the cloud throttles and recovers with time.
#[derive(Debug)]
pub(super) struct AdaptiveRate {
    /// The configured rate; `None` is no limit but the delay that the cloud requests.
    rate: Option<Rate>,
    recovery: Duration,
    state: Mutex<RateState>,
}

#[derive(Debug)]
struct RateState {
    bucket: Option<Bucket>,
    /// How many of [`FULL_SHARE`] parts of the rate are in use.
    share: u32,
    /// Since when this share is in use.
    share_since: Instant,
    /// No call may be sent before this.
    not_before: Instant,
    /// How often the rate was lowered.
    epoch: u64,
    /// The new rate in calls per second, if it was raised since the last permit.
    raised: Option<f64>,
}

/// The permission to send one call.
#[derive(Debug)]
pub(super) struct Permit {
    /// How often the rate was lowered before this permit.
    pub(super) epoch: u64,
    /// The new rate in calls per second, if it was raised since the permit before.
    pub(super) raised: Option<f64>,
}

impl AdaptiveRate {
    /// Starts at the full rate with a full bucket.
    pub(super) fn new(rate: Option<Rate>, recovery: Duration) -> Self {
        let now = Instant::now();
        let state = RateState {
            bucket: rate.map(|rate| Bucket::full(rate, FULL_SHARE, now)),
            share: FULL_SHARE,
            share_since: now,
            not_before: now,
            epoch: 0,
            raised: None,
        };
        Self {
            rate,
            recovery: recovery.max(Duration::from_millis(1)),
            state: Mutex::new(state),
        }
    }

    /// Takes `calls` tokens, or returns when to try again.
    ///
    /// If `calls` is more than the bucket holds, a full bucket is enough, and nobody else gets a
    /// permit until the rest is earned.
    pub(super) fn acquire(&self, calls: NonZeroU32) -> Result<Permit, Instant> {
        let (now, mut state) = (Instant::now(), self.lock());
        if state.not_before > now {
            return Err(state.not_before);
        }
        self.recover(&mut state, now);
        if let (Some(rate), Some(bucket)) = (self.rate, &state.bucket) {
            bucket.take(calls).map_err(|wait| add(now, wait))?;
            let excess = calls.get().checked_sub(rate.burst.get());
            if let Some(excess) = excess.filter(|calls| *calls > 0) {
                let debt = interval(rate, state.share).saturating_mul(excess);
                let filling_from = add(now, debt);
                state.bucket = Some(Bucket::filling(rate, state.share, filling_from, now));
            }
        }
        Ok(Permit {
            epoch: state.epoch,
            raised: state.raised.take(),
        })
    }

    /// Halves the rate because a call with a permit of `epoch` was throttled, and sends nothing
    /// before `delay` has passed. Many throttled calls of one epoch halve it once.
    ///
    /// Returns the new rate in calls per second, if it changed.
    pub(super) fn lower(&self, epoch: u64, delay: Duration) -> Option<f64> {
        let (now, mut state) = (Instant::now(), self.lock());
        state.not_before = state.not_before.max(add(now, delay));
        if epoch != state.epoch {
            return None;
        }
        state.epoch += 1;
        state.share = (state.share / 2).max(1);
        // Both recovery and new tokens count from the moment at which calls are sent again.
        state.share_since = state.not_before;
        let rate = self.rate?;
        let from = state.share_since;
        state.replace_bucket(rate, from, now);
        state.raised = None;
        Some(calls_per_second(rate, state.share))
    }

    /// Returns when `calls` more permits are given out after `time`, if the rate does not change.
    pub(super) fn after(&self, time: Instant, calls: u64) -> Instant {
        let Some(rate) = self.rate else { return time };
        let share = self.lock().share;
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        add(time, interval(rate, share).saturating_mul(calls))
    }

    /// Raises the share by one for each recovery interval that has passed.
    fn recover(&self, state: &mut RateState, now: Instant) {
        if state.share == FULL_SHARE {
            return;
        }
        let elapsed = now.saturating_duration_since(state.share_since);
        let intervals = elapsed.as_nanos() / self.recovery.as_nanos();
        let regained = u32::try_from(intervals)
            .unwrap_or(u32::MAX)
            .min(FULL_SHARE - state.share);
        if regained > 0 {
            state.share += regained;
            // At most `elapsed`, so this cannot overflow.
            state.share_since += self.recovery * regained;
            if let Some(rate) = self.rate {
                let from = state.share_since;
                state.replace_bucket(rate, from, now);
                state.raised = Some(calls_per_second(rate, state.share));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RateState> {
        // No code panics while it holds the lock, and the numbers would be valid if it did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RateState {
    /// Replaces the bucket with one for the current share that fills since `from`: a change of the
    /// rate must neither give a burst away nor forget a debt.
    fn replace_bucket(&mut self, rate: Rate, from: Instant, now: Instant) {
        let from = self
            .bucket
            .as_ref()
            .map_or(from, |old| from.max(old.filling_from));
        self.bucket = Some(Bucket::filling(rate, self.share, from, now));
    }
}

/// The time between two calls when `share` of the rate is in use.
fn interval(rate: Rate, share: u32) -> Duration {
    let interval = rate.interval.saturating_mul(FULL_SHARE) / share;
    interval.clamp(Duration::from_nanos(1), MAX_DURATION / rate.burst.get())
}

fn calls_per_second(rate: Rate, share: u32) -> f64 {
    1.0 / interval(rate, share).as_secs_f64()
}

/// Adds any duration to `time`, without overflow.
fn add(time: Instant, duration: Duration) -> Instant {
    time + duration.min(MAX_DURATION)
}

/// A token bucket at a fixed rate.
#[derive(Debug)]
struct Bucket {
    limiter: Limiter,
    burst: NonZeroU32,
    clock: TokioClock,
    /// Since when it fills. May be in the future.
    filling_from: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    fn full(rate: Rate, share: u32, filling_from: Instant) -> Self {
        let clock = TokioClock(filling_from);
        // An interval has at least one nanosecond, so there always is a quota.
        let quota =
            Quota::with_period(interval(rate, share)).unwrap_or(Quota::per_second(rate.burst));
        Self {
            limiter: RateLimiter::direct_with_clock(quota.allow_burst(rate.burst), clock.clone()),
            burst: rate.burst,
            clock,
            filling_from,
        }
    }

    /// Creates a bucket that was empty at `filling_from`.
    fn filling(rate: Rate, share: u32, filling_from: Instant, now: Instant) -> Self {
        let bucket = Self::full(rate, share, filling_from);
        let elapsed = now.saturating_duration_since(filling_from).as_nanos();
        let earned = elapsed / interval(rate, share).as_nanos();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        let missing = NonZeroU32::new(rate.burst.get().saturating_sub(earned));
        let _ = missing.map(|missing| bucket.take(missing));
        bucket
    }

    /// Takes `calls` tokens, or none and returns how long to wait. More than the bucket holds count
    /// as a full bucket.
    fn take(&self, calls: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_n(calls.min(self.burst)) {
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(clock::Clock::now(&self.clock));
                let until_filling = self.filling_from.saturating_duration_since(Instant::now());
                Err(wait.max(Duration::from_nanos(1)) + until_filling)
            }
            // `Err` is impossible: never more than the capacity is requested.
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

/// Tokio's clock as governor reads it, so that tests can pause it. Counts from the given instant.
#[derive(Clone, Debug)]
struct TokioClock(Instant);

impl clock::Clock for TokioClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // The limiter subtracts one burst from the time, so the time must not start at zero.
        Nanos::from(self.0.elapsed().min(MAX_DURATION) + MAX_DURATION)
    }
}
