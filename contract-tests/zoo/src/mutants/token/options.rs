//! Backends whose tokens depend on the options of a handle.

use std::num::NonZeroU32;

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceInfo, Result};

use super::{CallContext, Override};

/// Launches again if the options of the handle differ from those of the launch.
#[derive(Default)]
pub(super) struct ComparesOptions;

#[async_trait]
impl Override for ComparesOptions {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(&with_options(at, config)).await
    }
}

/// Launches a batch again if the options of the handle differ from those of the launch.
#[derive(Default)]
pub(super) struct ComparesOptionsOfBatches;

#[async_trait]
impl Override for ComparesOptionsOfBatches {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = with_options(at, config);
        at.inner.launch_instances(&config, count).await
    }
}

/// Returns the config with a token of its own for a handle with other options.
fn with_options(at: CallContext<'_>, config: &InstanceConfig) -> InstanceConfig {
    let mut config = config.clone();
    if at.other_options {
        let token = config.launch_token.take();
        config.launch_token = token.map(|token| token.item(7));
    }
    config
}
