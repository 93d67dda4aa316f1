//! Errors: the kind, the effect and the advice that a control loop acts on, and no secrets.

use std::slice;

use fleetwright::{
    Effect, ErrorKind, InstanceId, LaunchRecord, LaunchToken, Operation, OptionalVerb,
    ProvisionError, Result, RetryAdvice, UserData,
};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout};

use super::calls::{CALLS, Subjects};
use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

pub(crate) async fn errors_01_quota_is_quota(cx: &Context) -> Outcome {
    for error in refused_launches(cx, &WireFault::Quota).await? {
        told(&error, ErrorKind::Quota, Effect::None)?;
        require(error.retry() != RetryAdvice::SameToken, || {
            format!("a limit does not go away by asking again at once, but: {error}")
        })?;
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_02_capacity_is_capacity(cx: &Context) -> Outcome {
    for error in refused_launches(cx, &WireFault::Capacity).await? {
        told(&error, ErrorKind::Capacity, Effect::None)?;
        require(!error.scopes().is_empty(), || {
            format!("the error does not say where no machine is free: {error}")
        })?;
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_03_throttling_has_a_retry_delay(cx: &Context) -> Outcome {
    let wait = cx.throttle_delay();
    let fault = WireFault::Throttled(wait);
    let subjects = strike_each(cx, &fault, |error| {
        told(error, ErrorKind::Throttled, Effect::None)?;
        let kept =
            matches!(error.retry(), RetryAdvice::After(time) if time >= wait && time <= wait * 2);
        require(kept, || {
            format!("the cloud said to come back after {wait:?}, the error says: {error}")
        })
    })
    .await?;
    subjects.are_untouched(cx).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_04_bad_credentials_are_unauthenticated(cx: &Context) -> Outcome {
    let judge = |error: &_| told(error, ErrorKind::Unauthenticated, Effect::None);
    let subjects = strike_each(cx, &WireFault::BadCredentials, judge).await?;
    subjects.are_untouched(cx).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_05_missing_permissions_are_forbidden(cx: &Context) -> Outcome {
    let judge = |error: &_| told(error, ErrorKind::Forbidden, Effect::None);
    let subjects = strike_each(cx, &WireFault::Forbidden, judge).await?;
    subjects.are_untouched(cx).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_06_server_error_is_never_not_found(cx: &Context) -> Outcome {
    cx.faults(&[WireFault::ServerErrorBefore, WireFault::ServerErrorAfter])?;
    for fault in [WireFault::ServerErrorBefore, WireFault::ServerErrorAfter] {
        strike_each_unheard(cx, &fault, |error| {
            require(error.kind() == ErrorKind::Unavailable, || {
                format!("an internal error of the cloud must be unavailable, but: {error}")
            })?;
            may_be_repeated(error)?;
            effect_is_not_known(error)
        })
        .await?;
    }
    Ok(Pass::Held)
}

pub(crate) async fn errors_07_malformed_response_is_an_error(cx: &Context) -> Outcome {
    strike_each_unheard(cx, &WireFault::Malformed, |error| {
        require(error.kind() == ErrorKind::Unexpected, || {
            format!("an answer that cannot be read must be unexpected, but: {error}")
        })?;
        effect_is_not_known(error)
    })
    .await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_08_lost_response_has_unknown_effect(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ResponseLost])?;
    let config = cx.config_with_token();
    faults
        .inject_always(WireOp::Launch, WireFault::ResponseLost)
        .await;
    let answer = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    match answer {
        // It has looked the token up by itself: then there must be what it found.
        Ok(info) => {
            let list = cx.require_count(1).await?;
            require(list.iter().all(|one| one.id == info.id), || {
                format!("{} was answered, but {} exists", info.id, list[0].id)
            })?;
        }
        Err(error) => unheard_of(&error)?,
    }
    if faults.supports(&WireFault::Hang) {
        faults.inject_always(WireOp::Launch, WireFault::Hang).await;
        let config = cx.config_with_token();
        let launch = cx.provisioner().launch_instance(&config);
        let answer = timeout(cx.call_timeout(), launch).await;
        faults.clear().await;
        // A backend may leave it to its caller to lose patience.
        if let Ok(Err(error)) = answer {
            unheard_of(&error)?;
        }
    }
    Ok(Pass::Held)
}

pub(crate) async fn errors_09_error_names_provider_and_operation(cx: &Context) -> Outcome {
    for (operation, error) in errors_without_faults(cx).await? {
        names_itself(cx, operation, &error)?;
    }
    let fault = WireFault::ServerErrorBefore;
    let faults = cx.harness().faults();
    let Some(faults) = faults.filter(|faults| faults.supports(&fault)) else {
        return Ok(Pass::Held);
    };
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        let answer = subjects.call(cx, wire).await;
        cx.clear_faults(&faults).await?;
        if let Err(error) = answer {
            names_itself(cx, operation, &error)?;
        }
    }
    Ok(Pass::Held)
}

pub(crate) async fn errors_10_user_data_is_never_shown(cx: &Context) -> Outcome {
    // Of a length that base64 maps without a rest, so that its code stays recognisable.
    let secret = "hunter2-hunter2-hunter2-hunter2-hunter2";
    let data =
        |bytes: &[u8]| UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()));
    let coded = serde_json::to_string(&data(secret.as_bytes())?);
    let coded = coded.map_err(|error| Failure::KitError(error.to_string()))?;
    let hides = |what: &str, shown: String| {
        let found = shown.contains("hunter2") || shown.contains(coded.trim_matches('"'));
        require(!found, || format!("{what} shows the user data"))
    };
    let mut config = cx.config_with_token();
    config.user_data = Some(data(secret.as_bytes())?);
    let mut answers = vec![cx.provisioner().launch_instance(&config).await];
    let mut other = config.clone();
    other.disk_size_gb = std::num::NonZeroU32::new(44);
    answers.push(cx.provisioner().launch_instance(&other).await);
    let most = cx.capabilities().max_user_data_bytes;
    let mut oversized = cx.config();
    let mut bytes = secret.as_bytes().to_vec();
    bytes.resize(most + 1, b'x');
    oversized.user_data = Some(data(&bytes)?);
    answers.push(cx.provisioner().launch_instance(&oversized).await);
    for fault in WireFault::AMBIGUOUS {
        if let Some(faults) = cx
            .harness()
            .faults()
            .filter(|faults| faults.supports(&fault))
        {
            config.launch_token = Some(cx.new_token());
            faults.inject(WireOp::Launch, 1, fault).await;
            answers.push(cx.provisioner().launch_instance(&config).await);
            faults.clear().await;
        }
    }
    for answer in &answers {
        hides("an answer's debug output", format!("{answer:?}"))?;
        if let Err(error) = answer {
            hides("an error", error.to_string())?;
        }
    }
    hides(
        "the handle's debug output",
        format!("{:?}", cx.provisioner()),
    )?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_11_failed_read_has_no_effect(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ServerErrorBefore])?;
    let subjects = Subjects::launch(cx).await?;
    let ids = slice::from_ref(&subjects.running);
    let kinds = [
        WireFault::ServerErrorBefore,
        WireFault::ServerErrorAfter,
        WireFault::RequestLost,
    ];
    for fault in kinds.into_iter().filter(|fault| faults.supports(fault)) {
        for wire in [WireOp::Describe, WireOp::List, WireOp::FindLaunch] {
            faults.inject_always(wire, fault.clone()).await;
            let mut answers = vec![subjects.call(cx, wire).await.map(drop)];
            if wire == WireOp::Describe {
                let batch = cx.provisioner().describe_instances(ids).await;
                answers.extend(batch.into_iter().map(|answer| answer.map(drop)));
            }
            if wire == WireOp::List {
                let filter = cx.filter();
                let mut stream = cx.provisioner().stream_instances(&filter);
                while let Some(item) = stream.next().await {
                    answers.extend(item.is_err().then(|| item.map(drop)));
                }
            }
            cx.clear_faults(&faults).await?;
            // Whether they fail as they should is another clause's question.
            for error in answers.into_iter().filter_map(Result::err) {
                require(error.effect() == Effect::None, || {
                    format!("a read changes nothing, but: {error}")
                })?;
            }
        }
    }
    subjects.are_untouched(cx).await?;
    Ok(Pass::Held)
}

pub(crate) async fn errors_12_throttled_call_is_not_retried_early(cx: &Context) -> Outcome {
    let wait = cx.throttle_delay();
    let (oracle, fault) = (cx.oracle()?, WireFault::Throttled(wait));
    let faults = cx.faults(slice::from_ref(&fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        // Whatever it is sent for, the cloud wants quiet.
        faults.inject_always(WireOp::Any, fault.clone()).await;
        let (began, before) = (Instant::now(), oracle.calls().await);
        let _ = subjects.call(cx, wire).await;
        let (took, sent) = (began.elapsed(), oracle.calls().await - before);
        cx.clear_faults(&faults).await?;
        let repeated = u32::try_from(sent.saturating_sub(1)).unwrap_or(u32::MAX);
        require(wait.saturating_mul(repeated) <= took, || {
            format!(
                "the cloud asks for {wait:?} of quiet, and {operation} was sent {sent} times in {took:?}"
            )
        })?;
    }
    subjects.are_untouched(cx).await?;
    Ok(Pass::Held)
}

/// Strikes every launch with `fault`, and answers the errors of a launch of one and of several.
async fn refused_launches(cx: &Context, fault: &WireFault) -> Result<Vec<ProvisionError>, Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    faults.inject_always(WireOp::Launch, fault.clone()).await;
    let three = std::num::NonZeroU32::MIN.saturating_add(2);
    let one = cx.provisioner().launch_instance(&cx.config()).await;
    let several = cx.provisioner().launch_instances(&cx.config(), three).await;
    cx.clear_faults(&faults).await?;
    Ok(vec![
        failed(Operation::LaunchInstance, one)?,
        failed(Operation::LaunchInstances, several)?,
    ])
}

/// Strikes each of the seven calls with `fault`, and lets `judge` look at its error.
async fn strike_each(
    cx: &Context,
    fault: &WireFault,
    judge: impl Fn(&ProvisionError) -> Result<(), Failure>,
) -> Result<Subjects, Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        let answer = subjects.call(cx, wire).await;
        cx.clear_faults(&faults).await?;
        judge(&failed(operation, answer)?)?;
    }
    Ok(subjects)
}

