//! Stop: the machine is released, everything else is kept.
//!
//! The clauses compare every field of an instance before and after a stop, check with the oracle that
//! the machine is released and the disk is kept, and stop instances that are stopped, terminated or unknown.

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceId, Market, PlacementField, PublicAddress,
};
use tokio::time::Instant;

pub(crate) use super::bystanders::stop_08_affects_only_its_targets;
use crate::{
    Context, Failure, Oracle, Outcome, Pass, Truth, require,
    shown::gigabytes,
    steady::{differences, when_stopped},
};

/// STOP-01: a backend must stop an instance: it becomes stopping, then stopped.
///
/// An instance that does not stop is billed like a running one.
///
/// Polls after the stop: running is legal only within the consistency window, an ending state
/// never. Then waits and requires that the instance has stayed stopped.
pub(crate) async fn stop_01_reaches_stopped(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    cx.stop(&id).await?;
    let (accepted, window) = (Instant::now(), cx.capabilities().consistency_window);
    cx.eventually(&format!("{id} is stopped"), async || {
        let may_lag = accepted.elapsed() <= window;
        let state = cx.describe(&id).await?.state;
        let is_allowed = match state {
            CloudInstanceState::Running => may_lag,
            // An unknown native state is pending, too.
            CloudInstanceState::Pending
            | CloudInstanceState::Stopping
            | CloudInstanceState::Stopped => true,
            CloudInstanceState::Terminating | CloudInstanceState::Terminated => false,
        };
        require(is_allowed, || {
            format!("{id} is {state} after its stop was accepted; it must be stopping or stopped")
        })?;
        Ok((state == CloudInstanceState::Stopped).then_some(()))
    })
    .await?;
    let state = cx.consistent_info(&id).await?.state;
    require(state == CloudInstanceState::Stopped, || {
        format!("{id} was stopped and is {state} without a start")
    })?;
    Ok(Pass::Held)
}

/// STOP-02: a backend must accept a stop of a stopping or stopped instance and change nothing.
///
/// Retries repeat stops.
///
/// Stops an instance again while it is stopping and when it is stopped, and compares every field
/// before and after.
pub(crate) async fn stop_02_stopping_again_changes_nothing(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    cx.stop(&id).await?;
    stop_again(cx, &id, "stopping").await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let before = cx.consistent_info(&id).await?;
    stop_again(cx, &id, "stopped").await?;
    cx.require_unchanged("a second stop", &before).await?;
    Ok(Pass::Held)
}

/// Stops an instance that is stopping or stopped already.
async fn stop_again(cx: &Context, id: &InstanceId, state: &str) -> Result<(), Failure> {
    let result = cx.provisioner().stop_instance(id).await;
    result.map_err(|error| {
        Failure::violated(format!(
            "a stop of {id}, which is {state}, must succeed, but: {error}"
        ))
    })
}

/// STOP-03: a backend must not report the public address that a stopped instance had.
///
/// The old address may belong to somebody else by now.
///
/// Launches with a public address if that is declared, stops the instance and reads the address by
/// list and by description.
pub(crate) async fn stop_03_no_public_address_while_stopped(cx: &Context) -> Outcome {
    let mut config = cx.config();
    let offered = &cx.capabilities().placement;
    if offered.contains(&PlacementField::PublicAddress) {
        config.placement.public_address = Some(PublicAddress::Assigned);
    }
    let id = cx.launch_config(&config).await?.id;
    let had = cx
        .wait_for_state(&id, CloudInstanceState::Running)
        .await?
        .public_ip;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let listed = cx.consistent_info(&id).await?.public_ip;
    let described = cx.describe(&id).await?.public_ip;
    for (call, shown) in [("list_instances", listed), ("describe_instance", described)] {
        require(shown.is_none(), || {
            let (shown, had) = (crate::shown(&shown), crate::shown(&had));
            format!("{call} returns {shown} for {id}, which is stopped and had {had}")
        })?;
    }
    Ok(Pass::Held)
}

/// STOP-04: a backend must keep the id, the tags and the disk of an instance when it is stopped.
///
/// A stop is not a replacement.
///
/// Launches with a tag and a disk of 33 GB and compares every field before and after the stop,
/// except addresses. The oracle confirms the size of the disk.
pub(crate) async fn stop_04_id_tags_and_disk_are_kept(cx: &Context) -> Outcome {
    let mut config = cx.config();
    config.disk_size_gb = std::num::NonZeroU32::new(33);
    let named = config.tags.insert("kept", "through-a-stop");
    named.map_err(|error| Failure::KitError(error.to_string()))?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_state(&id, CloudInstanceState::Running).await?;
    let before = cx.consistent_info(&id).await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let after = cx.consistent_info(&id).await?;
    let changed = differences(&when_stopped(&before, &after), &after);
    require(changed.is_empty(), || {
        format!("after a stop, {id}: {}", changed.join("; "))
    })?;
    cx.require_count(1).await?;
    if let Some(oracle) = cx.harness().oracle() {
        let size = read_truth(cx, &*oracle, &id).await?.disk_size_gb;
        require(size == Some(33), || {
            let size = gigabytes(size);
            format!("{id} had a disk of 33 GB, and has {size} since it was stopped")
        })?;
    }
    Ok(Pass::Held)
}

