//! Errors: the advice about ids that no retry can find.

use fleetwright::{
    ErrorKind, InstanceId, InstanceProvisioner, ProvisionError, Result, RetryAdvice,
};

use crate::{Context, Failure, Outcome, Pass, require};

/// ERRORS-13: a backend must advise no retry with not found for an id that no instance has, or of
/// an instance that is long gone, from describe, stop, start and terminate, for one instance and in
/// a batch.
///
/// A retry layer follows the advice: every wrong id would cost the whole consistency window, and one
/// of them in a batch would delay all others.
///
/// Makes the calls for an unknown id, in batches beside an instance that exists. The last batch
/// terminates that instance. Then waits until its record may be deleted, and makes the same calls
/// for its id; if the cloud keeps a record, they need not return not found.
pub(crate) async fn errors_13_not_found_advises_no_retry(cx: &Context) -> Outcome {
    let (handle, unknown) = (cx.provisioner(), cx.harness().unknown_id());
    let id = cx.launch_running().await?.id;
    for (call, error) in call_each(handle, &unknown, &id).await {
        require_final(call, &unknown, error)?;
    }
    // The batch has terminated it.
    cx.wait_until_terminated(&id).await?;
    let capabilities = cx.capabilities();
    let gone_after = capabilities.terminated_visible + capabilities.consistency_window;
    if !cx.can_advance_time(gone_after) {
        return Ok(Pass::Held);
    }
    cx.advance_time(gone_after).await;
    for (call, error) in call_each(handle, &id, &unknown).await {
        require_final(call, &id, error)?;
    }
    Ok(Pass::Held)
}

/// Makes each call for `id`, in batches after `other`, and returns the error for `id`. The calls that
/// change the other instance least come first.
async fn call_each(
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    other: &InstanceId,
) -> Vec<(&'static str, Option<ProvisionError>)> {
    let both = [other.clone(), id.clone()];
    vec![
        (
            "describe_instance",
            handle.describe_instance(id).await.err(),
        ),
        ("start_instance", handle.start_instance(id).await.err()),
        ("stop_instance", handle.stop_instance(id).await.err()),
        (
            "terminate_instance",
            handle.terminate_instance(id).await.err(),
        ),
        (
            "describe_instances",
            last_error(handle.describe_instances(&both).await),
        ),
        (
            "start_instances",
            last_error(handle.start_instances(&both).await),
        ),
        (
            "stop_instances",
            last_error(handle.stop_instances(&both).await),
        ),
        (
            "terminate_instances",
            last_error(handle.terminate_instances(&both).await),
        ),
    ]
}

/// Returns the error of the last item of a batch.
fn last_error<T>(results: Vec<Result<T>>) -> Option<ProvisionError> {
    results.into_iter().last().and_then(Result::err)
}

/// Requires that an error which is not found advises no retry.
fn require_final(
    call: &str,
    id: &InstanceId,
    error: Option<ProvisionError>,
) -> Result<(), Failure> {
    let not_found = error.filter(|error| error.kind() == ErrorKind::NotFound);
    let advised = not_found.filter(|error| error.retry() != RetryAdvice::Never);
    require(advised.is_none(), || {
        let error = advised.iter().map(ToString::to_string).collect::<String>();
        format!("{id} does not exist, but {call} advises to retry: {error}")
    })
}
