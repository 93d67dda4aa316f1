//! Backends that do not refuse an unknown instance type as they must.

use std::num::NonZeroU32;

use async_trait::async_trait;
use fleetwright::{Effect, InstanceConfig, InstanceInfo, Operation, Result};
use fleetwright_contract_tests::Harness as _;

use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override},
};

/// LAUNCH-15.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "an unknown type is replaced by the default type",
        violates: "LAUNCH-15",
        make: OverrideHarness::factory::<ReplacesUnknownTypes>,
    },
    Mutant {
        name: "an unknown type of a batch is replaced by the default type",
        violates: "LAUNCH-15",
        make: OverrideHarness::factory::<ReplacesUnknownTypesOfBatches>,
    },
    Mutant {
        name: "an unknown type fails as unavailable",
        violates: "LAUNCH-15",
        make: OverrideHarness::factory::<UnknownTypeIsAnOutage>,
    },
];

/// Returns whether the cloud does not have the config's type.
fn unknown_type(at: CallContext<'_>, config: &InstanceConfig) -> bool {
    at.harness.unknown_type().as_ref() == Some(&config.instance_type)
}

/// Returns the config with a type that exists.
fn replaced(at: CallContext<'_>, config: &InstanceConfig) -> InstanceConfig {
    let mut config = config.clone();
    if unknown_type(at, &config) {
        config.instance_type = at.harness.config().instance_type;
    }
    config
}

#[derive(Default)]
struct ReplacesUnknownTypes;

#[async_trait]
impl Override for ReplacesUnknownTypes {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(&replaced(at, config)).await
    }
}

#[derive(Default)]
struct ReplacesUnknownTypesOfBatches;

#[async_trait]
impl Override for ReplacesUnknownTypesOfBatches {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = replaced(at, config);
        at.inner.launch_instances(&config, count).await
    }
}

#[derive(Default)]
struct UnknownTypeIsAnOutage;

#[async_trait]
impl Override for UnknownTypeIsAnOutage {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if unknown_type(at, config) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::None, "the catalog did not respond"));
        }
        at.inner.launch_instance(config).await
    }
}
