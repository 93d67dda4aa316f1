//! Batches: one result for each item, and every launched instance is reported.
//!
//! BATCH-01 to BATCH-04 are about batch launches: the number of instances, the token, and what
//! remains of a batch that fails in part. BATCH-05 to BATCH-08 are about the other batch calls, which
//! must return one result for each requested id, in the order of the ids, even if some items fail.
//! BATCH-05 to BATCH-07 put an unknown id between the ids of existing instances, BATCH-05 also
//! repeats an id, and BATCH-08 uses more ids than one native batch holds.

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright::{
    BatchLaunch,
    CloudInstanceState::{Pending, Running, Stopped},
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, ProvisionError, Result,
};

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, context::names, require};

/// How many instances a batch of these clauses launches.
const COUNT: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// BATCH-01: a backend must launch exactly the requested number of instances, all different, all
/// with their tags.
///
/// One call for a batch keeps a fleet below its rate limits.
///
/// Launches three instances with a tag and compares ids, states and tags between the result and the
/// list.
pub(crate) async fn batch_01_launches_requested_number(cx: &Context) -> Outcome {
    let config = cx.config_with_tags(&[("kit-one", "1")])?;
    let launched = launch(cx, &config, COUNT).await?;
    for info in &launched {
        require(matches!(info.state, Pending | Running), || {
            format!("a batch launch returned {} as {}", info.id, info.state)
        })?;
    }
    let list = cx.require_count(launched.len()).await?;
    require(ids(&list) == ids(&launched), || {
        let (returned, listed) = (names(&launched), names(&list));
        format!("a batch launch returned {returned}, but {listed} are listed")
    })?;
    for info in &list {
        require(info.tags.contains_all(&config.tags), || {
            format!("{} of a batch has only the tags {:?}", info.id, info.tags)
        })?;
    }
    Ok(Pass::Held)
}

/// BATCH-02: a backend must return the same instances for a replay of a batch, and launch nothing
/// more.
///
/// The response to a batch can be lost like any other.
///
/// Replays a batch of three through the launching handle and through another one.
pub(crate) async fn batch_02_token_covers_the_whole_batch(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = launch(cx, &config, COUNT).await?;
    let other = cx.open_handle().await;
    for handle in [cx.provisioner(), &*other] {
        let again = handle.launch_instances(&config, COUNT).await;
        let again =
            again.map_err(|error| Failure::call_failed("a replay of a batch launch", &error))?;
        let same = again.len() == first.len() && ids(&again) == ids(&first);
        require(same, || {
            let (first, again) = (names(&first), names(&again));
            format!("a batch launched {first}, but its replay returned {again}")
        })?;
    }
    cx.require_count(first.len()).await?;
    Ok(Pass::Held)
}

/// BATCH-03: a backend must refuse the token of a batch with another count as a token conflict.
///
/// Another count is another request.
///
/// Replays a batch of three with the counts four and one. Both must conflict without effect, and
/// the three instances must still be there.
pub(crate) async fn batch_03_other_count_is_a_conflict(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = launch(cx, &config, COUNT).await?;
    for count in [COUNT.saturating_add(1), NonZeroU32::MIN] {
        let result = cx.provisioner().launch_instances(&config, count).await;
        let call = format!("a launch of {count} with the token of a batch of {COUNT}");
        let error = cx.require_refused(&call, result, ErrorKind::TokenConflict)?;
        require(error.effect() == Effect::None, || {
            format!("{call} must fail without effect, but: {error}")
        })?;
    }
    let list = cx.require_count(first.len()).await?;
    require(ids(&list) == ids(&first), || {
        let (first, now) = (names(&first), names(&list));
        format!("a batch launched {first}; after refused replays there are {now}")
    })?;
    Ok(Pass::Held)
}

