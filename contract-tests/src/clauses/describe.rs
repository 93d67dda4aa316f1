//! Describe: a read returns what exists, no older than declared.
//!
//! Reads may lag by the declared consistency window and no longer. The clauses wait for the window
//! before they require that a change is visible, and if the harness can make reads stale, they make
//! every read as stale as the window allows.

use std::{sync::Arc, time::Duration};

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    ErrorKind, InstanceId, InstanceProvisioner,
};
use tokio::time::Instant;

use crate::{Context, Failure, Faults, Outcome, Pass, WireFault, WireOp, require};

/// DESCRIBE-01: a backend must describe an instance right after its launch through the launching
/// handle, with its id and one of the six states.
///
/// A manager reads an instance right after it launches it.
///
/// Describes two instances immediately after their launch, and a third one while every read is as
/// stale as the declared window allows.
pub(crate) async fn describe_01_after_launch(cx: &Context) -> Outcome {
    for _ in 0..2 {
        let info = cx.launch().await?;
        require_described_now(cx, &info.id).await?;
    }
    // The launching handle must wait until a stale read is over.
    if let Ok(faults) = cx.faults(&[WireFault::StaleRead]) {
        let info = cx.launch().await?;
        faults
            .inject_always(WireOp::Describe, WireFault::StaleRead)
            .await;
        require_described_now(cx, &info.id).await?;
        cx.clear_faults(&faults).await?;
    }
    Ok(Pass::Held)
}

/// Describes an instance and requires its own id in the result.
async fn require_described_now(cx: &Context, id: &InstanceId) -> Result<(), Failure> {
    let status = cx.describe(id).await?;
    // The type guarantees that it is one of the six states.
    require(status.id == *id, || {
        format!("{id} is described under the id {}", status.id)
    })
}

/// DESCRIBE-02: a backend must return not found for an id that no instance has.
///
/// An empty result would look like an instance that exists.
///
/// Describes an unknown id in an empty scope and beside an instance, so that a backend that returns
/// the first or only instance is caught.
pub(crate) async fn describe_02_unknown_id_is_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    // Without and with another instance: the first or only instance must not be returned.
    for neighbours in 0..2 {
        let result = cx.provisioner().describe_instance(&id).await;
        let call =
            format!("describing {id}, which no instance has, with {neighbours} other instances");
        cx.require_refused(&call, result, ErrorKind::NotFound)?;
        cx.launch_running().await?;
    }
    Ok(Pass::Held)
}

/// DESCRIBE-03: a backend must report a change that somebody else made once the consistency window
/// has passed.
///
/// People and clouds make changes; a cache that never expires hides them. Needs: external actor.
///
/// The external actor stops, terminates and launches instances. After each change and the
/// consistency window, a description through the clause's handle must show it.
pub(crate) async fn describe_03_external_changes_are_reported(cx: &Context) -> Outcome {
    let external_actor = cx.external_actor()?;
    let info = cx.launch_running().await?;
    let id = &info.id;
    cx.wait_for_consistent_reads().await;
    cx.describe(id).await?;
    external_actor.stop(id).await;
    cx.wait_for_consistent_reads().await;
    require_state(cx.provisioner(), id, &[Stopping, Stopped], "stopped").await?;
    cx.wait_for_state(id, Stopped).await?;
    external_actor.terminate(id).await;
    cx.wait_for_consistent_reads().await;
    require_ending_or_forgotten(cx.provisioner(), id, "terminated").await?;
    cx.wait_until_terminated(id).await?;
    let foreign = external_actor.launch(cx.scope().clone()).await;
    cx.wait_for_consistent_reads().await;
    require_state(cx.provisioner(), &foreign, &[Pending, Running], "launched").await?;
    Ok(Pass::Held)
}

/// DESCRIBE-04: a backend must describe a terminated instance as terminated for as long as
/// declared.
///
/// A poller must be able to observe the state that it waits for.
///
/// Describes a terminated instance through two handles at once, after half and after nine tenths of
/// the declared time. Without a declared time, it only has to be terminated or not found.
pub(crate) async fn describe_04_terminated_instance_can_be_described(cx: &Context) -> Outcome {
    let visible = cx.capabilities().terminated_visible;
    let info = cx.launch_running().await?;
    let id = &info.id;
    let start = Instant::now();
    cx.terminate(id).await?;
    cx.eventually(&format!("{id} is terminated"), async || {
        is_terminated(cx, cx.provisioner(), id, start).await
    })
    .await?;
    if visible.is_zero() {
        return Ok(Pass::Weaker);
    }
    cx.wait_for_consistent_reads().await;
    let other = cx.open_handle().await;
    let moments = [Duration::ZERO, visible / 2, visible / 10 * 9];
    for moment in moments
        .into_iter()
        .filter(|time| cx.can_advance_time(*time))
    {
        cx.advance_time(moment.saturating_sub(start.elapsed()))
            .await;
        for handle in [cx.provisioner(), &*other] {
            let ended = is_terminated(cx, handle, id, start).await?;
            require(ended.is_some(), || {
                format!("{id} was terminated, but {moment:?} later it is not")
            })?;
        }
    }
    Ok(Pass::Held)
}

/// Returns whether an instance is reported as terminated. Not found is a violation while its record must
/// be kept.
async fn is_terminated(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    start: Instant,
) -> Result<Option<()>, Failure> {
    let result = handle.describe_instance(id).await;
    if cx.is_forgotten(result.as_ref().err(), start) {
        return Ok(Some(()));
    }
    let status = result.map_err(|error| {
        let (since, visible) = (start.elapsed(), cx.capabilities().terminated_visible);
        let call = format!("describing {id} {since:?} after its terminate, within {visible:?},");
        Failure::call_failed(&call, &error)
    })?;
    Ok((status.state == Terminated).then_some(()))
}

