//! Backends that wait for the end of a launch, and tell it wrong.

use async_trait::async_trait;
use fleetwright::{Effect, InstanceConfig, InstanceInfo, Result};

use crate::{
    CallContext, Override,
    benign::{End, awaited, refusal},
};

/// Refuses a launch that failed, and keeps the reason to itself.
#[derive(Default)]
pub(super) struct RefusesWithoutReason;

#[async_trait]
impl Override for RefusesWithoutReason {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match awaited(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::Failed(_) => Err(refusal(Effect::None)),
        }
    }
}

/// Refuses a launch that failed with the reason, and does not know what is left of it.
#[derive(Default)]
pub(super) struct RefusesInDoubt;

#[async_trait]
impl Override for RefusesInDoubt {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match awaited(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::Failed(code) => Err(refusal(Effect::Unknown).with_native_code(code)),
        }
    }
}
