//! Repeating calls, as their errors advise.
//!
//! Owns when a call is sent again, and what its caller is told of all attempts together. It reads
//! an error's advice and effect and nothing else, and it never sends a launch again whose outcome
//! is unknown, unless with the same token.

use std::{num::NonZeroU32, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::Instant;

use super::{
    LaunchOutput, Layer, Request, RetryBudget,
    course::{Course, Past},
    signal,
};
use crate::{
    BoxStream, Effect, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisionerExt as _,
    LaunchRecord, LaunchToken, ListItem, Operation, ProvisionError, Result,
};

/// How often and how long to retry.
///
/// A delay doubles from [`first_delay`](Self::first_delay) to [`max_delay`](Self::max_delay), made
/// longer by a random part of itself. Where the cloud asks for more, that is kept; where that is
/// past the deadline, the call is given up at once with the cloud's error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The most times that a call is sent.
    pub max_attempts: NonZeroU32,
    /// How long after the first attempt began another one may begin. The look-up of a launch that
    /// was given up is made once even later, and repeated within this time.
    pub timeout: Duration,
    /// The delay after the first attempt.
    pub first_delay: Duration,
    /// The longest delay, before the random part.
    pub max_delay: Duration,
    /// How many repetitions all calls have together.
    pub budget: RetryBudget,
    /// Makes the random part repeatable.
    pub jitter_seed: Option<u64>,
}

impl Default for RetryPolicy {
    /// Five attempts within five minutes, from a fifth of a second to twenty seconds apart.
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::MIN.saturating_add(4),
            timeout: Duration::from_secs(300),
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(20),
            budget: RetryBudget::default(),
            jitter_seed: None,
        }
    }
}

impl RetryPolicy {
    /// Sends a call so many times at most.
    #[must_use]
    pub const fn max_attempts(mut self, most: NonZeroU32) -> Self {
        self.max_attempts = most;
        self
    }

    /// Begins no attempt later than this after the first.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Waits for `first`, and then ever longer, at last for `max`.
    #[must_use]
    pub const fn delays(mut self, first: Duration, max: Duration) -> Self {
        self.first_delay = first;
        self.max_delay = max;
        self
    }

    /// Takes repetitions out of `budget`.
    #[must_use]
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Makes the random part of the delays repeatable.
    #[must_use]
    pub const fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// The delays between attempts.
    pub(super) fn backoff(&self) -> ExponentialBackoff {
        const SHORTEST: Duration = Duration::from_millis(1);
        let first = self.first_delay.max(SHORTEST);
        let mut builder = ExponentialBuilder::new()
            .with_factor(2.0)
            .with_min_delay(first)
            .with_max_delay(self.max_delay.max(first))
            .without_max_times()
            .with_jitter();
        if let Some(seed) = self.jitter_seed {
            builder = builder.with_jitter_seed(seed);
        }
        builder.build()
    }
}

/// Repeats calls.
///
/// - A read, and a change that is idempotent, is repeated whenever the error says that it may be.
/// - A launch is repeated with its token, or after an error without effect. When it is given up with
///   an error that might be repeated and its outcome is unknown, its token is looked up, and what it
///   launched is the answer: instances of which nothing shows that they are of another config. User
///   data and disk sizes are not shown, so a token that was misused with others is not noticed here.
/// - A reboot is repeated after an error without effect only.
/// - Of a batch, those items are repeated whose errors say so, in one call.
/// - A stream is opened again as long as nothing was read from it.
///
/// The error of a call that was given up is that of its last attempt, with the effect and the
/// survivors of all of them.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    policy: RetryPolicy,
    parts: Parts,
}

/// What becomes of a batch of which a part came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parts {
    /// The rest is repeated.
    #[default]
    Completed,
    /// It is answered, because different callers wait for different parts.
    Answered,
}

impl Retry {
    /// Repeats as `policy` says.
    pub const fn new(policy: RetryPolicy) -> Self {
        let parts = Parts::Completed;
        Self { policy, parts }
    }

    /// Repeats as `policy` says, but a batch only as long as nothing of it has come through.
    pub(super) const fn answering_parts(policy: RetryPolicy) -> Self {
        let parts = Parts::Answered;
        Self { policy, parts }
    }

    /// Sends until it succeeds or must be given up.
    async fn repeat<'a, T>(
        &self,
        request: &Request<'a>,
        mut course: Course<'_>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    ) -> Result<T> {
        let mut past = Past::default();
        loop {
            let answer = signal::attempt(request, course.attempt, send()).await;
            let error = match answer {
                Ok(value) => {
                    self.policy.budget.deposit();
                    return Ok(value);
                }
                Err(error) => past.with(error),
            };
            let Some(pause) = course.pause(request, wanted(request, &error)) else {
                return Err(error);
            };
            signal::repeats(request, &error, course.attempt, pause.delay);
            pause.pass().await;
        }
    }

    /// What became of a launch that was given up.
    async fn look_up<'a>(
        &self,
        request: &Request<'a>,
        token: &'a LaunchToken,
        began: Instant,
    ) -> Result<LaunchRecord> {
        let (inner, count) = (request.inner, request.count);
        let batch = request.operation() == Operation::LaunchInstances;
        let request = Request::new(inner, Operation::FindLaunch).with_token(Some(token));
        // The deadline is that of the launch.
        let course = Course::since(&self.policy, began);
        let looked = self.repeat(&request, course, || {
            Box::pin(async move {
                if batch {
                    inner.find_launches(token, count).await
                } else {
                    inner.find_launch(token).await
                }
            })
        });
        signal::look_up(&request, looked).await
    }
}