/// BATCH-04: a backend must launch nothing of a batch that it cannot launch completely, or return
/// the surviving instances in the error, as declared.
///
/// Survivors that are not reported are leaks. Needs: external actor or fault: capacity.
///
/// Leaves capacity for two of three instances, or fails the last native launch. Compares the
/// survivors in the error with the list, then replays: the survivors must be part of the complete
/// batch.
pub(crate) async fn batch_04_partial_launch_is_reported_or_undone(cx: &Context) -> Outcome {
    let (config, error) = launch_beyond_capacity(cx).await?;
    let (survivors, declared) = (error.survivors(), cx.capabilities().batch_launch);
    match declared {
        BatchLaunch::AllOrNothing => {
            let nothing = survivors.is_empty() && error.effect() == Effect::None;
            require(nothing, || {
                format!("all or nothing is declared, but a batch failed in part: {error}")
            })?;
            cx.require_count(0).await?;
        }
        BatchLaunch::Partial => {
            cx.wait_for_consistent_reads().await;
            let list = cx.list(&cx.filter()).await?;
            require(ids(&list) == ids(survivors), || {
                let (reported, listed) = (names(survivors), names(&list));
                format!("a batch failed and reported [{reported}], but [{listed}] exist")
            })?;
            let effect = survivors.is_empty() || error.effect() == Effect::Done;
            require(effect, || {
                format!("a part was launched, but the error has another effect: {error}")
            })?;
        }
    }
    let complete = launch(cx, &config, COUNT).await?;
    require(ids(&complete).is_superset(&ids(survivors)), || {
        let (now, before) = (names(&complete), names(survivors));
        format!("a batch left {before}, but its replay returned {now} without them")
    })?;
    cx.require_count(complete.len()).await?;
    Ok(Pass::Held)
}

/// Launches a batch for which the capacity is too small, and returns its config and its error.
/// Afterwards there is capacity again.
async fn launch_beyond_capacity(cx: &Context) -> Result<(InstanceConfig, ProvisionError), Failure> {
    let failed =
        |result| cx.require_refused("a batch beyond capacity", result, ErrorKind::Capacity);
    let count = u64::from(COUNT.get());
    if let Some(external_actor) = cx.harness().external_actor() {
        if external_actor.limit_capacity(count - 1).await {
            let config = cx.config_with_token();
            let result = cx.provisioner().launch_instances(&config, COUNT).await;
            external_actor.reconnect().await;
            return Ok((config, failed(result)?));
        }
    }
    // If a batch is several native calls, the fault is injected into the last of them. If it is one
    // call, that fault is not used, and the second round injects it into the only call.
    let faults = cx.faults(&[WireFault::Capacity])?;
    for nth in [count, 1] {
        faults
            .inject(WireOp::Launch, nth, WireFault::Capacity)
            .await;
        let config = cx.config_with_token();
        let result = cx.provisioner().launch_instances(&config, COUNT).await;
        if faults.clear().await {
            return Ok((config, failed(result)?));
        }
        for info in result.map_err(|error| Failure::call_failed("launch_instances", &error))? {
            cx.terminate(&info.id).await?;
            cx.wait_until_terminated(&info.id).await?;
        }
    }
    let reason = "the fault was injected into no launch of a batch";
    Err(Failure::NotRun(reason.to_owned()))
}

