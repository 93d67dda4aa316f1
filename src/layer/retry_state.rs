//! The state of one call that may be retried: its attempt number, its delays and its past errors.
//!
//! Owns the decision whether another attempt is allowed by the attempt limit, the deadline and the
//! retry budget. It never decides whether an error may be retried: the caller passes the minimum
//! delay, or `None`.

use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::{Instant, sleep};

use super::{Request, RetryBudget, RetryPolicy, telemetry};
use crate::{Effect, InstanceInfo, ProvisionError};

/// The progress of one call through its attempts.
pub(super) struct RetryState<'p> {
    policy: &'p RetryPolicy,
    /// The delays between the attempts, as soon as there is a second one.
    backoff: Option<ExponentialBackoff>,
    /// When the first attempt started. The deadline is counted from here.
    pub(super) started: Instant,
    /// The number of the current attempt. The first one is 1.
    pub(super) attempt: u32,
}

impl<'p> RetryState<'p> {
    /// Starts a call now, with attempt 1.
    pub(super) fn new(policy: &'p RetryPolicy) -> Self {
        Self::started_at(policy, Instant::now())
    }

    /// Starts a call whose deadline is counted from `started`, which may be in the past.
    pub(super) fn started_at(policy: &'p RetryPolicy, started: Instant) -> Self {
        Self {
            policy,
            backoff: None,
            started,
            attempt: 1,
        }
    }

    /// Returns whether an attempt that starts after `delay` starts before the deadline.
    pub(super) fn is_before_deadline(&self, delay: Duration) -> bool {
        let elapsed = self.started.elapsed().checked_add(delay);
        elapsed.is_some_and(|elapsed| elapsed <= self.policy.timeout)
    }

    /// Counts the next attempt and returns the delay before it, or `None` if there is none: the
    /// call must not be retried, or attempts, time or budget are used up.
    pub(super) fn next_delay(
        &mut self,
        request: &Request<'_>,
        min_delay: Option<Duration>,
    ) -> Option<RetryDelay> {
        let min_delay = min_delay?;
        if self.attempt >= self.policy.max_attempts.get() {
            return None;
        }
        let backoff = self.backoff.get_or_insert_with(|| self.policy.backoff());
        let backoff = backoff.next().unwrap_or(self.policy.max_delay);
        let duration = backoff.max(min_delay);
        if !self.is_before_deadline(duration) {
            return None;
        }
        if !self.policy.budget.withdraw() {
            telemetry::retry_budget_empty(request);
            return None;
        }
        self.attempt += 1;
        Some(RetryDelay {
            duration,
            budget: Some(self.policy.budget.clone()),
        })
    }
}

/// The delay before a retry. If it is dropped before [`sleep`](Self::sleep) has finished, the retry
/// is returned to the budget.
pub(super) struct RetryDelay {
    /// How long to wait.
    pub(super) duration: Duration,
    budget: Option<RetryBudget>,
}

impl RetryDelay {
    /// Waits, and then keeps the retry: it is about to be sent.
    pub(super) async fn sleep(mut self) {
        sleep(self.duration).await;
        self.budget = None;
    }
}

impl Drop for RetryDelay {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give_back();
        }
    }
}

/// The effects and survivors of all attempts of a call so far.
#[derive(Default)]
pub(super) struct FailureHistory {
    effect: Option<Effect>,
    survivors: Vec<InstanceInfo>,
}

impl FailureHistory {
    /// Adds `error`, and returns it with the strongest effect and all survivors so far.
    pub(super) fn merge(&mut self, error: ProvisionError) -> ProvisionError {
        for info in error.survivors() {
            self.survivors.retain(|known| known.id != info.id);
            self.survivors.push(info.clone());
        }
        let effect = self.effect.max(Some(error.effect()));
        self.effect = effect;
        let error = if self.survivors.is_empty() {
            error
        } else {
            error.with_survivors(self.survivors.clone())
        };
        error.with_effect(effect.unwrap_or(Effect::None))
    }
}
