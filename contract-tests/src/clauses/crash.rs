//! Crashes and lost messages: token and tags reveal the outcome that the caller did not receive.
//!
//! CRASH-01 and CRASH-02 are the two basic cases: a lost response and a lost request. CRASH-05 is
//! about finding instances by tags, CRASH-07 about calls that a backend must not resend. CRASH-03
//! and CRASH-04 are sweeps: they repeat a whole lifecycle (the module `life`) with the fault or the
//! crash at its first call, its second and so on. CRASH-06 generates sequences; the module `model`
//! knows which results are right.

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState, InstanceId, InstanceProvisioner, LaunchRecord, LaunchToken, OptionalVerb,
    Reboot,
};
use tokio::time::timeout;

use crate::{
    Context, Factory, Failure, Outcome, Pass, WireFault, WireOp,
    context::names,
    dropped::drop_after,
    life::{Life, Step},
    model, require,
};

/// The most calls of a lifecycle into which a fault is injected. A lifecycle makes about twenty.
const MOST_CALLS: u64 = 80;

/// CRASH-01: a backend must find the instance of a launch whose response was lost, by token and by
/// tags, and launch no second one on a replay.
///
/// This is the common double launch. Needs: fault: response lost.
///
/// Loses the response of one launch. Exactly one instance must be listed and found by its token
/// through the old and a new handle, and replays through both must return it.
pub(crate) async fn crash_01_lost_response_is_settled(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ResponseLost])?;
    let config = cx.config_with_token();
    faults
        .inject(WireOp::Launch, 1, WireFault::ResponseLost)
        .await;
    let result = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    cx.wait_for_consistent_reads().await;
    // The instance must be found by tags and by token before anything is sent again.
    let id = match cx.require_count(1).await?.first() {
        Some(info) => info.id.clone(),
        None => {
            return Err(Failure::KitError(
                "a list of one instance is empty".to_owned(),
            ));
        }
    };
    let restarted = cx.open_handle().await;
    for handle in [&*restarted, cx.provisioner()] {
        let found = look_up(handle, config.launch_token.as_ref()).await?;
        let right =
            matches!(&found, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == id);
        require(right, || {
            format!(
                "the launch of {id}, whose response was lost, is found as {}",
                crate::shown(&found)
            )
        })?;
    }
    if let Ok(info) = result {
        require_same(&id, &info.id)?;
    }
    for handle in [&*restarted, cx.provisioner()] {
        let replay = handle.launch_instance(&config).await;
        let replay = replay.map_err(|error| Failure::call_failed("the replay", &error))?;
        require_same(&id, &replay.id)?;
    }
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// CRASH-02: a backend must launch exactly one instance when a launch whose request was lost is
/// retried.
///
/// This is the launch that never happened. Needs: fault: request lost.
///
/// Loses the request of one launch. If the call failed, nothing may be listed or found; replays
/// through two handles must then agree on one instance.
pub(crate) async fn crash_02_lost_request_is_settled(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::RequestLost])?;
    let config = cx.config_with_token();
    faults
        .inject(WireOp::Launch, 1, WireFault::RequestLost)
        .await;
    let result = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    cx.wait_for_consistent_reads().await;
    let restarted = cx.open_handle().await;
    if result.is_err() {
        cx.require_count(0).await?;
        for handle in [&*restarted, cx.provisioner()] {
            let found = look_up(handle, config.launch_token.as_ref()).await?;
            require(found == LaunchRecord::NotFound, || {
                format!(
                    "a launch that never arrived is found as {}",
                    crate::shown(&found)
                )
            })?;
        }
    }
    let replay = cx.launch_config(&config).await?;
    if let Ok(info) = result {
        require_same(&replay.id, &info.id)?;
    }
    let again = restarted.launch_instance(&config).await;
    let again = again.map_err(|error| Failure::call_failed("the second replay", &error))?;
    require_same(&replay.id, &again.id)?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// CRASH-03: a backend must end with exactly one instance, then none, whatever fault occurs at
