//! The one token that all calls share.
//!
//! Owns the token and its renewal. A call never waits for a token while the current one is valid:
//! the renewal runs in a task of its own, one at a time, and is bounded by a timeout. After a failed
//! renewal the source gets a pause, so that calls do not each repeat the request. A call that finds
//! no valid token waits for the request that runs, or starts it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{FutureExt as _, future::BoxFuture, future::Shared};
use tokio::{sync::oneshot, task::AbortHandle, time::Instant};

use crate::{
    Token, TokenFailure, TokenSource,
    error::{Cause, Failure},
};

/// How long before its expiry a token is renewed. A token that lasts less than twice that is renewed
/// after half its time.
const RENEW_BEFORE: TimeDelta = TimeDelta::minutes(5);

/// How long the source is left alone after a failed renewal, while the token is valid.
const PAUSE: TimeDelta = TimeDelta::seconds(30);

/// Returns the time. Tests inject another one.
type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// The result of a request for a token, for every call that waits for it.
type Outcome = Shared<BoxFuture<'static, Result<Token, TokenFailure>>>;

/// The token of all calls. Dropping it ends a renewal that runs.
pub(in crate::client) struct TokenCache(Arc<Inner>);

/// What the cache and its renewals share.
struct Inner {
    /// Where tokens come from.
    source: Arc<dyn TokenSource>,
    /// The scope that tokens are requested for.
    scope: String,
    /// The timeout of one request.
    timeout: Duration,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last token that was received.
    cached: Option<CachedToken>,
    /// The request that runs.
    request: Option<RunningRequest>,
    /// When a request failed last, after the last one that succeeded.
    failed_at: Option<DateTime<Utc>>,
    /// How many requests were started.
    requests: u64,
}

/// A token, and when to renew it.
struct CachedToken {
    token: Token,
    renew_at: DateTime<Utc>,
}

#[derive(Clone)]
struct RunningRequest {
    number: u64,
    started: Instant,
    outcome: Outcome,
    task: AbortHandle,
}

impl TokenCache {
    /// Creates an empty cache. `timeout` bounds one request for a token.
    pub(in crate::client) fn new(
        source: Arc<dyn TokenSource>,
        scope: String,
        timeout: Duration,
    ) -> Self {
        Self::with_clock(source, scope, timeout, Arc::new(Utc::now))
    }

    fn with_clock(
        source: Arc<dyn TokenSource>,
        scope: String,
        timeout: Duration,
        clock: Clock,
    ) -> Self {
        Self(Arc::new(Inner {
            source,
            scope,
            timeout,
            clock,
            state: Mutex::default(),
        }))
    }

    /// Returns the current token. Waits for one only if there is none that is valid.
    pub(in crate::client) async fn current(&self) -> Result<Token, Failure> {
        let request = {
            let mut state = self.0.lock();
            let now = (self.0.clock)();
            if let Some(token) = state.valid_token(now) {
                if state.is_renewal_due(now) {
                    self.0.request(&mut state);
                }
                return Ok(token);
            }
            self.0.request(&mut state)
        };
        let deadline = request.started + self.0.timeout;
        let outcome = tokio::time::timeout_at(deadline, request.outcome).await;
        let outcome = outcome.unwrap_or_else(|_| Err(late()));
        outcome.map_err(|failure| match failure {
            TokenFailure::Refused(message) => Failure::new(Cause::NoCredentials, message),
            TokenFailure::Unavailable(message) => {
                Failure::new(Cause::CredentialsUnavailable, message)
            }
        })
    }

    /// Drops a token that Azure refused.
    pub(in crate::client) fn forget(&self, refused: &Token) {
        let mut state = self.0.lock();
        if state
            .cached
            .as_ref()
            .is_some_and(|cached| cached.token == *refused)
        {
            state.cached = None;
        }
    }
}

impl Drop for TokenCache {
    fn drop(&mut self) {
        if let Some(request) = &self.0.lock().request {
            request.task.abort();
        }
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache")
            .field("source", &self.0.source)
            .field("scope", &self.0.scope)
            .finish_non_exhaustive()
    }
}

