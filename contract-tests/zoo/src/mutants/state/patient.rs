//! Backends that wait for the outcome of a launch and report it wrongly.

use async_trait::async_trait;
use fleetwright::{Effect, InstanceConfig, InstanceInfo, Operation, Result};

use crate::{
    CallContext, Override,
    benign::{End, launch_and_wait, refusal},
};

/// Refuses a failed launch without the cloud's reason.
#[derive(Default)]
pub(super) struct RefusesWithoutReason;

#[async_trait]
impl Override for RefusesWithoutReason {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match launch_and_wait(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::NoCapacity(error) => Err(*error),
            End::Failed(_) => Err(refusal(Effect::None)),
        }
    }
}

/// Refuses a failed launch with the cloud's code as text, where a program cannot read it.
#[derive(Default)]
pub(super) struct RefusesInWords;

#[async_trait]
impl Override for RefusesInWords {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match launch_and_wait(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::NoCapacity(error) => Err(*error),
            End::Failed(code) => Err(at
                .call(Operation::LaunchInstance)
                .unexpected(Effect::None, &code)),
        }
    }
}

/// Refuses every failed launch as unexpected, also one that failed for capacity.
#[derive(Default)]
pub(super) struct RefusesCapacityAsUnexpected;

#[async_trait]
impl Override for RefusesCapacityAsUnexpected {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match launch_and_wait(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::NoCapacity(_) => Err(refusal(Effect::None)),
            End::Failed(code) => Err(refusal(Effect::None).with_native_code(code)),
        }
    }
}

/// Refuses a failed launch with the reason, but with unknown effect.
#[derive(Default)]
pub(super) struct RefusesWithUnknownEffect;

#[async_trait]
impl Override for RefusesWithUnknownEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match launch_and_wait(at, config).await? {
            End::Launched(info) => Ok(*info),
            End::NoCapacity(error) => Err(*error),
            End::Failed(code) => Err(refusal(Effect::Unknown).with_native_code(code)),
        }
    }
}
