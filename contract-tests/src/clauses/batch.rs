//! Batches: a result for each item, and nothing launched that is not told.

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright::{
    BatchLaunch,
    CloudInstanceState::{Pending, Running, Stopped},
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, ProvisionError, Result,
};

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, context::names, require};

/// How many a batch of these clauses launches.
const COUNT: NonZeroU32 = NonZeroU32::new(3).unwrap();

pub(crate) async fn batch_01_launches_requested_number(cx: &Context) -> Outcome {
    let config = cx.config_with_tags(&[("kit-one", "1")])?;
    let launched = launch(cx, &config, COUNT).await?;
    for info in &launched {
        require(matches!(info.state, Pending | Running), || {
            format!("a batch launch answered {} as {}", info.id, info.state)
        })?;
    }
    let list = cx.require_count(launched.len()).await?;
    require(ids(&list) == ids(&launched), || {
        let (answered, listed) = (names(&launched), names(&list));
        format!("a batch launch answered {answered}, and {listed} are listed")
    })?;
    for info in &list {
        require(info.tags.contains_all(&config.tags), || {
            format!("{} of a batch has only the tags {:?}", info.id, info.tags)
        })?;
    }
    Ok(Pass::Held)
}

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
            format!("a batch launched {first}, and its replay answers {again}")
        })?;
    }
    cx.require_count(first.len()).await?;
    Ok(Pass::Held)
}