impl State {
    fn valid_token(&self, now: DateTime<Utc>) -> Option<Token> {
        let valid = self
            .cached
            .as_ref()
            .filter(|cached| cached.token.expires > now);
        valid.map(|cached| cached.token.clone())
    }

    fn is_renewal_due(&self, now: DateTime<Utc>) -> bool {
        let is_pause_over = |at: DateTime<Utc>| (now - at).abs() >= PAUSE;
        self.cached
            .as_ref()
            .is_some_and(|cached| now >= cached.renew_at)
            && self.failed_at.is_none_or(is_pause_over)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request that runs, or starts one. A request that is older than its timeout is
    /// given up: the runtime that it was started on may not run any more.
    fn request(self: &Arc<Self>, state: &mut State) -> RunningRequest {
        if let Some(running) = &state.request {
            if running.started.elapsed() < self.timeout {
                return running.clone();
            }
            running.task.abort();
        }
        state.requests += 1;
        let number = state.requests;
        let (sender, receiver) = oneshot::channel();
        let ended = EndOfRequest {
            inner: Arc::clone(self),
            number,
            is_kept: false,
        };
        let task = tokio::spawn(async move {
            let inner = &ended.inner;
            let token = inner.source.token(&inner.scope);
            let outcome = tokio::time::timeout(inner.timeout, token).await;
            let outcome = inner.keep(outcome.unwrap_or_else(|_| Err(late())));
            ended.finish();
            // All calls that waited for it may have been dropped.
            let _ = sender.send(outcome);
        });
        let outcome = receiver.map(|sent| {
            sent.unwrap_or_else(|_| {
                Err(TokenFailure::unavailable(
                    "the request for a token for Azure was cancelled",
                ))
            })
        });
        let request = RunningRequest {
            number,
            started: Instant::now(),
            outcome: outcome.boxed().shared(),
            task: task.abort_handle(),
        };
        state.request = Some(request.clone());
        request
    }

    /// Keeps a new token, or the time of a failure.
    fn keep(&self, outcome: Result<Token, TokenFailure>) -> Result<Token, TokenFailure> {
        let now = (self.clock)();
        let outcome = outcome.and_then(|token| usable(token, now));
        let mut state = self.lock();
        match &outcome {
            Ok(token) => {
                let early = RENEW_BEFORE.min((token.expires - now) / 2);
                state.failed_at = None;
                state.cached = Some(CachedToken {
                    token: token.clone(),
                    renew_at: token.expires - early,
                });
            }
            Err(failure) => {
                state.failed_at = Some(now);
                if let Some(token) = state.valid_token(now) {
                    tracing::warn!(
                        expires = %token.expires,
                        reason = %failure,
                        "the token for Azure cannot be renewed; it is used until it expires"
                    );
                }
            }
        }
        outcome
    }
}

/// Refuses an empty token and one that has expired.
fn usable(token: Token, now: DateTime<Utc>) -> Result<Token, TokenFailure> {
    if token.secret.is_empty() {
        return Err(TokenFailure::unavailable(
            "the token service returned an empty token",
        ));
    }
    if token.expires <= now {
        return Err(TokenFailure::unavailable(
            "the token service returned a token that has expired; check the clock of this machine",
        ));
    }
    Ok(token)
}

fn late() -> TokenFailure {
    TokenFailure::unavailable("no token for Azure was obtained in time")
}

/// Marks the end of a request, also if it panicked or was aborted.
struct EndOfRequest {
    inner: Arc<Inner>,
    number: u64,
    /// Whether the outcome was kept.
    is_kept: bool,
}

impl EndOfRequest {
    fn finish(mut self) {
        self.is_kept = true;
    }
}

impl Drop for EndOfRequest {
    fn drop(&mut self) {
        let now = (self.inner.clock)();
        let mut state = self.inner.lock();
        let is_current = |one: &RunningRequest| one.number == self.number;
        if state.request.as_ref().is_some_and(is_current) {
            state.request = None;
            if !self.is_kept {
                state.failed_at = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