/// whichever call of a lifecycle.
///
/// An example proves one case; a sweep proves all of them. Needs: faults.
///
/// Injects every ambiguous fault, and throttling, into the first call of a lifecycle, then into its
/// second, and so on, until a lifecycle ends before the fault is reached. The retries of `Life`
/// must complete each.
pub(crate) async fn crash_03_every_fault_at_every_call_converges(cx: &Context) -> Outcome {
    let faults = cx.faults(&[])?;
    let mut offered: Vec<_> = WireFault::AMBIGUOUS.to_vec();
    offered.push(WireFault::Throttled(cx.throttle_delay()));
    offered.retain(|fault| faults.supports(fault));
    if offered.is_empty() {
        return Err(Failure::NotRun(
            "the harness offers no such fault".to_owned(),
        ));
    }
    for (kind, fault) in offered.into_iter().enumerate() {
        for nth in (1..=MOST_CALLS).filter(|nth| has_call(cx, kind, *nth)) {
            let mut life = Life::new(cx, &format!("{kind}-{nth}"))?;
            let handle = cx.open_handle().await;
            faults.inject(WireOp::Any, nth, fault.clone()).await;
            for step in Step::ALL {
                let in_context = |failure| {
                    with_context(
                        failure,
                        &format!("{} at call {nth}, {step}", crate::shown::in_words(&fault)),
                    )
                };
                life.step(step, &*handle).await.map_err(in_context)?;
            }
            if !faults.clear().await {
                break;
            }
        }
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// CRASH-04: a backend must end with exactly one instance, then none, wherever in a lifecycle the
/// process dies and is restarted.
///
/// The same holds as for faults. Needs: fault: crash.
///
/// Lets the process die before and after the effect of every call of a lifecycle. A call that does
/// not return is abandoned, and a new handle repeats the step.
pub(crate) async fn crash_04_crash_at_every_call_converges(cx: &Context) -> Outcome {
    let crashes = [WireFault::CrashBefore, WireFault::CrashAfter];
    let faults = cx.faults(&crashes)?;
    for (kind, fault) in crashes.into_iter().enumerate() {
        for nth in (1..=MOST_CALLS).filter(|nth| has_call(cx, kind, *nth)) {
            let mut life = Life::new(cx, &format!("{kind}-{nth}"))?;
            let mut handle = cx.open_handle().await;
            faults.inject(WireOp::Any, nth, fault.clone()).await;
            for step in Step::ALL {
                let in_context = |failure| {
                    with_context(
                        failure,
                        &format!("{} at call {nth}, {step}", crate::shown::in_words(&fault)),
                    )
                };
                let done_step = timeout(cx.harness().budget().saturating_mul(2), async {
                    loop {
                        let done = timeout(cx.call_timeout(), life.step(step, &*handle)).await;
                        if let Ok(done) = done {
                            return done;
                        }
                        cx.note("the process died; another one repeats the step");
                        handle = cx.open_handle().await;
                    }
                });
                let timed_out = |_| Err(Failure::violated("the step does not end"));
                done_step
                    .await
                    .unwrap_or_else(timed_out)
                    .map_err(in_context)?;
            }
            if !faults.clear().await {
                break;
            }
        }
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// Returns whether this run of a sweep has the nth call. Of another kind of fault, another account has it.
fn has_call(cx: &Context, kind: usize, nth: u64) -> bool {
    cx.has_case(kind + usize::try_from(nth).unwrap_or(0))
}

/// CRASH-05: a backend must list through a new handle, by tags alone, everything that a dead
/// process launched.
///
/// Ids are lost with the process, tags are not.
///
/// Launches three instances through one handle, stops one and dies during a fourth launch. A new
/// handle must list all of them with their tags; the fourth only if the harness controls how far it
/// got.
pub(crate) async fn crash_05_everything_is_found_by_tags(cx: &Context) -> Outcome {
    let lost = cx.open_handle().await;
    let mut ids = Vec::new();
    for config in [cx.config(), cx.config_with_token(), cx.config()] {
        let info = lost.launch_instance(&config).await;
        ids.push(
            info.map_err(|error| Failure::call_failed("launch_instance", &error))?
                .id,
        );
    }
    // An instance that does not run yet may refuse to be stopped.
    cx.eventually(&format!("{} is running", ids[0]), async || {
        let status = lost.describe_instance(&ids[0]).await;
        let status = status.map_err(|error| Failure::call_failed("describe_instance", &error))?;
        Ok((status.state == CloudInstanceState::Running).then_some(()))
    })
    .await?;
    let stopped = lost.stop_instance(&ids[0]).await;
    stopped.map_err(|error| Failure::call_failed("stop_instance", &error))?;
    // The process dies during a launch, which may or may not have been carried out.
    let config = cx.config_with_token();
    let crash = WireFault::CrashAfter;
    let faults = cx
        .harness()
        .faults()
        .filter(|faults| faults.supports(&crash));
    if let Some(faults) = &faults {
        faults.inject(WireOp::Launch, 1, crash).await;
        let _ = timeout(cx.call_timeout(), lost.launch_instance(&config)).await;
        cx.clear_faults(faults).await?;
    } else {
        let _ = drop_after(2, lost.launch_instance(&config)).await;
    }
    drop(lost);
    let restarted = cx.open_handle().await;
    cx.wait_for_consistent_reads().await;
    let list = restarted.list_instances(&cx.filter()).await;
    let list = list.map_err(|error| Failure::call_failed("list_instances", &error))?;
    let listed: BTreeSet<_> = list.iter().map(|info| &info.id).collect();
    let missing: Vec<_> = ids.iter().filter(|id| !listed.contains(id)).collect();
    require(missing.is_empty(), || {
        format!(
            "{} of a dead process are not listed by a new one",
            crate::shown(&missing)
        )
    })?;
    require(
        list.iter().all(|info| info.tags.contains_all(cx.scope())),
        || {
            format!(
                "{} do not have the tags they were launched with",
                names(&list)
            )
        },
    )?;
    require(faults.is_none() || list.len() == ids.len() + 1, || {
        let observed = names(&list);
        format!("the launch that was in progress when the process died is not among {observed}")
    })?;
    Ok(Pass::Held)
}

/// CRASH-06: a backend must behave as the model allows in any sequence of calls, faults, dropped
/// calls and restarts.
///
/// No author thinks of every order.
///
/// Plays 160 generated sequences in virtual time, 8 in real time. The module `model` has the reference
/// model and the steps.
pub(crate) fn crash_06_any_sequence_matches_the_model(factory: &Factory) -> Outcome {
    model::run(factory)
}

/// CRASH-07: a backend must not resend a launch without a token, or a reboot, while its outcome is
/// unknown.
///
/// A blind retry inside a backend is a double launch that no caller can prevent. Needs: oracle,
/// fault: response lost.
///
/// Loses the response of a launch without a token, after which one instance must exist. Then loses
/// the response of either request of a reboot: the oracle may count at most one boot more.
pub(crate) async fn crash_07_unsafe_calls_are_sent_once(cx: &Context) -> Outcome {
    let (oracle, lost) = (cx.oracle()?, WireFault::ResponseLost);
    let faults = cx.faults(std::slice::from_ref(&lost))?;
    faults.inject(WireOp::Launch, 1, lost.clone()).await;
    let result = cx.provisioner().launch_instance(&cx.config()).await;
    cx.clear_faults(&faults).await?;
    cx.note(format!(
        "a launch without a token whose response was lost: {}",
        crate::shown(&result)
    ));
    cx.require_count(1).await?;
    if !cx.capabilities().supports(OptionalVerb::RebootInstance) {
        return Ok(Pass::Held);
    }
    let id = cx.launch_running().await?.id;
    cx.wait_for_consistent_reads().await;
    let boots = async || {
        let truth = oracle.instances(cx.scope()).await;
        let found = truth.into_iter().find(|truth| truth.info.id == id);
        found.and_then(|truth| truth.boots).unwrap_or_default()
    };
    // Some backends read before they reboot, so the second native call is tried, too.
    for nth in 1..=2 {
        let before = boots().await;
        faults.inject(WireOp::Any, nth, lost.clone()).await;
        let result = cx.provisioner().reboot_instance(&id, Reboot::Hard).await;
        if nth == 1 {
            cx.clear_faults(&faults).await?;
        } else {
            faults.clear().await;
        }
        cx.note(format!(
            "a reboot whose response was lost: {}",
            crate::shown(&result)
        ));
        let after = boots().await;
        require(after <= before + 1, || {
            format!(
                "one reboot of {id} whose response was lost brought it from {before} boots to {after}"
            )
        })?;
    }
    Ok(Pass::Held)
}

/// Looks a launch up by its token.
async fn look_up(
    handle: &dyn InstanceProvisioner,
    token: Option<&LaunchToken>,
) -> Result<LaunchRecord, Failure> {
    let token = token.ok_or_else(|| Failure::KitError("a config without a token".to_owned()))?;
    let found = handle.find_launch(token).await;
    found.map_err(|error| Failure::call_failed("find_launch", &error))
}

/// Requires that two launches with one token returned the same instance.
fn require_same(id: &InstanceId, other: &InstanceId) -> Result<(), Failure> {
    require(id == other, || {
        format!("one token and one config launched both {id} and {other}")
    })
}

/// Adds to a violation at which point of the sweep it was observed.
fn with_context(failure: Failure, what: &str) -> Failure {
    match failure {
        Failure::Violated(observed) => Failure::Violated(format!("with {what}: {observed}")),
        other @ (Failure::Leaked(_)
        | Failure::CleanupFailed(_)
        | Failure::NotRun(_)
        | Failure::NotApplicable(_)
        | Failure::KitError(_)) => other,
    }
}
