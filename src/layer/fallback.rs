//! Launches another offering when the cloud has no capacity or no quota for the requested one.
//!
//! Owns the order in which alternatives are tried, and the memory of offerings that had none. It
//! continues with the next alternative only for lack of capacity or of a quota that another
//! alternative may not need, and only when the attempt before is known to have launched nothing. Every
//! other error is returned as it is.

use std::{borrow::Cow, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    FallbackPolicy, LaunchOutput, Layer, Request,
    capacity_memory::CapacityMemory,
    fallback_follow::follow,
    fallback_progress::Progress,
    telemetry::{self, FallbackReason},
};
use crate::{
    Effect, ErrorKind, InstanceConfig, InstanceProvisionerExt as _, LaunchRecord, LaunchToken,
    Operation, ProvisionError, Result, RetryAdvice, Scope, ext::look_up_within,
};

/// Launches the first alternative that has capacity and quota.
///
/// - An alternative is given up if the cloud has no capacity for it, does not offer it in its zone, or
///   refuses it because of a quota that another alternative may not need. A quota of the whole region
///   or account is returned as it is: no alternative helps.
/// - All alternatives of a launch use its token, so the backend creates at most one instance, and
///   [`find_launch`](crate::InstanceProvisioner::find_launch) finds it. A replay whose token was used
///   with another alternative returns that alternative's instance: configs that differ only in what
///   an alternative sets are the same launch here.
/// - If the outcome of an attempt is unknown, its token is looked up before the next attempt. If that
///   does not settle it, the error is returned.
/// - After such an error, every alternative that a scope of the error [covers](Scope::covers) is skipped
///   for a time, and no other. If the scope names a zone or network that the backend chose, all
///   alternatives that leave the same choice to the backend are skipped. If every alternative is skipped,
///   the launch is refused without being sent, with the time after which the first one may be tried; a
///   token is looked up before that.
/// - A batch of which some instances were launched stays with its alternative: its error carries the
///   survivors.
/// - The type and placement of an instance show which alternative it got, and so does a tag if the
///   policy [sets one](FallbackPolicy::record_in_tag).
///
/// # Late failures
///
/// A cloud may accept a launch and run out of capacity or quota later. If the backend
/// [declares](crate::Capabilities::late_failures) that, or the policy
/// [says so](FallbackPolicy::follow_for), a launch returns only when its instances run, have failed, or
/// the time is over; until then this layer describes them. A launch that failed late is given up like a
/// refused one. Its token is free, but reads may show the failed launch until the
/// [consistency window](crate::Capabilities::consistency_window) is over: for that time, a token that is
/// refused as taken is sent again after each [poll interval](crate::Capabilities::poll_interval). What counts
/// is when an attempt was sent, because a backend may wait before it responds.
///
/// After a crash, replay the launch with its token: a launch that is still pending is followed
/// again, and one that has failed meanwhile has left its token free.
///
/// ```
/// use fleetwright::{Market, layer::{Alternative, Fallback, FallbackPolicy, Layered}};
/// use fleetwright_memory::MemoryCloud;
///
/// let alternatives = [Alternative::new("as requested"), Alternative::new("spot").market(Market::Spot)];
/// let fallback = Fallback::new(FallbackPolicy::new(alternatives));
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), fallback);
/// assert!(provisioner.layer().without_capacity().is_empty());
/// ```
#[derive(Debug)]
pub struct Fallback {
    policy: FallbackPolicy,
    memory: CapacityMemory,
}

impl Fallback {
    /// Creates a layer with the alternatives of `policy`.
    pub const fn new(policy: FallbackPolicy) -> Self {
        let memory = CapacityMemory::new(policy.remember);
        Self { policy, memory }
    }

    /// Returns the scopes that are skipped now, because they had no capacity or quota recently.
    pub fn without_capacity(&self) -> Vec<Scope> {
        self.memory.scopes()
    }

