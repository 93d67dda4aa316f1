//! The waits behind the convenience methods: for a launch to be found, and for an instance to reach a state.
//!
//! Owns how a failed wait becomes the error of the call before it. It only reads.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    Call, CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, LaunchRecord, LaunchToken, Operation, ProvisionError, Result,
    wait::{self, WaitCause, WaitError, WaitPolicy},
};

/// Looks a token up until a launch is found, or `time` has passed since this call.
pub(crate) async fn look_up_within<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    token: &LaunchToken,
    time: Duration,
) -> Result<LaunchRecord> {
    let interval = provisioner.capabilities().poll_interval;
    let interval = interval.max(Duration::from_millis(1));
    let started = Instant::now();
    loop {
        let remaining = time.saturating_sub(started.elapsed());
        match provisioner.find_launch(token).await {
            Ok(LaunchRecord::NotFound) if !remaining.is_zero() => {
                sleep(interval.min(remaining)).await;
            }
            Err(error) if error.retry().delay().is_some() && !remaining.is_zero() => {
                let delay = error.retry().delay().unwrap_or_default();
                sleep(delay.max(interval).min(remaining)).await;
            }
            settled => return settled,
        }
    }
}

/// Waits until the instance that `operation` returned runs. If it does not, the error carries the
/// instance as it was last observed, unless it no longer exists.
pub(super) async fn wait_until_running<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    operation: Operation,
    info: InstanceInfo,
    policy: &WaitPolicy,
) -> Result<InstanceInfo> {
    let ids = std::slice::from_ref(&info.id);
    let goal = CloudInstanceState::Running;
    match wait::for_state_after(provisioner, ids, goal, policy, Some(info.state)).await {
        Ok(mut all) => Ok(with_status(info, all.remove(0))),
        Err(error) => {
            let instance = error.not_reached.first();
            let last = instance.and_then(|instance| instance.last.clone());
            let read_error = instance.and_then(|instance| instance.error.as_ref());
            let survivor = match last {
                _ if read_error.is_some_and(|error| error.kind() == ErrorKind::NotFound) => None,
                Some(status) if status.state.is_final() => None,
                Some(status) => Some(with_status(info, status)),
                None => Some(info),
            };
            let error = wait_failed(provisioner, operation, error);
            Err(error.with_survivors(survivor.into_iter().collect()))
        }
    }
}

/// Waits for one instance that a call has just changed.
pub(super) async fn wait_for_one<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    id: &InstanceId,
    goal: CloudInstanceState,
    policy: &WaitPolicy,
) -> Result<InstanceStatus, WaitError> {
    let ids = std::slice::from_ref(id);
    let mut all = wait::for_state_after(provisioner, ids, goal, policy, None).await?;
    Ok(all.remove(0))
}

/// Returns `info` with the newer values of `status`.
pub(crate) fn with_status(info: InstanceInfo, status: InstanceStatus) -> InstanceInfo {
    let InstanceStatus {
        id: _,
        state,
        native_state,
        state_reason,
        launch_failure,
        private_ip,
        public_ip,
        mac_address,
    } = status;
    InstanceInfo {
        state,
        native_state,
        state_reason,
        launch_failure,
        private_ip,
        public_ip,
        mac_address,
        ..info
    }
}

/// Converts a failed wait to the error of the call before it, which had its effect. A read that failed
/// for good keeps its own kind, which says what to do.
pub(super) fn wait_failed<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    operation: Operation,
    error: WaitError,
) -> ProvisionError {
    let call = Call::new(provisioner.capabilities().provider.as_str(), operation);
    let converted = match &error.cause {
        WaitCause::Deadline | WaitCause::PollLimit => call.timeout(Effect::Done),
        WaitCause::Unreachable(status) | WaitCause::Reverted(status) => {
            let needed = format!("{} ({})", error.goal, error.cause);
            call.wrong_state(&status.id, status.state, &needed)
                .with_effect(Effect::Done)
        }
        WaitCause::Failed(failed) => return failed.clone().with_effect(Effect::Done),
    };
    converted.with_source(error)
}
