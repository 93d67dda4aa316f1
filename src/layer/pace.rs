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
    /// The rate in calls a second, if nobody was told yet that it was raised.
    raised: Option<f64>,
}

/// The right to go.
#[derive(Debug)]
pub(super) struct Turn {
    /// How often the rate was lowered so far.
    pub(super) epoch: u64,
    /// The rate in calls a second, if it was raised since the turn before.
    pub(super) raised: Option<f64>,
}

impl Pace {
    pub(super) fn new(rate: Option<Rate>, recovery: Duration) -> Self {
        let now = Instant::now();
        let now = Now {
            bucket: rate.map(|rate| Bucket::new(rate, WHOLE, now)),
            share: WHOLE,
            since: now,
            not_before: now,
            epoch: 0,
            raised: None,
        };
        Self {
            rate,
            recovery: recovery.max(Duration::from_millis(1)),
            now: Mutex::new(now),
        }
    }

    /// Takes `turns`, or tells when to ask again.
    ///
    /// More than the bucket holds are taken from a full one, and nobody goes until the rest is
    /// earned too.
    pub(super) fn take(&self, turns: NonZeroU32) -> Result<Turn, Instant> {
        let (time, mut now) = (Instant::now(), self.lock());
        if now.not_before > time {
            return Err(now.not_before);
        }
        self.recover(&mut now, time);
        if let (Some(rate), Some(bucket)) = (self.rate, &now.bucket) {
            bucket.take(turns).map_err(|wait| later(time, wait))?;
            if let Some(more) = turns.get().checked_sub(rate.burst.get()).filter(|n| *n > 0) {
                let owed = period(rate, now.share).saturating_mul(more);
                now.bucket = Some(Bucket::earning(rate, now.share, later(time, owed), time));
            }
        }
        Ok(Turn {
            epoch: now.epoch,
            raised: now.raised.take(),
        })
    }

    /// A call that was let through at `epoch` was throttled: nothing is sent before `asked` has
    /// passed, and the rate is halved. Many calls of one burst halve it once. Answers the rate, in
    /// calls a second, if it has changed.
    pub(super) fn lower(&self, epoch: u64, asked: Duration) -> Option<f64> {
        let (time, mut now) = (Instant::now(), self.lock());
        let until = later(time, asked);
        now.not_before = now.not_before.max(until);
        if epoch != now.epoch {
            return None;
        }
        now.epoch += 1;
        now.share = (now.share / 2).max(1);
        // What is given back is counted from when calls go again, and so is what they earn.
        now.since = now.not_before;
        let rate = self.rate?;
        let from = now.since;
        now.refill(rate, from, time);
        now.raised = None;
        Some(per_second(rate, now.share))
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
            // That much time has passed.
            now.since += self.recovery * earned;
            if let Some(rate) = self.rate {
                let from = now.since;
                now.refill(rate, from, time);
                now.raised = Some(per_second(rate, now.share));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // Nothing under the lock panics; if it did, the numbers would still be sound.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    /// A bucket of the present share that has earned since `from`: a change of the rate must not
    /// give a burst away, nor what is still owed.
    fn refill(&mut self, rate: Rate, from: Instant, time: Instant) {
        let from = self.bucket.as_ref().map_or(from, |old| from.max(old.from));
        self.bucket = Some(Bucket::earning(rate, self.share, from, time));
    }
}

/// The time in which one call is earned when `share` of the rate is left.
fn period(rate: Rate, share: u32) -> Duration {
    let every = rate.interval.saturating_mul(WHOLE) / share;
    every.clamp(Duration::from_nanos(1), LONGEST / rate.burst.get())
}

fn per_second(rate: Rate, share: u32) -> f64 {
    1.0 / period(rate, share).as_secs_f64()
}

/// `time` and `wait`, which may be any.
fn later(time: Instant, wait: Duration) -> Instant {
    time + wait.min(LONGEST)
}

#[derive(Debug)]
struct Bucket {
    limiter: Limiter,
    burst: NonZeroU32,
    clock: Ticker,
    /// Since when it fills, which may be to come.
    from: Instant,
}

impl Bucket {
    /// A full one.
    fn new(rate: Rate, share: u32, from: Instant) -> Self {
        let clock = Ticker(from);
        // A period is at least a nanosecond, so there is a quota.
        let quota =
            Quota::with_period(period(rate, share)).unwrap_or(Quota::per_second(rate.burst));
        Self {
            limiter: RateLimiter::direct_with_clock(quota.allow_burst(rate.burst), clock.clone()),
            burst: rate.burst,
            clock,
            from,
        }
    }

    /// One that was empty at `from`.
    fn earning(rate: Rate, share: u32, from: Instant, time: Instant) -> Self {
        let bucket = Self::new(rate, share, from);
        let passed = time.saturating_duration_since(from).as_nanos();
        let earned = u32::try_from(passed / period(rate, share).as_nanos()).unwrap_or(u32::MAX);
        let missing = NonZeroU32::new(rate.burst.get().saturating_sub(earned));
        let _ = missing.map(|missing| bucket.take(missing));
        bucket
    }

    /// Takes `turns` at once, or none and tells how long to wait. More than the bucket holds count as
    /// a whole bucket.
    fn take(&self, turns: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_n(turns.min(self.burst)) {
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(clock::Clock::now(&self.clock));
                let ahead = self.from.saturating_duration_since(Instant::now());
                Err(wait.max(Duration::from_nanos(1)) + ahead)
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
