//! How long a token is known, which handles know it, and what a replay returns about its instance.
//!
//! The declared `token_after_terminate` is the time for which a token stays spent. The clauses test
//! it shortly after the terminate, at nine tenths of it and after it; the last two only if the
//! harness's clock can be advanced that far. A replay whose response arrives after that time may
//! have either result.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo,
    InstanceProvisioner, LaunchRecord, OptionalVerb, ProvisionError, RetryAdvice, TagChange,
    UserData,
};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::{VARIANT_TAG, changed_config, require_conflict, require_replay, with_variant};
use crate::{
    Context, Failure, Outcome, Pass, WireFault, WireOp, context::names, require, shown::addresses,
};

/// TOKEN-04: a backend must return the current state of the instance from a replay, not its state
/// at launch.
///
/// The addresses and the state at launch may no longer be true.
///
/// Replays a launch while its instance runs, is stopped, has new tags and runs again. Each time the
/// replay must show the state, the addresses and the tags that a description shows.
pub(crate) async fn token_04_replay_returns_current_state(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = cx.launch_config(&config).await?;
    let id = &first.id;
    cx.wait_for_state(id, CloudInstanceState::Running).await?;
    require_replay_is_current(cx, &config, id, CloudInstanceState::Running).await?;
    cx.stop(id).await?;
    cx.wait_for_state(id, CloudInstanceState::Stopped).await?;
    require_replay_is_current(cx, &config, id, CloudInstanceState::Stopped).await?;
    let room = with_variant(cx, &config, "new")?.is_some();
    if room && cx.capabilities().supports(OptionalVerb::UpdateTags) {
        let change = TagChange::new().set(VARIANT_TAG, "new");
        let change = change.map_err(|error| Failure::KitError(error.to_string()))?;
        let updated = cx.provisioner().update_tags(id, &change).await;
        updated.map_err(|error| Failure::call_failed("update_tags", &error))?;
        cx.wait_for_consistent_reads().await;
        let shown = require_replay(cx.provisioner(), &config, id, "after new tags").await?;
        require(shown.tags.get(VARIANT_TAG) == Some("new"), || {
            format!(
                "the replay returned {id} without its new tag: {}",
                crate::shown(&shown.tags)
            )
        })?;
    }
    cx.wait_for_consistent_reads().await;
    cx.start(id).await?;
    cx.wait_for_state(id, CloudInstanceState::Running).await?;
    require_replay_is_current(cx, &config, id, CloudInstanceState::Running).await?;
    Ok(Pass::Held)
}

/// Requires that a replay returns the instance in `state` with its current addresses.
async fn require_replay_is_current(
    cx: &Context,
    config: &InstanceConfig,
    id: &InstanceId,
    state: CloudInstanceState,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    let truth = cx.describe(id).await?;
    let shown = require_replay(cx.provisioner(), config, id, "of a launch long ago").await?;
    require(shown.state == state, || {
        format!(
            "{id} is {state}, but the replay returned it as {}",
            shown.state
        )
    })?;
    let wanted = (truth.private_ip, truth.public_ip);
    let returned = (shown.private_ip, shown.public_ip);
    require(returned == wanted, || {
        let (wanted, returned) = (addresses(wanted), addresses(returned));
        format!("{id} has the addresses {wanted}, but the replay returned {returned}")
    })
}

/// TOKEN-05: a backend must accept a token again after a launch with it was refused without effect.
///
/// Otherwise a launch with one wrong field makes its token useless.
///
/// Lets a launch fail as invalid and, if the harness can inject them, for lack of capacity and
/// quota. After each, the token must not be found, and a launch with it must succeed.
pub(crate) async fn token_05_refused_launch_frees_its_token(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let mut too_much = config.clone();
    let size = cx.capabilities().max_user_data_bytes + 1;
    let data =
        UserData::new(vec![b'x'; size]).map_err(|error| Failure::KitError(error.to_string()))?;
    too_much.user_data = Some(data);
    let result = cx.provisioner().launch_instance(&too_much).await;
    cx.require_refused(
        "a launch with too much user data",
        result,
        ErrorKind::Invalid,
    )?;
    require_token_free(cx, &config, "a launch that was invalid").await?;
    for fault in [WireFault::Capacity, WireFault::Quota] {
        // Only if the harness can inject it: the promise was tested above in any case.
        let Ok(faults) = cx.faults(std::slice::from_ref(&fault)) else {
            continue;
        };
        let config = cx.config_with_token();
        faults.inject(WireOp::Launch, 1, fault.clone()).await;
        let result = cx.provisioner().launch_instance(&config).await;
        cx.clear_faults(&faults).await?;
        // Other clauses check the kind of the refusal; its effect must be none.
        if result.is_err_and(|error| error.effect() == Effect::None) {
            require_token_free(
                cx,
                &config,
                &format!("a launch refused by {}", crate::shown::in_words(&fault)),
            )
            .await?;
        }
    }
    Ok(Pass::Held)
}

