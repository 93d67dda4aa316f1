//! How fast one gate goes: its rate, what throttling has taken of it, and the time the cloud asked for.

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

type Limiter = RateLimiter<NotKeyed, InMemoryState, Ticker, NoOpMiddleware<Nanos>>;

/// What is left of a rate is counted in parts of this size: half of them go at each throttling, and
/// one comes back at each recovery.
const WHOLE: u32 = 8;

/// The longest that a bucket takes to fill, and that its clock counts: 136 years. The limiter counts
/// nanoseconds in 64 bits and panics where they run over.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// The pace of a gate.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<Rate>,
    recovery: Duration,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    bucket: Option<Bucket>,
    /// How much of the rate is left, of [`WHOLE`].
    share: u32,
    /// Since when.
    since: Instant,
    /// Nothing is sent before this.
    not_before: Instant,
    /// How often the rate was lowered.
    epoch: u64,
}

impl Pace {
    pub(super) fn new(rate: Option<Rate>, recovery: Duration) -> Self {
        let now = Instant::now();
        let now = Now {
            bucket: rate.map(|rate| Bucket::full(rate, WHOLE)),
            share: WHOLE,
            since: now,
            not_before: now,
            epoch: 0,
        };
        Self {
            rate,
            recovery: recovery.max(Duration::from_millis(1)),
            now: Mutex::new(now),
        }
    }

    /// Takes `turns`, or tells when to ask again. Answers how often the rate was lowered so far.
    pub(super) fn take(&self, turns: NonZeroU32) -> Result<u64, Instant> {
        let (time, mut now) = (Instant::now(), self.lock());
        if now.not_before > time {
            return Err(now.not_before);
        }
        self.recover(&mut now, time);
        match now.bucket.as_ref().map(|bucket| bucket.take(turns)) {
            Some(Err(wait)) => Err(time + wait),
            Some(Ok(())) | None => Ok(now.epoch),
        }
    }

    /// A call that was let through at `epoch` was throttled: nothing is sent before `asked` has
    /// passed, and the rate is halved. Many calls of one burst halve it once. Answers the rate, in
    /// calls a second, if it has changed.
    pub(super) fn lower(&self, epoch: u64, asked: Duration) -> Option<f64> {
        let (time, mut now) = (Instant::now(), self.lock());
        let until = time.checked_add(asked).unwrap_or(time + LONGEST);
        now.not_before = now.not_before.max(until);
        if epoch != now.epoch {
            return None;
        }
        now.epoch += 1;
        now.share = (now.share / 2).max(1);
        // What is given back is counted from when calls go again.
        now.since = until;
        let rate = self.rate?;
        now.bucket = Some(Bucket::empty(rate, now.share));
        Some(1.0 / period(rate, now.share).as_secs_f64())
    }

    /// Gives back what time has earned.
    fn recover(&self, now: &mut Now, time: Instant) {
        let passed = time.saturating_duration_since(now.since);
        let steps = passed.as_nanos() / self.recovery.as_nanos();
        let earned = u32::try_from(steps)
            .unwrap_or(u32::MAX)
            .min(WHOLE - now.share);
        if earned > 0 {
            now.share += earned;
            now.since = time;
            now.bucket = self.rate.map(|rate| Bucket::empty(rate, now.share));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing under the lock panics; if it did, the numbers would still be sound.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time in which one call is earned when `share` of the rate is left.
fn period(rate: Rate, share: u32) -> Duration {
    let every = rate.every.saturating_mul(WHOLE) / share;
    every.clamp(Duration::from_nanos(1), LONGEST / rate.burst.get())
}

#[derive(Debug)]
struct Bucket {
    limiter: Limiter,
    burst: NonZeroU32,
    clock: Ticker,
}

impl Bucket {
    fn full(rate: Rate, share: u32) -> Self {
        let clock = Ticker(Instant::now());
        // A period is at least a nanosecond, so there is a quota.
        let quota =
            Quota::with_period(period(rate, share)).unwrap_or(Quota::per_second(rate.burst));
        Self {
            limiter: RateLimiter::direct_with_clock(quota.allow_burst(rate.burst), clock.clone()),
            burst: rate.burst,
            clock,
        }
    }

    /// A change of the rate must not give a burst away.
    fn empty(rate: Rate, share: u32) -> Self {
        let bucket = Self::full(rate, share);
        let _ = bucket.take(bucket.burst);
        bucket
    }

    /// Takes `turns` at once, or none and tells how long to wait. More than the bucket holds count as
    /// a whole bucket.
    fn take(&self, turns: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_n(turns.min(self.burst)) {
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(clock::Clock::now(&self.clock));
                Err(wait.max(Duration::from_nanos(1)))
            }
            // It was asked for no more than it holds.
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

/// Tokio's clock as governor reads it.
#[derive(Clone, Debug)]
struct Ticker(Instant);

impl clock::Clock for Ticker {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // The limiter looks one burst back, so time must not begin at zero.
        Nanos::from(self.0.elapsed().min(LONGEST) + LONGEST)
    }
}