/// STOP-05: a backend must release the machine of a stopped instance, even if it was powered off
/// before it was stopped.
///
/// Some clouds bill a machine that is only powered off. Needs: oracle.
///
/// Reads the oracle before and after a stop. If there is an external actor, it powers a second
/// instance off first; a stop must then still release the machine.
pub(crate) async fn stop_05_compute_is_released(cx: &Context) -> Outcome {
    let oracle = cx.oracle()?;
    let id = cx.launch_running().await?.id;
    if !read_truth(cx, &*oracle, &id).await?.holds_machine {
        return Err(Failure::KitError(format!(
            "the oracle reports no machine for {id}, which runs"
        )));
    }
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    require(!read_truth(cx, &*oracle, &id).await?.holds_machine, || {
        format!("{id} is stopped and still holds its machine")
    })?;
    let Ok(external_actor) = cx.external_actor() else {
        return Ok(Pass::Held);
    };
    // A machine that is powered off from inside or at the console may stay allocated and billed.
    let id = cx.launch_running().await?.id;
    external_actor.stop(&id).await;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    cx.stop(&id).await?;
    let what = format!("{id}, which was powered off, releases its machine when it is stopped");
    cx.eventually(&what, async || {
        let truth = read_truth(cx, &*oracle, &id).await?;
        Ok((!truth.holds_machine).then_some(()))
    })
    .await?;
    Ok(Pass::Held)
}

/// STOP-06: a backend must refuse to stop a terminating or terminated instance as wrong state, or
/// as not found if no record is kept.
///
/// A success would promise an instance that can be started again.
///
/// Stops an instance while it is terminating and when it is terminated, and requires that it stays
/// terminated.
pub(crate) async fn stop_06_terminated_instance_cannot_be_stopped(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let mut pass = Pass::Held;
    for state in ["terminating", "terminated"] {
        let result = cx.provisioner().stop_instance(&id).await;
        let call = format!("a stop of {id}, which is {state},");
        pass = pass.weaker(cx.require_refused_after_terminate(&call, result, since)?);
        cx.wait_until_terminated(&id).await?;
    }
    Ok(pass.weaker(cx.require_ending(&id, since).await?))
}

/// STOP-07: a backend must return not found for a stop of an id that no instance has.
///
/// A success would hide a wrong id.
///
/// Stops the harness's unknown id once.
pub(crate) async fn stop_07_unknown_id_is_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    let result = cx.provisioner().stop_instance(&id).await;
    let call = format!("a stop of {id}, which never existed,");
    cx.require_refused(&call, result, ErrorKind::NotFound)?;
    Ok(Pass::Held)
}

/// STOP-09: a backend must stop a spot instance like any other one, or refuse it without effect, and
/// never terminate it.
///
/// Some clouds cannot stop spot instances, and a caller that stops one wants to keep its disk.
///
/// Stops a spot instance, alone and in a batch with another one. It must become stopped and keep its id, tags
/// and disk, or run as before. The other instance must be stopped in both cases. If spot is not declared, a
/// launch of it must be refused.
pub(crate) async fn stop_09_spot_instance_is_not_terminated(cx: &Context) -> Outcome {
    let mut config = cx.config();
    config.placement.market = Some(Market::Spot);
    if !cx.capabilities().placement.contains(&PlacementField::Spot) {
        let result = cx.provisioner().launch_instance(&config).await;
        let call = "a launch of a spot instance, which is not declared,";
        cx.require_refused_without_effect(call, result, ErrorKind::Invalid)
            .await?;
        return Ok(Pass::Refused);
    }
    let alone = cx.launch_config(&config).await?.id;
    let in_batch = cx.launch_config(&config).await?.id;
    let other = cx.launch().await?.id;
    for id in [&alone, &in_batch, &other] {
        cx.wait_for_state(id, CloudInstanceState::Running).await?;
    }
    let running = [
        cx.consistent_info(&alone).await?,
        cx.consistent_info(&in_batch).await?,
    ];
    let mut results = vec![cx.provisioner().stop_instance(&alone).await];
    let batch = [in_batch.clone(), other.clone()];
    let mut stopped = cx.provisioner().stop_instances(&batch).await;
    let stopped_other = stopped.pop();
    results.append(&mut stopped);
    let mut pass = Pass::Held;
    for (before, result) in running.iter().zip(results) {
        let id = &before.id;
        let Err(error) = result else {
            cx.wait_for_state(id, CloudInstanceState::Stopped).await?;
            let after = cx.consistent_info(id).await?;
            let changed = differences(&when_stopped(before, &after), &after);
            require(changed.is_empty(), || {
                format!(
                    "after a stop, {id}, a spot instance: {}",
                    changed.join("; ")
                )
            })?;
            continue;
        };
        pass = Pass::Weaker;
        let refused = matches!(
            error.kind(),
            ErrorKind::Unsupported | ErrorKind::WrongState | ErrorKind::Invalid
        );
        require(refused && error.effect() == Effect::None, || {
            format!(
                "a stop of {id}, a spot instance, must succeed or be refused as unsupported, wrong state or invalid, without effect, but: {error}"
            )
        })?;
        cx.require_unchanged("a refused stop of a spot instance", before)
            .await?;
    }
    let stopped_other = stopped_other.unwrap_or(Ok(()));
    stopped_other.map_err(|error| {
        Failure::call_failed("the stop of an instance beside a spot instance", &error)
    })?;
    cx.wait_for_state(&other, CloudInstanceState::Stopped)
        .await?;
    Ok(pass)
}

/// Returns the truth about an instance. It is a violation if the cloud does not have it.
pub(super) async fn read_truth(
    cx: &Context,
    oracle: &dyn Oracle,
    id: &InstanceId,
) -> Result<Truth, Failure> {
    let all = oracle.instances(cx.scope()).await;
    let found = all.into_iter().find(|truth| truth.info.id == *id);
    found.ok_or_else(|| Failure::violated(format!("the cloud has no {id} any more")))
}