impl Layer for Retry {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move { self.repeat(&request, Course::new(&self.policy), send).await })
    }

    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let course = Course::new(&self.policy);
            let began = course.began;
            let answer = self.repeat(&request, course, || send(config.clone())).await;
            match (answer, request.token) {
                // A last attempt that was refused for good says what is wrong, and is the answer.
                (Err(error), Some(token))
                    if error.effect() == Effect::Unknown && error.retry().delay().is_some() =>
                {
                    let found = match self.look_up(&request, token, began).await {
                        Ok(LaunchRecord::Found(found)) => found,
                        // Not seen is no proof before the window has passed, and what is gone is not
                        // an answer: the launch is as unknown as it was.
                        Ok(LaunchRecord::Terminated(_) | LaunchRecord::NotFound) | Err(_) => {
                            Vec::new()
                        }
                    };
                    // The token may be another config's, which no refusal has told yet.
                    let ours = found.iter().all(|info| is_made_of(info, config));
                    let answer = ours.then(|| T::complete(found, request.count)).flatten();
                    answer.ok_or(error)
                }
                (answer, _) => answer,
            }
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let mut course = Course::new(&self.policy);
            let mut answers: Vec<Option<Result<T>>> = request.ids.iter().map(|_| None).collect();
            let mut pasts: Vec<Past> = request.ids.iter().map(|_| Past::default()).collect();
            let mut open: Vec<usize> = (0..request.ids.len()).collect();
            while !open.is_empty() {
                let ids: Vec<_> = open.iter().map(|at| request.ids[*at].clone()).collect();
                let asked = ids.len();
                let sent = signal::attempt_batch(&request, course.attempt, send(ids)).await;
                let (mut again, mut longest, mut last) = (Vec::new(), None, None);
                let mut some_came_through = false;
                for (at, answer) in open.into_iter().zip(request.fitted(asked, sent)) {
                    let answer = answer.map_err(|error| pasts[at].with(error));
                    some_came_through |= answer.is_ok();
                    if let Err(error) = &answer {
                        // Who has to wait for too long does not keep the others waiting.
                        if let Some(delay) = wanted(&request, error).filter(|d| course.reaches(*d))
                        {
                            again.push(at);
                            longest = longest.max(Some(delay));
                            last = Some(error.clone());
                        }
                    }
                    answers[at] = Some(answer);
                }
                if some_came_through {
                    self.policy.budget.deposit();
                    if self.parts == Parts::Answered {
                        break;
                    }
                }
                open = match (course.pause(&request, longest), last) {
                    (Some(pause), Some(error)) => {
                        signal::repeats(&request, &error, course.attempt, pause.delay);
                        pause.pass().await;
                        again
                    }
                    _ => Vec::new(),
                };
            }
            // Every id was open in the first round, so every one has its answer.
            answers.into_iter().flatten().collect()
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let begun = async move {
            let mut course = Course::new(&self.policy);
            loop {
                let mut items = open();
                let first = signal::attempt_stream(&request, course.attempt, items.next()).await;
                if let Some(Err(error)) = &first {
                    if let Some(pause) = course.pause(&request, wanted(&request, error)) {
                        signal::repeats(&request, error, course.attempt, pause.delay);
                        pause.pass().await;
                        continue;
                    }
                } else {
                    self.policy.budget.deposit();
                }
                return stream::iter(first).chain(items);
            }
        };
        stream::once(begun).flatten().boxed()
    }
}

/// How long to wait at least before this call is sent again; nothing where it must not be.
fn wanted(request: &Request<'_>, error: &ProvisionError) -> Option<Duration> {
    let without_effect = error.effect() == Effect::None;
    let allowed = match request.operation() {
        Operation::LaunchInstance | Operation::LaunchInstances => {
            request.token.is_some() || without_effect
        }
        Operation::RebootInstance => without_effect,
        Operation::TerminateInstance
        | Operation::TerminateInstances
        | Operation::StopInstance
        | Operation::StopInstances
        | Operation::StartInstance
        | Operation::StartInstances
        | Operation::DescribeInstance
        | Operation::DescribeInstances
        | Operation::ListInstances
        | Operation::StreamInstances
        | Operation::FindLaunch
        | Operation::UpdateTags
        | Operation::ResizeInstance
        | Operation::ReimageInstance
        | Operation::ConsoleOutput
        | Operation::ConsoleSession
        | Operation::SnapshotImage => true,
    };
    error.retry().delay().filter(|_| allowed)
}

/// Whether `info` shows nothing that `config` did not ask for.
fn is_made_of(info: &InstanceInfo, config: &InstanceConfig) -> bool {
    let (shown, asked) = (&info.placement, &config.placement);
    let groups = &asked.security_groups;
    info.tags == config.tags
        && fits(Some(&config.image), info.image.as_ref())
        && fits(Some(&config.instance_type), info.instance_type.as_ref())
        && (asked.zone.is_none() || shown.zone == asked.zone)
        && fits(asked.network.as_ref(), shown.network.as_ref())
        && fits(asked.public_address.as_ref(), shown.public_address.as_ref())
        && fits(asked.market.as_ref(), shown.market.as_ref())
        && (groups.is_empty() || shown.security_groups == *groups)
}

/// Whether what is shown, if anything is, is what was asked for, if anything was.
fn fits<V: PartialEq>(asked: Option<&V>, shown: Option<&V>) -> bool {
    asked.is_none() || shown.is_none() || asked == shown
}
