//! Launches that the cloud accepts and that fail later.

use std::{cell::Cell, sync::Arc};

use fleetwright::{
    CloudInstanceState::{Running, Terminated},
    Effect, ErrorKind, InstanceId, InstanceStatus,
};
use tokio::time::Instant;

use crate::{Context, Failure, Faults, NotApplicable, Outcome, Pass, WireFault, WireOp, require};

/// Returns the late failure that most of these clauses inject, and its code.
fn late_failure(cx: &Context) -> Result<(Arc<dyn Faults>, WireFault, String), Failure> {
    let faults = cx.faults(&[])?;
    let code = faults.late_failure_code().to_owned();
    let fault = WireFault::FailsLate(code.clone());
    Ok((cx.faults(std::slice::from_ref(&fault))?, fault, code))
}

/// STATE-08: a backend must report missing capacity as capacity if a launch fails for it after it was accepted,
/// if it declares late failures.
///
/// A fallback tries another zone or type for missing capacity, and gives up for anything else. Needs: fault:
/// fails late, a code of missing capacity.
///
/// Injects the late failure with the code that the harness names for missing capacity, and polls until the
/// instance is marked: description and list must say capacity. A backend that waits for the outcome may refuse
/// the launch instead, as capacity and without effect, and a layer that finds capacity elsewhere may launch another
/// instance in its place. As in STATE-07, the record may be deleted before a read shows the mark, if the declaration
/// allows that.
pub(crate) async fn state_08_late_capacity_is_capacity(cx: &Context) -> Outcome {
    cx.require_applicable(NotApplicable::Capacity)?;
    let (faults, ..) = late_failure(cx)?;
    if cx.capabilities().late_failures.is_zero() {
        return Ok(Pass::NotClaimed);
    }
    let none = "the harness names no code of missing capacity that shows late";
    let code = faults.late_capacity_code().map(str::to_owned);
    let code = code.ok_or_else(|| Failure::NotRun(none.to_owned()))?;
    let fault = WireFault::FailsLate(code.clone());
    faults.inject(WireOp::Launch, 1, fault).await;
    let launched = cx.provisioner().launch_instance(&cx.config()).await;
    cx.clear_faults(&faults).await?;
    let info = match launched {
        Ok(info) => info,
        // A backend that waits for the end of the launch may refuse it.
        refused @ Err(_) => {
            let call = format!("a launch that fails late with {code}");
            cx.require_refused_without_effect(&call, refused, ErrorKind::Capacity)
                .await?;
            return Ok(Pass::Weaker);
        }
    };
    let id = &info.id;
    let what = format!("{id}, whose launch failed, is marked as failed");
    let marked = follow_failed(cx, id, &what, |status| {
        Ok(status.launch_failure.is_some() || status.state == Running)
    });
    let Some(status) = marked.await? else {
        return Ok(Pass::Weaker);
    };
    if status.state == Running {
        // It is another instance: STATE-04 requires that a failed one is never running.
        cx.require_count(1).await?;
        return Ok(Pass::Weaker);
    }
    require_capacity("describe", &status, &code)?;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter().in_any_state()).await?;
    if let Some(listed) = list.into_iter().find(|info| info.id == *id) {
        require_capacity("a list", &listed.into(), &code)?;
    }
    Ok(Pass::Held)
}

/// Requires that a read which shows why a launch failed says that capacity was missing.
fn require_capacity(read: &str, status: &InstanceStatus, code: &str) -> Result<(), Failure> {
    let Some(failure) = &status.launch_failure else {
        return Ok(());
    };
    require(failure.kind == ErrorKind::Capacity, || {
        let (id, kind) = (&status.id, failure.kind);
        format!("the launch of {id} failed for capacity ({code}), but {read} gives the kind {kind}")
    })
}