/// The same with a fault after which the call may have been carried out: a launch may then also
/// have looked its token up, and must have answered what that finds.
async fn strike_each_unheard(
    cx: &Context,
    fault: &WireFault,
    judge: impl Fn(&ProvisionError) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let faults = cx.faults(slice::from_ref(fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        let answer = subjects.call(cx, wire).await;
        cx.clear_faults(&faults).await?;
        match answer {
            Ok(Some((token, id))) => is_what_the_token_finds(cx, &token, &id).await?,
            answer => judge(&failed(operation, answer)?)?,
        }
    }
    Ok(())
}

async fn is_what_the_token_finds(
    cx: &Context,
    token: &LaunchToken,
    id: &InstanceId,
) -> Result<(), Failure> {
    cx.settle_reads().await;
    let found = cx.provisioner().find_launch(token).await;
    let found = found.map_err(|error| Failure::call_failed("find_launch", &error))?;
    let same = matches!(&found, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == *id);
    require(same, || {
        format!("a launch whose answer was lost answered {id}, but its token finds {found:?}")
    })
}

/// The errors that can be had anywhere, with the calls they are of.
async fn errors_without_faults(cx: &Context) -> Result<Vec<(Operation, ProvisionError)>, Failure> {
    let (provisioner, unknown) = (cx.provisioner(), cx.harness().unknown_id());
    let mut errors = Vec::new();
    let mut add = |operation, answer| {
        errors.push((operation, failed(operation, answer)?));
        Ok::<(), Failure>(())
    };
    let answer = provisioner.describe_instance(&unknown).await.map(drop);
    add(Operation::DescribeInstance, answer)?;
    add(
        Operation::StopInstance,
        provisioner.stop_instance(&unknown).await,
    )?;
    let answer = provisioner.start_instance(&unknown).await.map(drop);
    add(Operation::StartInstance, answer)?;
    add(
        Operation::TerminateInstance,
        provisioner.terminate_instance(&unknown).await,
    )?;
    let mut oversized = cx.config();
    let bytes = vec![b'x'; cx.capabilities().max_user_data_bytes + 1];
    let data = UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()))?;
    oversized.user_data = Some(data);
    let answer = provisioner.launch_instance(&oversized).await.map(drop);
    add(Operation::LaunchInstance, answer)?;
    let reboot = provisioner.reboot_instance(&unknown, fleetwright::Reboot::Soft);
    add(OptionalVerb::RebootInstance.into(), reboot.await)?;
    let console = provisioner.console_output(&unknown).await.map(drop);
    add(OptionalVerb::ConsoleOutput.into(), console)?;
    Ok(errors)
}

