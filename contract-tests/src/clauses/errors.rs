//! Errors: the kind, the effect and the advice that a control loop acts on, and no secrets.
//!
//! Most clauses inject one fault into each of the seven calls that every backend has (the module
//! `calls`), check the error of each, and then check that the two instances which the calls were
//! made on are unchanged. After a fault that leaves the outcome unknown, a launch may also succeed,
//! if the instance that it returns is the one that its token finds.

mod advice;
mod checks;
mod native;
mod secrets;

use std::slice;

use fleetwright::{Effect, ErrorKind, Result, RetryAdvice, UserData};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout};

use self::checks::{
    errors_without_faults, fault_each_call, fault_each_call_ambiguously, launch_errors,
    require_effect_unknown, require_kind_and_effect, require_lost_response_error,
    require_provider_and_operation, require_retry_allowed,
};
pub(crate) use self::{
    advice::errors_13_not_found_advises_no_retry,
    native::{errors_15_native_errors_keep_their_meaning, errors_16_scope_is_that_of_the_error},
    secrets::errors_14_secrets_are_never_shown,
};
use super::calls::{CALLS, Subjects};
use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

/// ERRORS-01: a backend must report the account's limit as quota, without effect, and not as
/// something to retry at once.
///
/// Quota needs a person or a smaller fleet, not a retry. Needs: fault: quota.
///
/// Injects the fault into a launch of one instance and into a batch launch, and checks kind, effect
/// and advice of both errors.
pub(crate) async fn errors_01_quota_is_quota(cx: &Context) -> Outcome {
    for error in launch_errors(cx, &WireFault::Quota).await? {
        require_kind_and_effect(&error, ErrorKind::Quota, Effect::None)?;
        require(error.retry() != RetryAdvice::SameToken, || {
            format!("a quota error must not advise to retry at once, but: {error}")
        })?;
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// ERRORS-02: a backend must report missing capacity as capacity, without effect, with a scope.
///
/// The remedy is another offering, and the scope says which one to avoid. Needs: fault: capacity.
///
/// Injects the fault into a launch of one instance and into a batch launch, and checks kind, effect
/// and scopes of both errors.
pub(crate) async fn errors_02_capacity_is_capacity(cx: &Context) -> Outcome {
    for error in launch_errors(cx, &WireFault::Capacity).await? {
        require_kind_and_effect(&error, ErrorKind::Capacity, Effect::None)?;
        require(!error.scopes().is_empty(), || {
            format!("the error does not name the scope without capacity: {error}")
        })?;
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// ERRORS-03: a backend must report throttling as throttled, without effect, with the delay that
/// the cloud demands.
///
/// Retrying early prolongs throttling. Needs: fault: throttled.
///
/// Injects the fault into each of the seven calls. The delay in the error must be at least the
/// demanded one and at most twice as long, and nothing may have changed.
pub(crate) async fn errors_03_throttling_has_a_retry_delay(cx: &Context) -> Outcome {
    let wait = cx.throttle_delay();
    let fault = WireFault::Throttled(wait);
    let subjects = fault_each_call(cx, &fault, |error| {
        require_kind_and_effect(error, ErrorKind::Throttled, Effect::None)?;
        let kept =
            matches!(error.retry(), RetryAdvice::After(time) if time >= wait && time <= wait * 2);
        require(kept, || {
            format!("the cloud demands a retry after {wait:?}, but the error is: {error}")
        })
    })
    .await?;
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}

/// ERRORS-04: a backend must report expired credentials as unauthenticated, never as not found.
///
/// After not found, a manager would launch its whole fleet again. Needs: fault: bad credentials.
///
/// Injects the fault into each of the seven calls, checks kind and effect, and requires that
/// nothing has changed.
pub(crate) async fn errors_04_bad_credentials_are_unauthenticated(cx: &Context) -> Outcome {
    let check =
        |error: &_| require_kind_and_effect(error, ErrorKind::Unauthenticated, Effect::None);
    let subjects = fault_each_call(cx, &WireFault::BadCredentials, check).await?;
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}

/// ERRORS-05: a backend must report missing permissions as forbidden.
///
/// A person must grant permissions; a retry does not help. Needs: fault: forbidden.
///
/// Injects the fault into each of the seven calls, checks kind and effect, and requires that
/// nothing has changed.
pub(crate) async fn errors_05_missing_permissions_are_forbidden(cx: &Context) -> Outcome {
    let check = |error: &_| require_kind_and_effect(error, ErrorKind::Forbidden, Effect::None);
    let subjects = fault_each_call(cx, &WireFault::Forbidden, check).await?;
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}

/// ERRORS-06: a backend must report an internal error of the cloud as unavailable and retryable,
/// never as not found, and a launch's effect as unknown unless it looks the token up and returns
/// what it finds.
///
/// A manager that mistakes an outage for absence launches its fleet again. Needs: fault: server
/// error.
///
/// Injects internal errors before and after the effect into each of the seven calls. The advice
/// must allow a retry, and the effect of a change must not be none.
pub(crate) async fn errors_06_server_error_is_never_not_found(cx: &Context) -> Outcome {
    cx.faults(&[WireFault::ServerErrorBefore, WireFault::ServerErrorAfter])?;
    for fault in [WireFault::ServerErrorBefore, WireFault::ServerErrorAfter] {
        fault_each_call_ambiguously(cx, &fault, |error| {
            require(error.kind() == ErrorKind::Unavailable, || {
                format!("an internal error of the cloud must be unavailable, but: {error}")
            })?;
            require_retry_allowed(error)?;
            require_effect_unknown(error)
        })
        .await?;
    }
    Ok(Pass::Held)
}

/// ERRORS-07: a backend must report a response that it cannot parse as unexpected, with the effect
/// unknown if there may be one, or look a launch's token up and return what it finds, and never
/// panic.
///
/// Proxies return pages of HTML. Needs: fault: malformed.
///
/// Injects a response that cannot be parsed into each of the seven calls. A panic is a violation in
/// every clause; the recorder reports it.
pub(crate) async fn errors_07_malformed_response_is_an_error(cx: &Context) -> Outcome {
    fault_each_call_ambiguously(cx, &WireFault::Malformed, |error| {
        require(error.kind() == ErrorKind::Unexpected, || {
            format!("a response that cannot be parsed must fail as unexpected, but: {error}")
        })?;
        require_effect_unknown(error)
    })
    .await?;
    Ok(Pass::Held)
}

/// ERRORS-08: a backend must report a launch without a response as of unknown effect, unless it
/// looks the token up and returns what it finds.
///
/// "No effect" would be false and would cost an instance. Needs: fault: response lost.
///
/// Loses the response of every launch and, if the harness can, lets every launch hang. The error
/// must be timeout or unavailable and allow a retry; a success must be the one instance that
/// exists.
pub(crate) async fn errors_08_lost_response_has_unknown_effect(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ResponseLost])?;
    let config = cx.config_with_token();
    faults
        .inject_always(WireOp::Launch, WireFault::ResponseLost)
        .await;
    let result = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    match result {
        // The backend has looked the token up by itself, so the instance must exist.
        Ok(info) => {
            let list = cx.require_count(1).await?;
            require(list.iter().all(|one| one.id == info.id), || {
                format!("{} was returned, but {} exists", info.id, list[0].id)
            })?;
        }
        Err(error) => require_lost_response_error(&error)?,
    }
    if faults.supports(&WireFault::Hang) {
        faults.inject_always(WireOp::Launch, WireFault::Hang).await;
        let config = cx.config_with_token();
        let launch = cx.provisioner().launch_instance(&config);
        let result = timeout(cx.call_timeout(), launch).await;
        faults.clear().await;
        // A backend need not have a timeout of its own.
        if let Ok(Err(error)) = result {
            require_lost_response_error(&error)?;
        }
    }
    Ok(Pass::Held)
}

/// ERRORS-09: a backend must name provider and operation in every error, on one line.
///
/// During an incident, the error line is often all there is.
///
/// Provokes seven errors without faults and, if the harness can, an internal error in each of the
/// seven calls, and checks provider, operation and text.
pub(crate) async fn errors_09_error_names_provider_and_operation(cx: &Context) -> Outcome {
    for (operation, error) in errors_without_faults(cx).await? {
        require_provider_and_operation(cx, operation, &error)?;
    }
    let fault = WireFault::ServerErrorBefore;
    let faults = cx.harness().faults();
    let Some(faults) = faults.filter(|faults| faults.supports(&fault)) else {
        return Ok(Pass::Held);
    };
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        faults.inject_always(wire, fault.clone()).await;
        let result = subjects.call(cx, wire).await;
        cx.clear_faults(&faults).await?;
        if let Err(error) = result {
            require_provider_and_operation(cx, operation, &error)?;
        }
    }
    Ok(Pass::Held)
}

/// ERRORS-10: a backend must show user data in no error and no debug output.
///
/// Scripts contain credentials, and many people read logs.
///
/// Launches with a recognizable secret: successfully, with a token conflict, with too much user
/// data and with every ambiguous fault. Neither the secret nor its base64 form may be in any
/// output.
pub(crate) async fn errors_10_user_data_is_never_shown(cx: &Context) -> Outcome {
    // Its length is a multiple of three, so that its base64 form has no padding and can be found.
    let secret = "hunter2-hunter2-hunter2-hunter2-hunter2";
    let data =
        |bytes: &[u8]| UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()));
    let coded = serde_json::to_string(&data(secret.as_bytes())?);
    let coded = coded.map_err(|error| Failure::KitError(error.to_string()))?;
    let hides = |what: &str, shown: String| {
        let found = shown.contains("hunter2") || shown.contains(coded.trim_matches('"'));
        require(!found, || format!("{what} contains the user data"))
    };
    let mut config = cx.config_with_token();
    config.user_data = Some(data(secret.as_bytes())?);
    let mut results = vec![cx.provisioner().launch_instance(&config).await];
    let mut other = config.clone();
    other.disk_size_gb = std::num::NonZeroU32::new(44);
    results.push(cx.provisioner().launch_instance(&other).await);
    let most = cx.capabilities().max_user_data_bytes;
    let mut oversized = cx.config();
    let mut bytes = secret.as_bytes().to_vec();
    bytes.resize(most + 1, b'x');
    oversized.user_data = Some(data(&bytes)?);
    results.push(cx.provisioner().launch_instance(&oversized).await);
    for fault in WireFault::AMBIGUOUS {
        if let Some(faults) = cx
            .harness()
            .faults()
            .filter(|faults| faults.supports(&fault))
        {
            config.launch_token = Some(cx.new_token());
            faults.inject(WireOp::Launch, 1, fault).await;
            results.push(cx.provisioner().launch_instance(&config).await);
            faults.clear().await;
        }
    }
    for result in &results {
        hides("the debug output of a result", format!("{result:?}"))?;
        if let Err(error) = result {
            hides("an error", error.to_string())?;
        }
    }
    hides(
        "the handle's debug output",
        format!("{:?}", cx.provisioner()),
    )?;
    Ok(Pass::Held)
}

