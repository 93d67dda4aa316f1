//! States: six states in an order that the state machine allows, and what an instance reports in
//! each.
//!
//! Pollers may miss states, so the clauses never require that a state in between is observed. They
//! require that every observed state is one that can follow the states before it. [`late`] tests launches
//! that the cloud accepts and that fail later.

mod late;

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    ErrorKind, InstanceId, InstanceInfo, InstanceStatus,
};
use tokio::time::Instant;

pub(crate) use late::{
    state_04_late_failure_has_a_reason, state_07_late_failure_is_marked_and_frees_its_token,
    state_08_late_capacity_is_capacity,
};

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require, shown::addresses};

/// STATE-01: a backend must report states only in an order that the state machine allows, from
/// launch through stop and start to terminated.
///
/// Controllers rely on the order.
///
/// Polls an instance after launch, stop, start and terminate. The state before a command is legal
/// only until the consistency window has passed since the command.
pub(crate) async fn state_01_states_follow_the_allowed_order(cx: &Context) -> Outcome {
    let info = cx.launch().await?;
    let id = &info.id;
    let booting = [Pending, Running];
    require(booting.contains(&info.state), || {
        format!("{id} was launched as {}", info.state)
    })?;
    follow(cx, id, Pending, booting).await?;
    cx.stop(id).await?;
    follow(cx, id, Running, [Stopping, Stopped]).await?;
    let started = cx.start(id).await?;
    require(booting.contains(&started.state), || {
        format!("{id} was started as {}", started.state)
    })?;
    follow(cx, id, Stopped, booting).await?;
    cx.terminate(id).await?;
    follow(cx, id, Running, [Terminating, Terminated]).await?;
    Ok(Pass::Held)
}

/// Polls an instance after a command until it is in the second state of `now` and all reads show that.
///
/// Once the consistency window has passed since the command, only the two states of `now` are legal.
/// Until then, a read may still return the state `before` the command.
async fn follow(
    cx: &Context,
    id: &InstanceId,
    before: CloudInstanceState,
    now: [CloudInstanceState; 2],
) -> Result<(), Failure> {
    let window = cx.capabilities().consistency_window;
    let requested_at = Instant::now();
    let [in_between, goal] = now;
    cx.eventually(&format!("{id} is {goal}"), async || {
        let sent = Instant::now();
        let state = match cx.provisioner().describe_instance(id).await {
            Ok(status) => status.state,
            // Other clauses check whether the record may be deleted by now.
            Err(error) if goal == Terminated && error.kind() == ErrorKind::NotFound => goal,
            Err(error) => return Err(Failure::call_failed("describe_instance", &error)),
        };
        let window_passed = sent >= requested_at + window;
        let legal = now.contains(&state) || (!window_passed && state == before);
        require(legal, || {
            format!("{id} is {state}, but must be {in_between} or {goal}")
        })?;
        Ok((state == goal).then_some(()))
    })
    .await?;
    cx.wait_for_consistent_reads().await;
    Ok(())
}

/// STATE-02: a backend must never report a terminated instance in another state again.
///
/// A terminated instance is not billed and must not be counted.
///
/// Stops, starts, replays the launch of and terminates a terminated instance, and after each call
/// watches description and list for 300 milliseconds.
pub(crate) async fn state_02_terminated_is_final(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let info = cx.launch_config(&config).await?;
    let id = &info.id;
    cx.wait_for_state(id, Running).await?;
    cx.terminate(id).await?;
    cx.wait_until_terminated(id).await?;
    require_stays_terminated(cx, id, "by itself").await?;
    // Other clauses check the results of these calls; here none of them may bring the instance back.
    let _ = cx.provisioner().stop_instance(id).await;
    require_stays_terminated(cx, id, "after a stop").await?;
    let _ = cx.provisioner().start_instance(id).await;
    require_stays_terminated(cx, id, "after a start").await?;
    let _ = cx.provisioner().launch_instance(&config).await;
    require_stays_terminated(cx, id, "after a replay of its launch").await?;
    let _ = cx.provisioner().terminate_instance(id).await;
    require_stays_terminated(cx, id, "after a second terminate").await?;
    Ok(Pass::Held)
}

/// Requires for a while that an instance is terminated or no longer known, by describe and by list.
async fn require_stays_terminated(cx: &Context, id: &InstanceId, how: &str) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    let every_state = cx.filter().in_any_state();
    cx.consistently(Duration::from_millis(300), async || {
        match cx.provisioner().describe_instance(id).await {
            Ok(status) => require(status.state == Terminated, || {
                format!("{id} was terminated and is {} {how}", status.state)
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::call_failed("describe_instance", &error)),
        }
        let list = cx.list(&every_state).await?;
        let back = list
            .iter()
            .find(|info| info.id == *id && info.state != Terminated);
        back.map_or(Ok(()), |InstanceInfo { state, .. }| {
            Err(Failure::violated(format!(
                "{id} was terminated and is listed {how} as {state}"
            )))
        })
    })
    .await
}