/// DESCRIBE-05: a backend must describe a launch through another handle, or return not found for
/// it, and nothing else, until the consistency window has passed.
///
/// A program that was restarted does not know more about its instances than reads show, and must be
/// able to rely on them after a known time.
///
/// Describes a launch immediately through another handle, and again after the window; if the
/// harness can make reads stale, once more with stale reads.
pub(crate) async fn describe_05_other_handle_finds_launch_in_time(cx: &Context) -> Outcome {
    let other = cx.open_handle().await;
    let info = cx.launch().await?;
    require_described_or_hidden(cx, &*other, &info.id).await?;
    cx.wait_for_consistent_reads().await;
    require_described(&*other, &info.id).await?;
    if let Ok(faults) = cx.faults(&[WireFault::StaleRead]) {
        let info = cx.launch().await?;
        faults
            .inject_always(WireOp::Describe, WireFault::StaleRead)
            .await;
        require_described_or_hidden(cx, &*other, &info.id).await?;
        cx.wait_for_consistent_reads().await;
        require_described(&*other, &info.id).await?;
        cx.clear_faults(&faults).await?;
    }
    Ok(Pass::Held)
}

/// Checks what another handle returns for a launch within the consistency window.
async fn require_described_or_hidden(
    cx: &Context,
    other: &dyn InstanceProvisioner,
    id: &InstanceId,
) -> Result<(), Failure> {
    let window = cx.capabilities().consistency_window;
    match other.describe_instance(id).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => require(!window.is_zero(), || {
            format!("reads are declared not to lag, but another handle does not find {id}")
        }),
        Err(error) => Err(Failure::call_failed(
            "describe_instance of another handle",
            &error,
        )),
    }
}

/// Requires that a handle describes an instance.
async fn require_described(
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
) -> Result<(), Failure> {
    let result = handle.describe_instance(id).await;
    let call = "describe_instance of another handle, after the consistency window,";
    result
        .map(drop)
        .map_err(|error| Failure::call_failed(&format!("{call} of {id}"), &error))
}

/// DESCRIBE-06: a backend must report every change once the declared consistency window has passed
/// since it was made.
///
/// If a declared window does not hold, every wait is a guess. Needs: fault: stale read.
///
/// Makes every read as stale as allowed, launches, stops, starts and terminates, and after each
/// change and the window requires the new state from two handles and from the list.
pub(crate) async fn describe_06_reads_lag_no_longer_than_declared(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::StaleRead])?;
    make_reads_stale(&faults).await;
    let other = cx.open_handle().await;
    let config = cx.config_with_token();
    let info = cx.launch_config(&config).await?;
    let id = &info.id;
    require_visible_everywhere(cx, &*other, id, &[Pending, Running], "launched").await?;
    cx.wait_for_state(id, Running).await?;
    cx.stop(id).await?;
    require_visible_everywhere(cx, &*other, id, &[Stopping, Stopped], "stopped").await?;
    cx.wait_for_state(id, Stopped).await?;
    cx.wait_for_consistent_reads().await;
    cx.start(id).await?;
    require_visible_everywhere(cx, &*other, id, &[Pending, Running], "started").await?;
    cx.terminate(id).await?;
    cx.wait_for_consistent_reads().await;
    require_ending_or_forgotten(&*other, id, "terminated").await?;
    let list = cx.list(&cx.filter()).await?;
    let alive = list
        .iter()
        .find(|info| info.id == *id && info.state != Terminating);
    require(alive.is_none(), || {
        let state = crate::shown(&alive.map(|info| info.state));
        format!("{id} was terminated, but after the consistency window it is listed as {state}")
    })?;
    cx.clear_faults(&faults).await?;
    Ok(Pass::Held)
}

/// Makes every read return the oldest data that the window allows.
async fn make_reads_stale(faults: &Arc<dyn Faults>) {
    for read in [WireOp::Describe, WireOp::List] {
        faults.inject_always(read, WireFault::StaleRead).await;
    }
}

/// Requires that after the consistency window both handles and the list show a change.
async fn require_visible_everywhere(
    cx: &Context,
    other: &dyn InstanceProvisioner,
    id: &InstanceId,
    states: &[CloudInstanceState],
    change: &str,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    require_state(cx.provisioner(), id, states, change).await?;
    require_state(other, id, states, change).await?;
    let list = cx.list(&cx.filter()).await?;
    let listed = list.iter().find(|info| info.id == *id);
    let state = listed.map(|info| info.state);
    require(state.is_some_and(|state| states.contains(&state)), || {
        let state = crate::shown(&state);
        format!("{id} was {change}, but after the consistency window it is listed as {state}")
    })
}

/// Requires that an instance is described in one of `states`.
async fn require_state(
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    states: &[CloudInstanceState],
    change: &str,
) -> Result<(), Failure> {
    let status = handle.describe_instance(id).await;
    let status = status.map_err(|error| Failure::call_failed("describe_instance", &error))?;
    require(states.contains(&status.state), || {
        format!(
            "{id} was {change}, but after the consistency window it is {}",
            status.state
        )
    })
}

/// Requires that an instance is terminating, terminated or forgotten.
async fn require_ending_or_forgotten(
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    change: &str,
) -> Result<(), Failure> {
    match handle.describe_instance(id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::call_failed("describe_instance", &error)),
        Ok(status) => require(status.state.is_ending(), || {
            format!(
                "{id} was {change}, but after the consistency window it is {}",
                status.state
            )
        }),
    }
}
