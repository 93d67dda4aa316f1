//! Faults in each call, and checks of the errors that result.

use std::slice;

use fleetwright::{
    Effect, ErrorKind, InstanceId, LaunchRecord, LaunchToken, Operation, OptionalVerb,
    ProvisionError, Result, UserData,
};

use crate::{
    Context, Failure, WireFault, WireOp,
    clauses::calls::{CALLS, Subjects},
    require,
};

/// Injects `fault` into every launch, and returns the errors of a launch of one and of several.
pub(super) async fn launch_errors(
    cx: &Context,
    fault: &WireFault,
) -> Result<Vec<ProvisionError>, Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    faults.inject_always(WireOp::Launch, fault.clone()).await;
    let three = std::num::NonZeroU32::MIN.saturating_add(2);
    let one = cx.provisioner().launch_instance(&cx.config()).await;
    let several = cx.provisioner().launch_instances(&cx.config(), three).await;
    cx.clear_faults(&faults).await?;
    Ok(vec![
        require_error(Operation::LaunchInstance, one)?,
        require_error(Operation::LaunchInstances, several)?,
    ])
}

/// Injects `fault` into each of the seven calls and passes the error of each to `check`.
pub(super) async fn fault_each_call(
    cx: &Context,
    fault: &WireFault,
    check: impl Fn(&ProvisionError) -> Result<(), Failure>,
) -> Result<Subjects, Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        cx.announce(Some(fault));
        let result = subjects.call(cx, wire).await;
        cx.announce(None);
        cx.clear_faults(&faults).await?;
        check(&require_error(operation, result.map(drop))?)?;
    }
    Ok(subjects)
}

/// Like [`fault_each_call`], with a fault after which the call may have been carried out. A launch may
/// then also succeed, if it returns the instance that its token finds.
pub(super) async fn fault_each_call_ambiguously(
    cx: &Context,
    fault: &WireFault,
    check: impl Fn(&ProvisionError) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        let result = subjects.call(cx, wire).await;
        cx.clear_faults(&faults).await?;
        match result {
            Ok(Some((token, id))) => require_found_by_token(cx, &token, &id).await?,
            result => check(&require_error(operation, result.map(drop))?)?,
        }
    }
    Ok(())
}

/// Requires that the token finds exactly the instance that the launch returned.
async fn require_found_by_token(
    cx: &Context,
    token: &LaunchToken,
    id: &InstanceId,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    let found = cx.provisioner().find_launch(token).await;
    let found = found.map_err(|error| Failure::call_failed("find_launch", &error))?;
    let same = matches!(&found, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == *id);
    require(same, || {
        format!(
            "a launch whose response was lost returned {id}, but its token finds {}",
            crate::shown(&found)
        )
    })
}

/// Provokes errors that need no faults, and returns them with their calls.
pub(super) async fn errors_without_faults(
    cx: &Context,
) -> Result<Vec<(Operation, ProvisionError)>, Failure> {
    let (provisioner, unknown) = (cx.provisioner(), cx.harness().unknown_id());
    let mut errors = Vec::new();
    let mut add = |operation, result| {
        errors.push((operation, require_error(operation, result)?));
        Ok::<(), Failure>(())
    };
    let result = provisioner.describe_instance(&unknown).await.map(drop);
    add(Operation::DescribeInstance, result)?;
    add(
        Operation::StopInstance,
        provisioner.stop_instance(&unknown).await,
    )?;
    let result = provisioner.start_instance(&unknown).await.map(drop);
    add(Operation::StartInstance, result)?;
    add(
        Operation::TerminateInstance,
        provisioner.terminate_instance(&unknown).await,
    )?;
    let mut oversized = cx.config();
    let bytes = vec![b'x'; cx.capabilities().max_user_data_bytes + 1];
    let data = UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()))?;
    oversized.user_data = Some(data);
    let result = provisioner.launch_instance(&oversized).await.map(drop);
    add(Operation::LaunchInstance, result)?;
    let reboot = provisioner.reboot_instance(&unknown, fleetwright::Reboot::Soft);
    add(OptionalVerb::RebootInstance.into(), reboot.await)?;
    let console = provisioner.console_output(&unknown).await.map(drop);
    add(OptionalVerb::ConsoleOutput.into(), console)?;
    Ok(errors)
}

/// Requires that a call failed, and returns its error.
fn require_error<T: std::fmt::Debug + 'static>(
    operation: Operation,
    result: Result<T>,
) -> Result<ProvisionError, Failure> {
    match result {
        Err(error) => Ok(error),
        Ok(value) => Err(Failure::violated(format!(
            "{operation} must fail, but returned {}",
            crate::shown::shown_any(&value)
        ))),
    }
}

/// Requires the kind of an error and, unless the call is a read, its effect.
pub(super) fn require_kind_and_effect(
    error: &ProvisionError,
    kind: ErrorKind,
    effect: Effect,
) -> Result<(), Failure> {
    let right = error.kind() == kind && (error.operation().is_read() || error.effect() == effect);
    require(right, || {
        format!("must be {kind} with {effect}, but: {error}")
    })
}

/// Requires an error that fits a launch without a response.
pub(super) fn require_lost_response_error(error: &ProvisionError) -> Result<(), Failure> {
    let expected = matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unavailable);
    require(expected, || {
        format!("without a response, the error must be timeout or unavailable, but: {error}")
    })?;
    require(error.effect() == Effect::Unknown, || {
        format!("the effect of the launch must be unknown, but: {error}")
    })?;
    require_retry_allowed(error)
}

/// Requires that an error advises a retry.
pub(super) fn require_retry_allowed(error: &ProvisionError) -> Result<(), Failure> {
    require(error.retry().delay().is_some(), || {
        format!("the same call may succeed later, but the error advises no retry: {error}")
    })
}

/// Requires that the effect of a launch is unknown, and that the effect of another change is not none.
pub(super) fn require_effect_unknown(error: &ProvisionError) -> Result<(), Failure> {
    let (operation, effect) = (error.operation(), error.effect());
    let reported = if operation == Operation::LaunchInstance {
        effect == Effect::Unknown
    } else {
        operation.is_read() || effect != Effect::None
    };
    require(reported, || {
        format!("the effect of the call must be unknown, but: {error}")
    })
}

/// Requires that an error names its provider and its operation and has a message. The core formats its
/// text; that it is one line is checked because the clause promises it.
pub(super) fn require_provider_and_operation(
    cx: &Context,
    operation: Operation,
    error: &ProvisionError,
) -> Result<(), Failure> {
    let text = error.to_string();
    let provider = cx.capabilities().provider.as_str();
    require(error.provider() == provider, || {
        format!("an error of {provider} names {}: {text}", error.provider())
    })?;
    require(error.operation() == operation, || {
        format!(
            "an error of {operation} names {}: {text}",
            error.operation()
        )
    })?;
    let named = text.contains(provider) && text.contains(operation.as_str());
    let one_line = !text.contains(|c: char| c.is_control());
    require(named && one_line && !error.message().is_empty(), || {
        format!("an error must name provider and operation on one line, but: {text:?}")
    })
}
