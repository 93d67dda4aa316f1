//! States: six states in an order that the state machine allows, and what an instance reports in
//! each.
//!
//! Pollers may miss states, so the clauses never require that a state in between is observed. They
//! require that every observed state is one that can follow the states before it.

use std::{cell::RefCell, time::Duration};

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    Effect, ErrorKind, InstanceId, InstanceStatus, ProvisionError,
};
use tokio::time::Instant;

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

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
        require(back.is_none(), || {
            let state = back.map(|info| info.state);
            format!("{id} was terminated and is listed {how} as {state:?}")
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

/// STATE-04: a backend must report a launch that fails after it was accepted as terminated, with
/// the cloud's reason, or, if it waits for the outcome, refuse it with that reason.
///
/// Without the reason, missing capacity and a bad image look the same. Needs: fault: fails late.
///
/// Injects the late failure with a code, polls until the instance is terminated and requires the
/// code in the reason of description and list. A refusal must carry the code and have no effect.
pub(crate) async fn state_04_late_failure_has_a_reason(cx: &Context) -> Outcome {
    let code = "ContractFailsLate";
    let fault = WireFault::FailsLate(code.to_owned());
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    faults.inject(WireOp::Launch, 1, fault).await;
    let launched = cx.provisioner().launch_instance(&cx.config()).await;
    cx.clear_faults(&faults).await?;
    let info = match launched {
        Ok(info) => info,
        // A backend that waits for the end of the launch may refuse it at once, with the reason.
        Err(error)
            if (error.native_code() == Some(code) || error.message().contains(code))
                && error.effect() == Effect::None =>
        {
            cx.require_count(0).await?;
            return Ok(Pass::Weaker);
        }
        Err(error) => return Err(Failure::call_failed("launch_instance", &error)),
    };
    let id = &info.id;
    let visible = cx.capabilities().terminated_visible;
    let window = cx.capabilities().consistency_window;
    let alive = RefCell::new(Instant::now());
    let what = format!("{id}, whose launch failed, is terminated");
    let ended = cx.eventually(&what, async || {
        let requested = Instant::now();
        let result = cx.provisioner().describe_instance(id).await;
        let not_found = |error: &ProvisionError| error.kind() == ErrorKind::NotFound;
        // The declaration may allow that its record is deleted before the first read.
        let late = alive.borrow().elapsed() + window >= visible;
        if late && result.as_ref().is_err_and(not_found) {
            return Ok(Some(None));
        }
        let status = result.map_err(|error| {
            Failure::violated(format!(
                "the launch of {id} failed late, and then a description failed: {error}"
            ))
        })?;
        if status.state == Terminated {
            return Ok(Some(Some(status)));
        }
        require(status.state != Running, || {
            format!("the launch of {id} failed, but it is running")
        })?;
        *alive.borrow_mut() = requested;
        Ok(None)
    });
    let Some(status) = ended.await? else {
        return Ok(Pass::Weaker);
    };
    require_reason(code, "describe", &status)?;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter().in_any_state()).await?;
    if let Some(listed) = list.into_iter().find(|info| info.id == *id) {
        require_reason(code, "a list", &listed.into())?;
    }
    Ok(Pass::Held)
}

/// Requires that a read shows a failed launch as terminated, with the code in its reason.
fn require_reason(code: &str, read: &str, status: &InstanceStatus) -> Result<(), Failure> {
    let InstanceStatus { id, state, .. } = status;
    require(*state == Terminated, || {
        format!("the launch of {id} failed, but {read} returns it as {state}")
    })?;
    let reason = status.state_reason.as_deref().unwrap_or_default();
    require(reason.contains(code), || {
        format!("the launch of {id} failed with {code}, and {read} gives the reason {reason:?}")
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
            (
                status.state,
                status.private_ip,
                status.public_ip,
                status.mac_address,
            )
        };
        let (one, other) = (observed(&described), observed(&listed));
        require(one == other, || {
            format!("describe returns {id} as {one:?}, a list as {other:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// STATE-07: a backend must mark an instance whose launch failed late as failed, mark no other one,
/// and free the token of the launch, if it declares late failures.
///
/// A fallback moves on only if it knows that the launch failed, and uses the same token. Needs: fault:
/// fails late.
///
/// Injects the late failure, polls until the instance is marked, compares with an instance that was
/// terminated by a call, and replays the token, which must launch another instance.
pub(crate) async fn state_07_late_failure_is_marked_and_frees_its_token(cx: &Context) -> Outcome {
    let fault = WireFault::FailsLate("ContractFailsLate".to_owned());
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    if cx.capabilities().late_failures.is_zero() {
        return Ok(Pass::NotClaimed);
    }
    let terminated = cx.launch_terminated().await?.id;
    let config = cx.config_with_token();
    faults.inject(WireOp::Launch, 1, fault).await;
    let launched = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    // A backend that waits for the end of the launch may refuse it; STATE-04 checks how.
    let Ok(info) = launched else {
        return Ok(Pass::Weaker);
    };
    let id = &info.id;
    let visible = cx.capabilities().terminated_visible;
    let window = cx.capabilities().consistency_window;
    let alive = RefCell::new(Instant::now());
    let what = format!("{id}, whose launch failed, is marked as failed");
    let marked = cx.eventually(&what, async || {
        let requested = Instant::now();
        let result = cx.provisioner().describe_instance(id).await;
        let not_found = |error: &ProvisionError| error.kind() == ErrorKind::NotFound;
        // The declaration may allow that its record is deleted before a read shows the mark.
        let late = alive.borrow().elapsed() + window >= visible;
        if late && result.as_ref().is_err_and(not_found) {
            return Ok(Some(Pass::Weaker));
        }
        let status = result.map_err(|error| Failure::call_failed("describe_instance", &error))?;
        let marked = status.launch_failure.is_some();
        require(marked || status.state != Terminated, || {
            format!("the launch of {id} failed, but its description has no launch failure")
        })?;
        if !marked {
            *alive.borrow_mut() = requested;
        }
        Ok(marked.then_some(Pass::Held))
    });
    let pass = marked.await?;
    if let Ok(status) = cx.provisioner().describe_instance(&terminated).await {
        require(status.launch_failure.is_none(), || {
            format!("{terminated} was terminated by a call, but is marked as a failed launch")
        })?;
    }
    let replayed = cx.eventually("the token of a failed launch is free", async || {
        match cx.provisioner().launch_instance(&config).await {
            Ok(info) => Ok(Some(info)),
            // The remains of the failed launch may still be removed.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(Failure::call_failed("launch_instance", &error)),
        }
    });
    let replayed = replayed.await?;
    require(replayed.id != *id, || {
        format!("a replay of the failed launch of {id} returned it again")
    })?;
    Ok(pass)
}
