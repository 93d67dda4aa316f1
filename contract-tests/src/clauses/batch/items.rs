//! Batches of existing instances: one result for each requested id, in the order of the ids, even if some
//! items fail.
//!
//! BATCH-05 to BATCH-07 put an unknown id between the ids of existing instances, BATCH-05 also repeats an
//! id, and BATCH-08 uses more ids than one native batch holds. In BATCH-09 and BATCH-10, capacity or state
//! prevent the change of a part of the items.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    Effect, ErrorKind, InstanceId, ProvisionError, Result,
};

use super::launch;
use crate::{Context, Failure, NotApplicable, Outcome, Pass, require};

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
            format!(
                "{id} was requested, but the result is {}",
                crate::shown(result)
            )
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
            format!("the start of {id} returned {}", crate::shown(result))
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
            format!(
                "{id} was requested, but the result is {}",
                crate::shown(result)
            )
        })?;
    }
    let results = cx.provisioner().terminate_instances(&requested).await;
    require_result_for_each(cx, "terminate_instances", &requested, &results)?;
    for id in &launched {
        cx.wait_until_terminated(id).await?;
    }
    Ok(Pass::Held)
}

/// BATCH-09: a backend must start every item of a batch for which there is capacity, and leave the
/// others stopped.
///
/// One instance without capacity must not keep a fleet stopped. Needs: external actor.
///
/// Stops three instances, leaves capacity for two, and starts all three with one call. Two must run.
/// A refusal must be capacity without effect. When there is capacity again, the third must start, too.
pub(crate) async fn batch_09_starts_as_many_as_there_is_capacity_for(cx: &Context) -> Outcome {
    cx.require_applicable(NotApplicable::Capacity)?;
    let external_actor = cx.external_actor()?;
    let requested = cx.launch_many(3).await?;
    for id in &requested {
        cx.wait_for_state(id, Running).await?;
        cx.stop(id).await?;
    }
    for id in &requested {
        cx.wait_for_state(id, Stopped).await?;
    }
    cx.wait_for_consistent_reads().await;
    if !external_actor.limit_capacity(2).await {
        let reason = "the external actor cannot limit the capacity";
        return Err(Failure::NotRun(reason.to_owned()));
    }
    let results = cx.provisioner().start_instances(&requested).await;
    let running = cx
        .eventually("two of three started instances run", async || {
            let mut running = Vec::new();
            for id in &requested {
                if cx.describe(id).await?.state == Running {
                    running.push(id.clone());
                }
            }
            Ok((running.len() == 2).then_some(running))
        })
        .await;
    external_actor.reconnect().await;
    let running = running?;
    require(results.len() == requested.len(), || {
        format!("a start of three items returned {} results", results.len())
    })?;
    for (id, result) in requested.iter().zip(&results) {
        let Err(error) = result else { continue };
        let expected = error.kind() == ErrorKind::Capacity && error.effect() == Effect::None;
        require(expected, || {
            format!("the start of {id} without capacity must be refused as such: {error}")
        })?;
        require(!running.contains(id), || {
            format!("{id} runs, but its start was refused: {error}")
        })?;
    }
    for id in requested.iter().filter(|id| !running.contains(id)) {
        cx.wait_for_state(id, Stopped).await?;
    }
    cx.wait_for_consistent_reads().await;
    for result in cx.provisioner().start_instances(&requested).await {
        result.map_err(|error| Failure::call_failed("a start with capacity", &error))?;
    }
    for id in &requested {
        cx.wait_for_state(id, Running).await?;
    }
    Ok(Pass::Held)
}

/// BATCH-10: a backend must stop and start the items of a batch whose state allows it although the
/// state of others does not.
///
/// An instance that was terminated a moment ago must not keep a fleet running.
///
/// Stops and then starts two running instances with a terminated one between them, which must be
/// refused as wrong state, or as not found if no record is kept.
pub(crate) async fn batch_10_changes_items_whose_state_allows_it(cx: &Context) -> Outcome {
    let good = cx.launch_many(2).await?;
    let ended = cx.launch_terminated().await?.id;
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    let requested = [good[0].clone(), ended.clone(), good[1].clone()];
    let stopped = cx.provisioner().stop_instances(&requested).await;
    require_only_refused("stop_instances", &requested, &stopped, &ended)?;
    for id in &good {
        cx.wait_for_state(id, Stopped).await?;
    }
    cx.wait_for_consistent_reads().await;
    let started = cx.provisioner().start_instances(&requested).await;
    require_only_refused("start_instances", &requested, &started, &ended)?;
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    Ok(Pass::Held)
}

/// Requires that the item `ended` is refused as wrong state or not found, without effect, and that
/// the others succeed.
fn require_only_refused<T: std::fmt::Debug + 'static>(
    call: &str,
    requested: &[InstanceId],
    results: &[Result<T>],
    ended: &InstanceId,
) -> Result<(), Failure> {
    require(results.len() == requested.len(), || {
        format!("{call} returned {} results", results.len())
    })?;
    for (id, result) in requested.iter().zip(results) {
        let right = match result {
            Ok(_) => id != ended,
            Err(error) => {
                let kinds = [ErrorKind::WrongState, ErrorKind::NotFound];
                id == ended && kinds.contains(&error.kind()) && error.effect() == Effect::None
            }
        };
        require(right, || {
            let result = crate::shown::shown_result(result);
            format!("{call} with the terminated {ended} returned {result} for {id}")
        })?;
    }
    Ok(())
}

/// Inserts an unknown id after the first of `ids`.
fn with_unknown(cx: &Context, mut ids: Vec<InstanceId>) -> Vec<InstanceId> {
    ids.insert(1, cx.harness().unknown_id());
    ids
}

/// Requires a result for each item in order: not found for the unknown one, success for the others.
fn require_result_for_each<T: std::fmt::Debug + 'static>(
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
            format!(
                "{call} must return {wanted} for {id}, but returned {}",
                crate::shown::shown_result(result)
            )
        })?;
    }
    Ok(())
}