/// STATE-04: a backend must report a launch that fails after it was accepted as terminated, with
/// the cloud's reason, or, if it waits for the outcome, refuse it with that reason.
///
/// Without the reason, missing capacity and a bad image look the same. Needs: fault: fails late.
///
/// Injects the late failure with a code, polls until the instance is terminated and requires the
/// code in the reason of description and list. A refusal must have the code as its native code, and have
/// no effect. If the declared time for which terminated instances are visible allows that the record is
/// deleted before a read shows its end, a description may say not found.
pub(crate) async fn state_04_late_failure_has_a_reason(cx: &Context) -> Outcome {
    let (faults, fault, code) = late_failure(cx)?;
    faults.inject(WireOp::Launch, 1, fault).await;
    let launched = cx.provisioner().launch_instance(&cx.config()).await;
    cx.clear_faults(&faults).await?;
    let info = match launched {
        Ok(info) => info,
        // A backend that waits for the end of the launch may refuse it at once, with the reason.
        Err(error) if error.native_code() == Some(&code) && error.effect() == Effect::None => {
            cx.require_count(0).await?;
            return Ok(Pass::Weaker);
        }
        Err(error) => return Err(Failure::call_failed("launch_instance", &error)),
    };
    let id = &info.id;
    let what = format!("{id}, whose launch failed, is terminated");
    let ended = follow_failed(cx, id, &what, |status| {
        require(status.state != Running, || {
            format!("the launch of {id} failed, but it is running")
        })?;
        Ok(status.state == Terminated)
    });
    let Some(status) = ended.await? else {
        return Ok(Pass::Weaker);
    };
    require_reason("describe", &status, &code)?;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter().in_any_state()).await?;
    if let Some(listed) = list.into_iter().find(|info| info.id == *id) {
        require_reason("a list", &listed.into(), &code)?;
    }
    Ok(Pass::Held)
}

/// Describes an instance whose launch failed until `is_over`, and returns its status then. Returns `None`
/// if it is not found any more and the declaration allows that its record is deleted before a read
/// shows the end.
async fn follow_failed(
    cx: &Context,
    id: &InstanceId,
    what: &str,
    is_over: impl Fn(&InstanceStatus) -> Result<bool, Failure>,
) -> Result<Option<InstanceStatus>, Failure> {
    let visible = cx.capabilities().terminated_visible;
    let window = cx.capabilities().consistency_window;
    let alive = Cell::new(Instant::now());
    cx.eventually(what, async || {
        let requested = Instant::now();
        match cx.provisioner().describe_instance(id).await {
            Ok(status) if is_over(&status)? => Ok(Some(Some(status))),
            Ok(_) => {
                alive.set(requested);
                Ok(None)
            }
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && alive.get().elapsed() + window >= visible =>
            {
                Ok(Some(None))
            }
            Err(error) => Err(Failure::violated(format!(
                "the launch of {id} failed late, and then a description failed: {error}"
            ))),
        }
    })
    .await
}

/// Requires that a read shows a failed launch as terminated, with the code in its reason.
fn require_reason(read: &str, status: &InstanceStatus, code: &str) -> Result<(), Failure> {
    let InstanceStatus { id, state, .. } = status;
    require(*state == Terminated, || {
        format!("the launch of {id} failed, but {read} returns it as {state}")
    })?;
    let reason = status.state_reason.as_deref().unwrap_or_default();
    require(reason.contains(code), || {
        format!("the launch of {id} failed with {code}, and {read} gives the reason {reason:?}")
    })
}

/// STATE-07: a backend must mark an instance whose launch failed late as failed, with the cloud's code,
/// mark no other one, and free the token of the launch, if it declares late failures.
///
/// A fallback moves on only if it knows that the launch failed, and uses the same token. Needs: fault:
/// fails late.
///
/// Injects the late failure, polls until the instance is marked, compares with an instance that was
/// terminated by a call, and replays the token, which must launch another instance.
///
/// As in STATE-04, the record may be deleted before a read shows the mark, if the declared time for which
/// terminated instances are visible allows it. That is the weaker promise which the backend declares, and
/// a safe one: a fallback cannot tell such an end from that of an instance that somebody terminated, so it
/// stays with the launch and does not move on. The token must be free all the same.
pub(crate) async fn state_07_late_failure_is_marked_and_frees_its_token(cx: &Context) -> Outcome {
    let (faults, fault, code) = late_failure(cx)?;
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
    let what = format!("{id}, whose launch failed, is marked as failed");
    let marked = follow_failed(cx, id, &what, |status| {
        let marked = status.launch_failure.is_some();
        require(marked || status.state != Terminated, || {
            format!("the launch of {id} failed, but its description has no launch failure")
        })?;
        Ok(marked)
    });
    let pass = match marked.await? {
        Some(status) => {
            let failure = status.launch_failure.as_ref();
            let marked = failure.and_then(|failure| failure.native_code.as_deref());
            require(marked == Some(&code), || {
                let failure = crate::shown(&failure);
                format!("the launch of {id} failed with {code}, and is marked with {failure}")
            })?;
            Pass::Held
        }
        None => Pass::Weaker,
    };
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