    /// Tries the alternatives that are open, in order. Returns how the last one ended.
    async fn try_alternatives<'a, T: LaunchOutput>(
        &self,
        request: &Request<'_>,
        configs: &[(&str, InstanceConfig)],
        progress: &mut Progress,
        send: &(impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a),
    ) -> Outcome<T> {
        for (index, (name, config)) in configs.iter().enumerate() {
            if !progress.is_open(index) {
                continue;
            }
            if let Some(until) = self.memory.unavailable_until(config) {
                telemetry::fallback(request, name, FallbackReason::RecentShortage);
                progress.skip(index, until);
                continue;
            }
            progress.note_attempt();
            let (launched, accepted) = match send(Cow::Owned(config.clone())).await {
                Ok(launched) => (self.follow(request, config, launched).await, true),
                Err(error) => (Err(error), false),
            };
            let error = match launched {
                Ok(launched) => return Outcome::Returned(Ok(launched)),
                Err(error) => error,
            };
            if progress.is_taken(&error) {
                return Outcome::TokenTaken { index, error };
            }
            if !self.may_continue(request, name, config, &error).await {
                return Outcome::Returned(Err(error));
            }
            if accepted {
                progress.give_up_late(request, index, error);
            } else {
                progress.give_up(request, index, error);
            }
        }
        Outcome::NoCapacity
    }

    /// Follows a launch that the backend has accepted. Returns its late failure as its error.
    async fn follow<T: LaunchOutput>(
        &self,
        request: &Request<'_>,
        config: &InstanceConfig,
        launched: T,
    ) -> Result<T> {
        let capabilities = request.capabilities();
        let declared = capabilities.late_failures;
        let time = self.policy.follow.unwrap_or(declared);
        if time.is_zero() {
            return Ok(launched);
        }
        // A read may show the failure late.
        let time = time.saturating_add(capabilities.usual_lag());
        follow(request, config, launched, time).await
    }

    /// Returns whether another alternative may succeed where `config` failed with `error`, and remembers
    /// what was short.
    async fn may_continue(
        &self,
        request: &Request<'_>,
        name: &str,
        config: &InstanceConfig,
        error: &ProvisionError,
    ) -> bool {
        let Some(reason) = reason_to_continue(error) else {
            return false;
        };
        if !launched_nothing(request, error).await {
            return false;
        }
        self.memory.record(error, config);
        telemetry::fallback(request, name, reason);
        true
    }

    /// Replays a token that was used before: returns the result of the first alternative that the
    /// backend accepts for it, of those that were not tried. Nothing is launched, because the token is taken.
    async fn replay<'a, T: LaunchOutput>(
        &self,
        request: &Request<'_>,
        configs: &[(&str, InstanceConfig)],
        is_tried: impl Fn(usize) -> bool + Send,
        send: &(impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a),
        conflict: ProvisionError,
    ) -> Replay<T> {
        for (index, (name, config)) in configs.iter().enumerate() {
            if is_tried(index) {
                continue;
            }
            let launched = match send(Cow::Owned(config.clone())).await {
                Err(error) if is_another_config(&error) => continue,
                Err(error) => return Replay::Returned(Err(error)),
                Ok(launched) => launched,
            };
            return match self.follow(request, config, launched).await {
                Err(error) if self.may_continue(request, name, config, &error).await => {
                    Replay::FailedLate { index, error }
                }
                result => Replay::Returned(result),
            };
        }
        Replay::Returned(Err(conflict))
    }
}

/// How the replay of a token ended.
enum Replay<T> {
    /// With this result.
    Returned(Result<T>),
    /// The launch was still pending and has failed meanwhile. Its token is free.
    FailedLate { index: usize, error: ProvisionError },
}

/// How the attempts of a launch ended.
enum Outcome<T> {
    /// With this result.
    Returned(Result<T>),
    /// The token was used before, with another config than the one at `index`.
    TokenTaken { index: usize, error: ProvisionError },
    /// No alternative has capacity and quota.
    NoCapacity,
}