/// BATCH-05: a backend must return a batch of descriptions item by item in the requested order,
/// including missing and repeated ids.
///
/// One missing instance must not hide five hundred others.
///
/// Describes three instances in reverse order of their ids, with an unknown id between them and the
/// first id repeated at the end.
pub(crate) async fn batch_05_describes_item_by_item(cx: &Context) -> Outcome {
    let mut requested = cx.launch_many(3).await?;
    cx.wait_for_consistent_reads().await;
    // Neither in the order of launch nor in that of the ids, one unknown, one repeated.
    requested.sort();
    requested.reverse();
    requested.insert(1, cx.harness().unknown_id());
    requested.push(requested[0].clone());
    let results = cx.provisioner().describe_instances(&requested).await;
    require_result_for_each(cx, "describe_instances", &requested, &results)?;
    for (id, result) in requested.iter().zip(&results) {
        let described = result.as_ref().map(|status| &status.id);
        require(described.is_err() || described.ok() == Some(id), || {
            format!("{id} was requested, but the result is {result:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// BATCH-06: a backend must terminate the valid items of a batch although others fail.
///
/// One bad id must not keep a fleet running.
///
/// Terminates two instances with an unknown id between them, and requires that a third instance,
/// which was not in the batch, still exists.
pub(crate) async fn batch_06_terminates_item_by_item(cx: &Context) -> Outcome {
    let requested = with_unknown(cx, cx.launch_many(2).await?);
    let not_in_batch = cx.launch().await?.id;
    let results = cx.provisioner().terminate_instances(&requested).await;
    require_result_for_each(cx, "terminate_instances", &requested, &results)?;
    for (id, result) in requested.iter().zip(&results) {
        if result.is_ok() {
            cx.wait_until_terminated(id).await?;
        }
    }
    cx.wait_for_consistent_reads().await;
    let state = cx.describe(&not_in_batch).await?.state;
    require(!state.is_ending(), || {
        format!("{not_in_batch} is {state}, but was not in the batch")
    })?;
    Ok(Pass::Held)
}

/// BATCH-07: a backend must stop and start the valid items of a batch although others fail.
///
/// The same holds as for terminating.
///
/// Stops and then starts two instances with an unknown id between them, and waits until both have
/// changed their state each time.
pub(crate) async fn batch_07_stops_and_starts_item_by_item(cx: &Context) -> Outcome {
    let good = cx.launch_many(2).await?;
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    let requested = with_unknown(cx, good.clone());
    let results = cx.provisioner().stop_instances(&requested).await;
    require_result_for_each(cx, "stop_instances", &requested, &results)?;
    for id in &good {
        cx.wait_for_state(id, Stopped).await?;
    }
    let results = cx.provisioner().start_instances(&requested).await;
    require_result_for_each(cx, "start_instances", &requested, &results)?;
    for (id, result) in requested.iter().zip(&results) {
        let started = result.as_ref().map(|info| &info.id);
        require(started.is_err() || started.ok() == Some(id), || {
            format!("the start of {id} returned {result:?}")
        })?;
    }
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    Ok(Pass::Held)
}

/// BATCH-08: a backend must accept batches that are larger than the cloud's own.
///
/// Callers do not know a cloud's batch size.
///
/// Describes and terminates two more ids than a native batch has, at most 10,000. If the clause may
/// not launch that many, ids are repeated.
pub(crate) async fn batch_08_more_than_one_native_batch(cx: &Context) -> Outcome {
    let native = cx.capabilities().batch_size.get();
    // A backend without a batch size of its own declares a huge one.
    let most = native.saturating_add(2).min(10_000);
    let launched = if cx.can_launch(most) {
        let count = u32::try_from(most).ok().and_then(NonZeroU32::new);
        let count = count.ok_or_else(|| Failure::KitError(format!("no batch of {most}")))?;
        let launched = launch(cx, &cx.config(), count).await?;
        launched.into_iter().map(|info| info.id).collect()
    } else {
        cx.launch_many(2).await?
    };
    let requested: Vec<_> = launched.iter().cycle().take(most).cloned().collect();
    cx.wait_for_consistent_reads().await;
    let results = cx.provisioner().describe_instances(&requested).await;
    require_result_for_each(cx, "describe_instances", &requested, &results)?;
    for (id, result) in requested.iter().zip(&results) {
        let described = result.as_ref().map(|status| &status.id);
        require(described.ok() == Some(id), || {
            format!("{id} was requested, but the result is {result:?}")
        })?;
    }
    let results = cx.provisioner().terminate_instances(&requested).await;
    require_result_for_each(cx, "terminate_instances", &requested, &results)?;
    for id in &launched {
        cx.wait_until_terminated(id).await?;
    }
    Ok(Pass::Held)
}

/// Launches a batch that must succeed, with as many different instances as requested.
async fn launch(
    cx: &Context,
    config: &InstanceConfig,
    count: NonZeroU32,
) -> Result<Vec<InstanceInfo>, Failure> {
    let result = cx.provisioner().launch_instances(config, count).await;
    let launched = result.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    let requested = usize::try_from(count.get()).unwrap_or(usize::MAX);
    let different = ids(&launched).len();
    require(
        launched.len() == requested && different == requested,
        || {
            let returned = launched.len();
            format!(
                "{count} instances were requested; {returned} were returned, {different} of them different"
            )
        },
    )?;
    Ok(launched)
}

/// Returns the ids of a list.
fn ids(list: &[InstanceInfo]) -> BTreeSet<&InstanceId> {
    list.iter().map(|info| &info.id).collect()
}

/// Inserts an unknown id after the first of `ids`.
fn with_unknown(cx: &Context, mut ids: Vec<InstanceId>) -> Vec<InstanceId> {
    ids.insert(1, cx.harness().unknown_id());
    ids
}

/// Requires a result for each item in order: not found for the unknown one, success for the others.
fn require_result_for_each<T: std::fmt::Debug>(
    cx: &Context,
    call: &str,
    requested: &[InstanceId],
    results: &[Result<T>],
) -> Result<(), Failure> {
    require(results.len() == requested.len(), || {
        let (requested, returned) = (requested.len(), results.len());
        format!("{call} of {requested} items returned {returned} results")
    })?;
    let unknown = cx.harness().unknown_id();
    for (id, result) in requested.iter().zip(results) {
        let wanted = (*id == unknown).then_some(ErrorKind::NotFound);
        let failed = result.as_ref().err().map(ProvisionError::kind);
        require(failed == wanted, || {
            let wanted = wanted.map_or("success".to_owned(), |kind| kind.to_string());
            format!("{call} must return {wanted} for {id}, but returned {result:?}")
        })?;
    }
    Ok(())
}
