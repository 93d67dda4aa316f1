//! Batches: one result for each item, and every launched instance is reported.
//!
//! This file tests batch launches: the number of instances, the token, and what remains of a batch that
//! fails in part. [`items`] tests the other batch calls, and [`single`] compares them with single calls. [`content`]
//! tests what a batch launches, [`partial`] batches of which a part was terminated, [`states`] items in every state, and [`interrupted`] batches that are dropped and
//! processes that die.

mod content;
mod interrupted;
mod items;
mod partial;
mod single;
mod states;

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright::{
    BatchLaunch,
    CloudInstanceState::{Pending, Running},
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, ProvisionError, Result,
};

pub(super) use content::require_found as require_batch_found;
pub(crate) use content::{
    batch_13_every_field_reaches_every_instance, batch_14_empty_batches_do_nothing,
    batch_17_token_finds_the_whole_batch,
};
pub(crate) use interrupted::{
    batch_18_dropped_batches_can_be_repeated, batch_19_crash_at_every_call_of_a_batch,
};
pub(crate) use items::{
    batch_05_describes_item_by_item, batch_06_terminates_item_by_item,
    batch_07_stops_and_starts_item_by_item, batch_08_more_than_one_native_batch,
    batch_09_starts_as_many_as_there_is_capacity_for, batch_10_changes_items_whose_state_allows_it,
};
pub(crate) use partial::batch_20_token_lives_with_its_last_instance;
pub(crate) use single::{
    batch_11_describes_like_single_calls, batch_12_terminations_have_their_effect,
};
pub(crate) use states::{
    batch_15_large_batches_describe_like_single_calls, batch_16_items_in_every_state,
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
            let tags = crate::shown(&info.tags);
            format!("{} of a batch has only the tags {tags}", info.id)
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
/// Replays a batch of three with the counts four and one, through the launching handle and through another
/// one, which has only the cloud to know the count from. All must conflict without effect, and the three
/// instances must still be there: in the list, and in descriptions by the other handle.
pub(crate) async fn batch_03_other_count_is_a_conflict(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = launch(cx, &config, COUNT).await?;
    let other = cx.open_handle().await;
    for handle in [cx.provisioner(), &*other] {
        for count in [COUNT.saturating_add(1), NonZeroU32::MIN] {
            let result = handle.launch_instances(&config, count).await;
            let call = format!("a launch of {count} with the token of a batch of {COUNT}");
            let error = cx.require_refused(&call, result, ErrorKind::TokenConflict)?;
            require(error.effect() == Effect::None, || {
                format!("{call} must fail without effect, but: {error}")
            })?;
        }
    }
    let list = cx.require_count(first.len()).await?;
    require(ids(&list) == ids(&first), || {
        let (first, now) = (names(&first), names(&list));
        format!("a batch launched {first}; after refused replays there are {now}")
    })?;
    for id in ids(&first) {
        let described = other.describe_instance(id).await;
        let status =
            described.map_err(|error| Failure::call_failed("describe_instance", &error))?;
        require(!status.state.is_ending(), || {
            format!("{id} of a batch is {} after refused replays", status.state)
        })?;
    }
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