impl Layer for Fallback {
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let configs = self.policy.configs(config);
            let mut progress = Progress::new(&request, configs.len());
            // Each replay but the last ends with a launch of this token that failed late.
            for _ in 0..=configs.len() {
                let (already_tried, conflict) = loop {
                    let tried = self.try_alternatives(&request, &configs, &mut progress, &send);
                    let taken = match tried.await {
                        Outcome::Returned(result) => return result,
                        Outcome::TokenTaken { index, error } => (Some(index), error),
                        Outcome::NoCapacity => {
                            let skipped_until = progress.skipped_until();
                            let skipped = skipped_until.is_some();
                            progress.note_attempt();
                            let Some(conflict) = used_token(&request, skipped).await? else {
                                let skipped = || all_skipped(&request, config, skipped_until);
                                return Err(progress.into_error().unwrap_or_else(skipped));
                            };
                            (None, conflict)
                        }
                    };
                    if !progress.wait_for_token(&request).await {
                        break taken;
                    }
                };
                let tried = |index| Some(index) == already_tried || progress.is_given_up(index);
                if (0..configs.len()).all(tried) {
                    return Err(progress.into_error().unwrap_or(conflict));
                }
                let replay = self.replay(&request, &configs, tried, &send, conflict);
                match replay.await {
                    // What failed in this launch still has the token.
                    Replay::Returned(Err(error)) if error.kind() == ErrorKind::TokenConflict => {
                        return Err(progress.into_error().unwrap_or(error));
                    }
                    Replay::Returned(result) => return result,
                    Replay::FailedLate { index, error } => {
                        progress.give_up_late(&request, index, error);
                    }
                }
            }
            let skipped = || all_skipped(&request, config, None);
            Err(progress.into_error().unwrap_or_else(skipped))
        })
    }
}

/// Returns the conflict of a token that was used with an alternative that was skipped, or `None` if
/// there is no such token.
async fn used_token(request: &Request<'_>, skipped: bool) -> Result<Option<ProvisionError>> {
    let Some(token) = request.token.filter(|_| skipped) else {
        return Ok(None);
    };
    // Nothing is launched after "not found", so no proof of it is needed.
    let lag = request.capabilities().usual_lag();
    let settled = settle(request, token, lag).await;
    let record = settled.map_err(|error| error.with_operation(request.operation()))?;
    let used = record != LaunchRecord::NotFound;
    Ok(used.then(|| request.call.token_conflict(token)))
}

/// Returns why the next alternative may succeed where a launch failed with `error`, or `None` if it would
/// fail too.
fn reason_to_continue(error: &ProvisionError) -> Option<FallbackReason> {
    let whole = |scope: &Scope| matches!(scope, Scope::Region | Scope::Account);
    let avoidable = !error.scopes().is_empty() && !error.scopes().iter().any(whole);
    if error.kind() == ErrorKind::Capacity {
        Some(FallbackReason::Capacity)
    } else if error.kind() == ErrorKind::Quota && avoidable {
        Some(FallbackReason::Quota)
    } else {
        None
    }
}

/// Returns whether a refused launch certainly launched nothing.
async fn launched_nothing(request: &Request<'_>, error: &ProvisionError) -> bool {
    match (error.effect(), request.token) {
        (Effect::None, _) => true,
        // The outcome of an earlier attempt of the same launch is unknown.
        (Effect::Unknown, Some(token)) => {
            let window = request.capabilities().consistency_window;
            let settled = settle(request, token, window).await;
            matches!(settled, Ok(LaunchRecord::NotFound))
        }
        (Effect::Done, _) | (Effect::Unknown, None) => false,
    }
}

/// Finds out what the token launched. Waits for `time` before "not found", which is proved after the
/// consistency window.
async fn settle(
    request: &Request<'_>,
    token: &LaunchToken,
    time: Duration,
) -> Result<LaunchRecord> {
    let record = look_up_within(request.inner, token, time).await?;
    let found = match &record {
        LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => infos.len(),
        LaunchRecord::NotFound => 0,
    };
    let is_partial = u32::try_from(found).is_ok_and(|found| found < request.count.get());
    if is_partial && request.operation() == Operation::LaunchInstances {
        // The time is over, or the first item shows, so one look-up of the batch's items is enough.
        return request.inner.find_launches(token, request.count).await;
    }
    Ok(record)
}

/// Returns whether the token was used with another alternative: the backend reports a conflict, or
/// refuses this config for good.
fn is_another_config(error: &ProvisionError) -> bool {
    let is_final = error.effect() == Effect::None && error.retry() == RetryAdvice::Never;
    is_final && error.kind() != ErrorKind::TokenSpent
}

/// Creates the error of a launch whose alternatives were all skipped.
fn all_skipped(
    request: &Request<'_>,
    config: &InstanceConfig,
    until: Option<Instant>,
) -> ProvisionError {
    let message =
        "no alternative had capacity or quota recently; wait, or configure more alternatives";
    let error = request.call.capacity(Scope::of(config), message);
    match until {
        Some(until) => error.retry_after(until.saturating_duration_since(Instant::now())),
        None => error,
    }
}
