//! A backend that waits for the end of its launches.

use std::time::Duration;

use async_trait::async_trait;
use fleetwright::{
    Call,
    CloudInstanceState::{Pending, Terminated},
    Effect, InstanceConfig, InstanceInfo, Operation, ProvisionError, Result,
};
use tokio::time::sleep;

use crate::{CallContext, Override};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);
/// A launch that takes longer is answered as it is.
const LOOKS: usize = 600;

/// What a launch came to.
pub(crate) enum End {
    /// It boots, or has booted.
    Launched(Box<InstanceInfo>),
    /// It failed, with the cloud's code.
    Failed(String),
}

/// Launches and looks on until the launch has come to an end, or cannot be looked at.
pub(crate) async fn awaited(at: CallContext<'_>, config: &InstanceConfig) -> Result<End> {
    let launched = at.inner.launch_instance(config).await?;
    if launched.state != Pending {
        return Ok(End::Launched(Box::new(launched)));
    }
    for _ in 0..LOOKS {
        sleep(LOOK).await;
        let Ok(status) = at.inner.describe_instance(&launched.id).await else {
            break;
        };
        match (status.state, status.state_reason) {
            (Pending, _) => {}
            (Terminated, Some(reason)) if reason != "terminated" => {
                let code = reason.split(':').next().unwrap_or_default();
                return Ok(End::Failed(code.to_owned()));
            }
            _ => break,
        }
    }
    Ok(End::Launched(Box::new(launched)))
}

/// A launch that failed, as an error.
pub(crate) fn refusal(effect: Effect) -> ProvisionError {
    Call::new("memory", Operation::LaunchInstance).unexpected(effect, "the launch failed")
}

/// Waits for the end of a launch, and refuses one that failed with the cloud's reason.
#[derive(Default)]
pub(super) struct PatientLaunch;

#[async_trait]
impl Override for PatientLaunch {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match awaited(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::Failed(code) => Err(refusal(Effect::None).with_native_code(code)),
        }
    }
}
