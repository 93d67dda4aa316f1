//! The course of one call that is repeated: how far it is, and what its attempts left behind.

use std::time::Duration;

use backon::ExponentialBackoff;
use tokio::time::{Instant, sleep};

use super::{Request, RetryBudget, RetryPolicy, signal};
use crate::{Effect, InstanceInfo, ProvisionError};

/// Where a call is in its attempts.
pub(super) struct Course<'p> {
    policy: &'p RetryPolicy,
    delays: ExponentialBackoff,
    pub(super) began: Instant,
    /// Which one it is at, from one on.
    pub(super) attempt: u32,
}

impl<'p> Course<'p> {
    pub(super) fn new(policy: &'p RetryPolicy) -> Self {
        Self::since(policy, Instant::now())
    }

    /// The same for a part of a call that began earlier.
    pub(super) fn since(policy: &'p RetryPolicy, began: Instant) -> Self {
        Self {
            policy,
            delays: policy.backoff(),
            began,
            attempt: 1,
        }
    }

    /// Whether an attempt after `delay` begins before the deadline.
    pub(super) fn reaches(&self, delay: Duration) -> bool {
        let begins = self.began.elapsed().checked_add(delay);
        begins.is_some_and(|begins| begins <= self.policy.timeout)
    }

    /// Goes on to the next attempt, after a pause; nothing where there is none.
    pub(super) fn pause(
        &mut self,
        request: &Request<'_>,
        wanted: Option<Duration>,
    ) -> Option<Pause> {
        let wanted = wanted?;
        if self.attempt >= self.policy.max_attempts.get() {
            return None;
        }
        let delay = self
            .delays
            .next()
            .unwrap_or(self.policy.max_delay)
            .max(wanted);
        if !self.reaches(delay) {
            return None;
        }
        if !self.policy.budget.withdraw() {
            signal::budget_is_spent(request);
            return None;
        }
        self.attempt += 1;
        Some(Pause {
            delay,
            taken_from: Some(self.policy.budget.clone()),
        })
    }
}

/// The time before a repetition. Who is dropped in it gives the repetition back.
pub(super) struct Pause {
    pub(super) delay: Duration,
    taken_from: Option<RetryBudget>,
}

impl Pause {
    pub(super) async fn pass(mut self) {
        sleep(self.delay).await;
        self.taken_from = None;
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(budget) = &self.taken_from {
            budget.give_back();
        }
    }
}

/// What earlier attempts left behind.
#[derive(Default)]
pub(super) struct Past {
    effect: Option<Effect>,
    survivors: Vec<InstanceInfo>,
}

impl Past {
    /// `error` as the error of all attempts so far.
    pub(super) fn with(&mut self, error: ProvisionError) -> ProvisionError {
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