pub(crate) async fn batch_03_other_count_is_a_conflict(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = launch(cx, &config, COUNT).await?;
    for count in [COUNT.saturating_add(1), NonZeroU32::MIN] {
        let answer = cx.provisioner().launch_instances(&config, count).await;
        let call = format!("a launch of {count} with the token of a batch of {COUNT}");
        let error = cx.require_refused(&call, answer, ErrorKind::TokenConflict)?;
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

pub(crate) async fn batch_04_partial_launch_is_reported_or_undone(cx: &Context) -> Outcome {
    let (config, error) = launch_short_of_machines(cx).await?;
    let (survivors, declared) = (error.survivors(), cx.capabilities().batch_launch);
    match declared {
        BatchLaunch::AllOrNothing => {
            let nothing = survivors.is_empty() && error.effect() == Effect::None;
            require(nothing, || {
                format!("all or nothing is declared, and a batch failed in part: {error}")
            })?;
            cx.require_count(0).await?;
        }
        BatchLaunch::Partial => {
            cx.settle_reads().await;
            let list = cx.list(&cx.filter()).await?;
            require(ids(&list) == ids(survivors), || {
                let (told, there) = (names(survivors), names(&list));
                format!("a batch failed and told of [{told}], and there are [{there}]")
            })?;
            let effect = survivors.is_empty() || error.effect() == Effect::Done;
            require(effect, || {
                format!("a part was launched, and the error denies it: {error}")
            })?;
        }
    }
    let whole = launch(cx, &config, COUNT).await?;
    require(ids(&whole).is_superset(&ids(survivors)), || {
        let (now, before) = (names(&whole), names(survivors));
        format!("a batch left {before}, and its replay answers {now} without them")
    })?;
    cx.require_count(whole.len()).await?;
    Ok(Pass::Held)
}

/// A batch launch when there are machines for less than all of it: what was asked for, and how it
/// failed. Afterwards there is room again.
async fn launch_short_of_machines(
    cx: &Context,
) -> Result<(InstanceConfig, ProvisionError), Failure> {
    let failed =
        |answer| cx.require_refused("a batch beyond capacity", answer, ErrorKind::Capacity);
    let whole = u64::from(COUNT.get());
    if let Some(external_actor) = cx.harness().external_actor() {
        if external_actor.limit_capacity(whole - 1).await {
            let config = cx.config_with_token();
            let answer = cx.provisioner().launch_instances(&config, COUNT).await;
            external_actor.reconnect().await;
            return Ok((config, failed(answer)?));
        }
    }
    // Where a batch is several calls, the last of them meets the fault; else the only one does.
    let faults = cx.faults(&[WireFault::Capacity])?;
    for nth in [whole, 1] {
        faults
            .inject(WireOp::Launch, nth, WireFault::Capacity)
            .await;
        let config = cx.config_with_token();
        let answer = cx.provisioner().launch_instances(&config, COUNT).await;
        if faults.clear().await {
            return Ok((config, failed(answer)?));
        }
        for info in answer.map_err(|error| Failure::call_failed("launch_instances", &error))? {
            cx.terminate(&info.id).await?;
            cx.wait_until_terminated(&info.id).await?;
        }
    }
    let why = "no launch of a batch met the fault";
    Err(Failure::NotRun(why.to_owned()))
}

pub(crate) async fn batch_05_describes_item_by_item(cx: &Context) -> Outcome {
    let mut asked = cx.launch_many(3).await?;
    cx.settle_reads().await;
    // Neither in the order of launch nor in that of the ids, one unknown, one asked for twice.
    asked.sort();
    asked.reverse();
    asked.insert(1, cx.harness().unknown_id());
    asked.push(asked[0].clone());
    let answers = cx.provisioner().describe_instances(&asked).await;
    each_answered(cx, "describe_instances", &asked, &answers)?;
    for (id, answer) in asked.iter().zip(&answers) {
        let described = answer.as_ref().map(|status| &status.id);
        require(described.is_err() || described.ok() == Some(id), || {
            format!("{id} was asked for, and answered is {answer:?}")
        })?;
    }
    Ok(Pass::Held)
}

pub(crate) async fn batch_06_terminates_item_by_item(cx: &Context) -> Outcome {
    let asked = with_unknown(cx, cx.launch_many(2).await?);
    let bystander = cx.launch().await?.id;
    let answers = cx.provisioner().terminate_instances(&asked).await;
    each_answered(cx, "terminate_instances", &asked, &answers)?;
    for (id, answer) in asked.iter().zip(&answers) {
        if answer.is_ok() {
            cx.wait_until_terminated(id).await?;
        }
    }
    cx.settle_reads().await;
    let state = cx.describe(&bystander).await?.state;
    require(!state.is_ending(), || {
        format!("{bystander} is {state}, and was not in the batch")
    })?;
    Ok(Pass::Held)
}

pub(crate) async fn batch_07_stops_and_starts_item_by_item(cx: &Context) -> Outcome {
    let good = cx.launch_many(2).await?;
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    let asked = with_unknown(cx, good.clone());
    let answers = cx.provisioner().stop_instances(&asked).await;
    each_answered(cx, "stop_instances", &asked, &answers)?;
    for id in &good {
        cx.wait_for_state(id, Stopped).await?;
    }
    let answers = cx.provisioner().start_instances(&asked).await;
    each_answered(cx, "start_instances", &asked, &answers)?;
    for (id, answer) in asked.iter().zip(&answers) {
        let started = answer.as_ref().map(|info| &info.id);
        require(started.is_err() || started.ok() == Some(id), || {
            format!("{id} was to be started, and answered is {answer:?}")
        })?;
    }
    for id in &good {
        cx.wait_for_state(id, Running).await?;
    }
    Ok(Pass::Held)
}

pub(crate) async fn batch_08_more_than_one_native_batch(cx: &Context) -> Outcome {
    let native = cx.capabilities().batch_size.get();
    // A backend without a batch size of its own declares a huge one; no caller asks for that many.
    let most = native.saturating_add(2).min(10_000);
    let launched = if cx.can_launch(most) {
        let count = u32::try_from(most).ok().and_then(NonZeroU32::new);
        let count = count.ok_or_else(|| Failure::KitError(format!("no batch of {most}")))?;
        let launched = launch(cx, &cx.config(), count).await?;
        launched.into_iter().map(|info| info.id).collect()
    } else {
        cx.launch_many(2).await?
    };
    // Where so many are not to be had, some are asked for again and again.
    let asked: Vec<_> = launched.iter().cycle().take(most).cloned().collect();
    cx.settle_reads().await;
    let answers = cx.provisioner().describe_instances(&asked).await;
    each_answered(cx, "describe_instances", &asked, &answers)?;
    for (id, answer) in asked.iter().zip(&answers) {
        let described = answer.as_ref().map(|status| &status.id);
        require(described.ok() == Some(id), || {
            format!("{id} was asked for, and answered is {answer:?}")
        })?;
    }
    let answers = cx.provisioner().terminate_instances(&asked).await;
    each_answered(cx, "terminate_instances", &asked, &answers)?;
    for id in &launched {
        cx.wait_until_terminated(id).await?;
    }
    Ok(Pass::Held)
}

/// Launches a batch that must succeed: as many as asked for, all different.
async fn launch(
    cx: &Context,
    config: &InstanceConfig,
    count: NonZeroU32,
) -> Result<Vec<InstanceInfo>, Failure> {
    let answer = cx.provisioner().launch_instances(config, count).await;
    let launched = answer.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    let asked = usize::try_from(count.get()).unwrap_or(usize::MAX);
    let different = ids(&launched).len();
    require(launched.len() == asked && different == asked, || {
        let answered = launched.len();
        format!("{count} were to be launched; {answered} are answered, {different} different ones")
    })?;
    Ok(launched)
}

fn ids(list: &[InstanceInfo]) -> BTreeSet<&InstanceId> {
    list.iter().map(|info| &info.id).collect()
}

/// These with an unknown one in their middle.
fn with_unknown(cx: &Context, mut ids: Vec<InstanceId>) -> Vec<InstanceId> {
    ids.insert(1, cx.harness().unknown_id());
    ids
}

/// Demands a result for each item in order: not found for the unknown one, success for the others.
fn each_answered<T: std::fmt::Debug>(
    cx: &Context,
    call: &str,
    asked: &[InstanceId],
    answers: &[Result<T>],
) -> Result<(), Failure> {
    require(answers.len() == asked.len(), || {
        let (asked, answered) = (asked.len(), answers.len());
        format!("{call} of {asked} items has {answered} answers")
    })?;
    let unknown = cx.harness().unknown_id();
    for (id, answer) in asked.iter().zip(answers) {
        let wanted = (*id == unknown).then_some(ErrorKind::NotFound);
        let failed = answer.as_ref().err().map(ProvisionError::kind);
        require(failed == wanted, || {
            let wanted = wanted.map_or("success".to_owned(), |kind| kind.to_string());
            format!("{call} must answer {wanted} for {id}, but: {answer:?}")
        })?;
    }
    Ok(())
}