/// Requires that the token of `config` is not found and that a launch with it succeeds.
async fn require_token_free(
    cx: &Context,
    config: &InstanceConfig,
    after: &str,
) -> Result<(), Failure> {
    if let Some(token) = &config.launch_token {
        cx.wait_for_consistent_reads().await;
        let record = cx.provisioner().find_launch(token).await;
        let record = record.map_err(|error| Failure::call_failed("find_launch", &error))?;
        require(record == LaunchRecord::NotFound, || {
            format!(
                "after {after} without effect, its token is reported as {}",
                crate::shown(&record)
            )
        })?;
    }
    let launched = cx.provisioner().launch_instance(config).await;
    let call = format!("the launch with the token of {after}");
    launched
        .map(drop)
        .map_err(|error| Failure::call_failed(&call, &error))
}

/// TOKEN-06: a backend must refuse a replay as spent once its instance is terminating, for as long
/// as declared; after that, have at most one live instance for the token, with a new id.
///
/// A manager that only retries must not bring a terminated instance back.
///
/// Replays a launch while its instance is terminating, when it is terminated, near the end of the
/// declared memory and after it. Times beyond the clause's limit in real time are left out.
pub(crate) async fn token_06_spent_token_launches_nothing(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = cx.launch_config(&config).await?;
    cx.wait_for_state(&first.id, CloudInstanceState::Running)
        .await?;
    let memory = cx.capabilities().token_after_terminate;
    let start = Instant::now();
    let remembered_until = start + memory;
    cx.terminate(&first.id).await?;
    if memory.is_zero() {
        launch_at_most_one(cx, &config, &first.id).await?;
        cx.wait_until_terminated(&first.id).await?;
        let alive = launch_at_most_one(cx, &config, &first.id).await?;
        cx.require_count(alive).await?;
        return Ok(Pass::Weaker);
    }
    require_spent(cx, &config, remembered_until, "as it is being terminated").await?;
    cx.wait_until_terminated(&first.id).await?;
    let refused = require_spent(cx, &config, remembered_until, "once it is terminated").await?;
    if refused.is_some() {
        cx.require_count(0).await?;
    }
    let terminated_by = Instant::now();
    if cx.can_advance_time(memory) {
        let late = (memory / 10 * 9).saturating_sub(start.elapsed());
        cx.advance_time(late).await;
        require_spent(cx, &config, remembered_until, "near the end of its memory").await?;
        let beyond = terminated_by + memory + Duration::from_secs(1);
        cx.advance_time(beyond.saturating_duration_since(Instant::now()))
            .await;
        let alive = launch_at_most_one(cx, &config, &first.id).await?;
        cx.require_count(alive).await?;
    }
    Ok(Pass::Held)
}

/// Requires that a replay is refused as spent, and returns the refusal, or `None` if the token may be
/// forgotten by the time that the replay returns.
async fn require_spent(
    cx: &Context,
    config: &InstanceConfig,
    until: Instant,
    when: &str,
) -> Result<Option<ProvisionError>, Failure> {
    if Instant::now() >= until {
        return Ok(None);
    }
    let result = cx.provisioner().launch_instance(config).await;
    if Instant::now() >= until {
        return Ok(None);
    }
    let call = format!("a replay of a token {when}");
    let error = cx.require_refused(&call, result, ErrorKind::TokenSpent)?;
    require(error.effect() == Effect::None, || {
        format!("{call} is refused with an effect: {error}")
    })?;
    Ok(Some(error))
}

/// Launches with a token that may be forgotten: it must be refused as spent, or launch one instance with
/// a new id and no second one. Returns the number of instances that it launched.
async fn launch_at_most_one(
    cx: &Context,
    config: &InstanceConfig,
    old: &InstanceId,
) -> Result<usize, Failure> {
    match cx.provisioner().launch_instance(config).await {
        Ok(info) => {
            require(info.id != *old, || {
                format!("the token of the terminated {old} returned it again")
            })?;
            require_replay(cx.provisioner(), config, &info.id, "of a used token").await?;
            Ok(1)
        }
        Err(error) if error.kind() == ErrorKind::TokenSpent => Ok(0),
        Err(error) => Err(Failure::call_failed("a launch with a used token", &error)),
    }
}

/// TOKEN-07: a backend must recognize a token in every handle on the account, not only in the one
/// that launched.
///
/// Two replicas of a manager share an account and no memory.
///
/// Opens the second handle before the launch, replays through it, and requires a conflict for
/// another config. Then launches through the second handle and replays through the first.
pub(crate) async fn token_07_second_handle_recognizes_token(cx: &Context) -> Outcome {
    let second = cx.open_handle().await;
    let config = cx.config_with_token();
    let first = cx.launch_config(&config).await?;
    require_replay(&*second, &config, &first.id, "through a second handle").await?;
    let changed = changed_config(cx, &config)?;
    require_conflict(
        cx,
        &*second,
        &changed,
        "another config through a second handle",
    )
    .await?;
    let config = cx.config_with_token();
    let theirs = second.launch_instance(&config).await;
    let theirs = theirs
        .map_err(|error| Failure::call_failed("launch_instance of a second handle", &error))?;
    require_replay(
        cx.provisioner(),
        &config,
        &theirs.id,
        "of a second handle's launch",
    )
    .await?;
    cx.require_count(2).await?;
    Ok(Pass::Held)
}