/// STATE-03: a backend must report a native state that it does not know as pending with its native
/// name, never as running or terminated.
///
/// Clouds add states; a new one must look neither ready nor terminated. Needs: fault: unknown
/// state.
///
/// Injects three invented native states, two of which begin like known ones, into describe and
/// list. The instance must be pending with the invented name, and running again once the fault is
/// removed.
pub(crate) async fn state_03_unknown_native_state_is_pending(cx: &Context) -> Outcome {
    let native_states = ["DEFROSTING", "RUNNING_SOON", "TERMINATED_SOON"];
    let needed = native_states.map(|native_state| WireFault::UnknownState(native_state.to_owned()));
    let faults = cx.faults(&needed)?;
    let info = cx.launch_running().await?;
    let id = &info.id;
    cx.wait_for_consistent_reads().await;
    for (native_state, fault) in native_states.into_iter().zip(needed) {
        faults.inject_always(WireOp::Describe, fault.clone()).await;
        let status = cx.provisioner().describe_instance(id).await;
        cx.clear_faults(&faults).await?;
        let status = status.map_err(|error| Failure::call_failed("describe_instance", &error))?;
        require_pending_as(native_state, "describe", status)?;
        faults.inject_always(WireOp::List, fault).await;
        let list = cx.provisioner().list_instances(&cx.filter()).await;
        cx.clear_faults(&faults).await?;
        let list = list.map_err(|error| Failure::call_failed("list_instances", &error))?;
        let listed = list.into_iter().find(|info| info.id == *id);
        let missing = || {
            Failure::violated(format!(
                "{id}, which is {native_state}, is left out of the list"
            ))
        };
        require_pending_as(native_state, "a list", listed.ok_or_else(missing)?.into())?;
    }
    // The unknown state was not final: the instance runs again.
    cx.wait_for_state(id, Running).await?;
    Ok(Pass::Held)
}

/// Requires that a read shows an unknown native state as pending, with its name.
fn require_pending_as(
    native_state: &str,
    read: &str,
    status: InstanceStatus,
) -> Result<(), Failure> {
    let InstanceStatus { id, state, .. } = status;
    require(state == Pending, || {
        format!("{read} returns {id}, which is {native_state}, as {state}")
    })?;
    let native = status.native_state.unwrap_or_default();
    require(native.contains(native_state), || {
        format!("{read} returns {id}, which is {native_state}, with the native state {native:?}")
    })
}

/// STATE-05: a backend must report the private address of a running instance.
///
/// A manager needs the address to use the instance.
///
/// Reads the private address by description and by list when the instance runs for the first time,
/// and again after a stop and a start.
pub(crate) async fn state_05_running_instance_has_an_address(cx: &Context) -> Outcome {
    let info = cx.launch_running().await?;
    let id = &info.id;
    let has_address = async |when: &str| {
        cx.wait_for_consistent_reads().await;
        let described = cx.describe(id).await?.private_ip;
        require(described.is_some(), || {
            format!("{id} runs {when}, but describe returns no private address")
        })?;
        let listed = cx.wait_until_listed(id).await?.private_ip;
        require(listed.is_some(), || {
            format!("{id} runs {when}, but a list returns no private address")
        })
    };
    has_address("for the first time").await?;
    cx.stop(id).await?;
    cx.wait_for_state(id, Stopped).await?;
    cx.wait_for_consistent_reads().await;
    cx.start(id).await?;
    cx.wait_for_state(id, Running).await?;
    has_address("again after a stop").await?;
    Ok(Pass::Held)
}

/// STATE-06: a backend must report the same state and addresses in a list and in a description of
/// an instance that does not change.
///
/// Managers use both reads.
///
/// Compares state, private, public and hardware address of a running and of a stopped instance
/// between list and description.
pub(crate) async fn state_06_list_and_describe_agree(cx: &Context) -> Outcome {
    let stopped = cx.launch_stopped().await?.id;
    let running = cx.launch_running().await?.id;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter()).await?;
    for id in [stopped, running] {
        let described = cx.describe(&id).await?;
        let listed = list.iter().find(|info| info.id == id).cloned();
        let missing = || Failure::violated(format!("{id} is {} and not listed", described.state));
        let listed = InstanceStatus::from(listed.ok_or_else(missing)?);
        let observed = |status: &InstanceStatus| {
            let addresses = addresses((status.private_ip, status.public_ip));
            let mac = crate::shown(&status.mac_address);
            format!(
                "{} with the addresses {addresses}, hardware {mac}",
                status.state
            )
        };
        let (one, other) = (observed(&described), observed(&listed));
        require(one == other, || {
            format!("describe returns {id} as {one}, a list as {other}")
        })?;
    }
    Ok(Pass::Held)
}
