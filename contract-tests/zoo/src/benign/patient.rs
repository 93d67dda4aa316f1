//! A backend that waits for the outcome of its launches.

use std::time::Duration;

use async_trait::async_trait;
use fleetwright::{
    Call,
    CloudInstanceState::{Pending, Terminated},
    Effect, InstanceConfig, InstanceInfo, Operation, ProvisionError, Result, Scope,
};
use tokio::time::sleep;

use crate::{CallContext, Override};

/// The pause between two reads.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most reads. A launch that takes longer is returned as it is.
const MAX_POLLS: usize = 600;

/// The outcome of a launch.
pub(crate) enum End {
    /// It is pending or running.
    Launched(Box<InstanceInfo>),
    /// It failed for missing capacity: how it is to be refused.
    NoCapacity(Box<ProvisionError>),
    /// It failed for another reason, with the cloud's code.
    Failed(String),
}

/// Launches and polls until the outcome is known or a read fails.
pub(crate) async fn launch_and_wait(at: CallContext<'_>, config: &InstanceConfig) -> Result<End> {
    let launched = at.inner.launch_instance(config).await?;
    if launched.state != Pending {
        return Ok(End::Launched(Box::new(launched)));
    }
    for _ in 0..MAX_POLLS {
        sleep(POLL_INTERVAL).await;
        let Ok(status) = at.inner.describe_instance(&launched.id).await else {
            break;
        };
        match (status.state, status.state_reason) {
            (Pending, _) => {}
            (Terminated, Some(reason)) if reason != "terminated" => {
                let code = reason.split(':').next().unwrap_or_default();
                if code == "InsufficientCapacity" {
                    let call = at.call(Operation::LaunchInstance);
                    let refused = call.capacity(Scope::Region, "the launch failed");
                    return Ok(End::NoCapacity(Box::new(refused.with_native_code(code))));
                }
                return Ok(End::Failed(code.to_owned()));
            }
            _ => break,
        }
    }
    Ok(End::Launched(Box::new(launched)))
}

/// Returns the error of a launch that failed.
pub(crate) fn refusal(effect: Effect) -> ProvisionError {
    Call::new("memory", Operation::LaunchInstance).unexpected(effect, "the launch failed")
}

/// Waits for the outcome of a launch, and refuses a failed one with the cloud's reason.
#[derive(Default)]
pub(super) struct WaitsForOutcome;

#[async_trait]
impl Override for WaitsForOutcome {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match launch_and_wait(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::NoCapacity(error) => Err(*error),
            End::Failed(code) => Err(refusal(Effect::None).with_native_code(code)),
        }
    }
}