/// TOKEN-08: a backend must recognize a token after every handle was dropped and a new one was
/// opened.
///
/// Tokens exist because processes crash.
///
/// Launches through a handle that is dropped, opens another one, replays the launch and tries the
/// token with another config.
pub(crate) async fn token_08_restarted_process_recognizes_token(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = {
        let lost = cx.open_handle().await;
        let launched = lost.launch_instance(&config).await;
        launched.map_err(|error| Failure::call_failed("launch_instance", &error))?
    };
    let reopened = cx.open_handle().await;
    require_replay(&*reopened, &config, &first.id, "after a restart").await?;
    let changed = changed_config(cx, &config)?;
    require_conflict(cx, &*reopened, &changed, "another config after a restart").await?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// TOKEN-16: a backend must return the live instances for a replay through a handle with other launch
/// options, and launch nothing more.
///
/// Options change with a deployment, and a retry after it must not cost a second instance.
///
/// Launches one instance and a batch of two, and replays both through a handle with other options. Then
/// launches through that handle and replays through the first.
pub(crate) async fn token_16_options_do_not_matter_to_a_replay(cx: &Context) -> Outcome {
    let two = NonZeroU32::MIN.saturating_add(1);
    let other = cx.open_handle_with_other_options().await;
    let handles: [(&dyn InstanceProvisioner, &dyn InstanceProvisioner); 2] =
        [(cx.provisioner(), &*other), (&*other, cx.provisioner())];
    for (first, second) in handles {
        let config = cx.config_with_token();
        let launched = first.launch_instance(&config).await;
        let launched = launched.map_err(|error| Failure::call_failed("launch_instance", &error))?;
        let batch_config = cx.config_with_token();
        let batch = first.launch_instances(&batch_config, two).await;
        let batch = batch.map_err(|error| Failure::call_failed("launch_instances", &error))?;
        cx.wait_for_consistent_reads().await;
        require_replay(second, &config, &launched.id, "with other options").await?;
        let again = second.launch_instances(&batch_config, two).await;
        let again = again.map_err(|error| {
            Failure::call_failed("a replay of a batch with other options", &error)
        })?;
        let ids = |infos: &[InstanceInfo]| -> BTreeSet<InstanceId> {
            infos.iter().map(|info| info.id.clone()).collect()
        };
        require(ids(&again) == ids(&batch), || {
            let (first, again) = (names(&batch), names(&again));
            format!("a batch launched {first}, but its replay with other options returned {again}")
        })?;
    }
    cx.require_count(6).await?;
    Ok(Pass::Held)
}

/// TOKEN-14: a backend must launch one instance for all concurrent launches with one token, through
/// one handle or several.
///
/// Retries overlap with the calls that they repeat.
///
/// Launches six times concurrently with one token, first through one handle and then through three.
/// A loser may get a conflict with a retry delay, and its retry must return the winner's instance.
pub(crate) async fn token_14_concurrent_launches_with_one_token(cx: &Context) -> Outcome {
    let own = cx.shared_provisioner();
    race(cx, &[Arc::clone(&own)]).await?;
    cx.require_count(1).await?;
    race(cx, &[own, cx.open_handle().await, cx.open_handle().await]).await?;
    cx.require_count(2).await?;
    Ok(Pass::Held)
}

/// Launches six times concurrently with one token and requires one instance. A launch may fail as a
/// conflict with a retry delay; its retry must return the instance.
async fn race(cx: &Context, handles: &[Arc<dyn InstanceProvisioner>]) -> Result<(), Failure> {
    let config = cx.config_with_token();
    let racers: Vec<_> = handles.iter().cycle().take(6).collect();
    let calls = racers.iter().map(|handle| handle.launch_instance(&config));
    let (mut winner, mut to_retry) = (None::<InstanceId>, Vec::new());
    for (handle, result) in racers.iter().zip(join_all(calls).await) {
        let id = match result {
            Ok(info) => info.id,
            Err(error)
                if error.kind() == ErrorKind::Conflict && error.retry() != RetryAdvice::Never =>
            {
                to_retry.push(handle);
                continue;
            }
            Err(error) => {
                return Err(Failure::call_failed(
                    "a launch concurrent with others of its token",
                    &error,
                ));
            }
        };
        let one = winner.get_or_insert_with(|| id.clone());
        require(*one == id, || {
            format!(
                "concurrent launches with one token through {} handles returned {one} and {id}",
                handles.len()
            )
        })?;
    }
    let none = || Failure::violated("none of the concurrent launches with one token succeeded");
    let winner = winner.ok_or_else(none)?;
    for handle in to_retry {
        require_replay(&***handle, &config, &winner, "after concurrent launches").await?;
    }
    Ok(())
}