/// ERRORS-11: a backend must report a failed read as without effect.
///
/// A control loop may then retry it at any time. Needs: fault: server error.
///
/// Fails describe, list and lookup before and after they are carried out, also as batch and stream,
/// and checks the effect of every error.
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
            let mut results = vec![subjects.call(cx, wire).await.map(drop)];
            if wire == WireOp::Describe {
                let batch = cx.provisioner().describe_instances(ids).await;
                results.extend(batch.into_iter().map(|result| result.map(drop)));
            }
            if wire == WireOp::List {
                let filter = cx.filter();
                let mut stream = cx.provisioner().stream_instances(&filter);
                while let Some(item) = stream.next().await {
                    results.extend(item.is_err().then(|| item.map(drop)));
                }
            }
            cx.clear_faults(&faults).await?;
            // Other clauses check how they fail.
            for error in results.into_iter().filter_map(Result::err) {
                require(error.effect() == Effect::None, || {
                    format!("a read changes nothing, but: {error}")
                })?;
            }
        }
    }
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}

/// ERRORS-12: a backend must respect the delay that the cloud demands when it retries a throttled
/// call by itself.
///
/// Retries against a cloud that demands a pause get the whole account throttled. Needs: oracle,
/// fault: throttled.
///
/// Throttles every request and makes each of the seven calls once. The oracle's count of requests
/// must fit into the time that the call took.
pub(crate) async fn errors_12_throttled_call_is_not_retried_early(cx: &Context) -> Outcome {
    let wait = cx.throttle_delay();
    let (oracle, fault) = (cx.oracle()?, WireFault::Throttled(wait));
    let faults = cx.faults(slice::from_ref(&fault))?;
    let subjects = Subjects::launch(cx).await?;
    for (operation, wire) in CALLS {
        // Every request is throttled, whatever the call sends.
        faults.inject_always(WireOp::Any, fault.clone()).await;
        let (start, before) = (Instant::now(), oracle.calls().await);
        cx.announce(Some(&fault));
        let _ = subjects.call(cx, wire).await;
        cx.announce(None);
        let (took, sent) = (start.elapsed(), oracle.calls().await - before);
        cx.clear_faults(&faults).await?;
        let repeated = u32::try_from(sent.saturating_sub(1)).unwrap_or(u32::MAX);
        require(wait.saturating_mul(repeated) <= took, || {
            format!(
                "the cloud demands a delay of {wait:?}, but {operation} sent {sent} requests in {took:?}"
            )
        })?;
    }
    subjects.require_unchanged(cx).await?;
    Ok(Pass::Held)
}