/// The error of a call that must fail.
fn failed<T: std::fmt::Debug>(
    operation: Operation,
    answer: Result<T>,
) -> Result<ProvisionError, Failure> {
    match answer {
        Err(error) => Ok(error),
        Ok(value) => Err(Failure::violated(format!(
            "{operation} cannot have succeeded, but answered {value:?}"
        ))),
    }
}

/// The kind, and for what is no read the effect: a read has none in any case.
fn told(error: &ProvisionError, kind: ErrorKind, effect: Effect) -> Result<(), Failure> {
    let right = error.kind() == kind && (error.operation().is_read() || error.effect() == effect);
    require(right, || {
        format!("must be {kind} with {effect}, but: {error}")
    })
}

/// A launch without an answer.
fn unheard_of(error: &ProvisionError) -> Result<(), Failure> {
    let silent = matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unavailable);
    require(silent, || {
        format!("no answer came, which is a timeout or unavailable, but: {error}")
    })?;
    require(error.effect() == Effect::Unknown, || {
        format!("nobody knows what became of the launch, but: {error}")
    })?;
    may_be_repeated(error)
}

fn may_be_repeated(error: &ProvisionError) -> Result<(), Failure> {
    require(error.retry().delay().is_some(), || {
        format!("the same call may succeed later, but the error advises against it: {error}")
    })
}

/// A launch that may have happened is of unknown effect, and no change that may have happened is
/// without one.
fn effect_is_not_known(error: &ProvisionError) -> Result<(), Failure> {
    let (operation, effect) = (error.operation(), error.effect());
    let told = if operation == Operation::LaunchInstance {
        effect == Effect::Unknown
    } else {
        operation.is_read() || effect != Effect::None
    };
    require(told, || {
        format!("nobody knows what became of the call, but: {error}")
    })
}

/// Demands that an error names its provider and its operation and says something. That its text
/// shows all of it on one line is the core's doing.
fn names_itself(cx: &Context, operation: Operation, error: &ProvisionError) -> Result<(), Failure> {
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
        format!("an error must say on one line who failed at what, but: {text:?}")
    })
}
