//! Backends that forget the token of a batch because a part of it was terminated.

use std::{collections::HashMap, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceInfo, LaunchRecord, LaunchToken, Result};
use tokio::time::Instant;

use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override, token::lock},
};

/// BATCH-20.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a batch is launched again once one of its instances is terminated",
        violates: "BATCH-20",
        make: OverrideHarness::factory::<ForgetsBatches<false>>,
    },
    Mutant {
        name: "the memory of a batch ends with that of its first instance",
        violates: "BATCH-20",
        make: OverrideHarness::factory::<ForgetsBatches<true>>,
    },
    Mutant {
        name: "a token finds no batch of which one instance is terminated",
        violates: "BATCH-20",
        make: OverrideHarness::factory::<FindsWholeBatches>,
    },
    Mutant {
        name: "a replay returns the terminated part of a batch only",
        violates: "BATCH-20",
        make: OverrideHarness::factory::<ReplaysTheEnded>,
    },
    Mutant {
        name: "a replay launches two instances in place of one that is terminated",
        violates: "BATCH-20",
        make: OverrideHarness::factory::<ReplacesOneByTwo>,
    },
];

/// Forgets the token of a batch when one of its instances is terminated: at once, or `LATER`, when the declared
/// memory of a spent token is over.
#[derive(Default)]
struct ForgetsBatches<const LATER: bool> {
    tokens: Mutex<HashMap<InstanceId, LaunchToken>>,
    ended: Mutex<HashMap<LaunchToken, Instant>>,
}

#[async_trait]
impl<const LATER: bool> Override for ForgetsBatches<LATER> {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut config = config.clone();
        if let Some(token) = &config.launch_token {
            let ended = lock(&self.ended).get(token).copied();
            let memory = at.inner.capabilities().token_after_terminate;
            if ended.is_some_and(|ended| !LATER || ended.elapsed() > memory) {
                config.launch_token = LaunchToken::new(format!("again-{token}")).ok();
            }
        }
        let launched = at.inner.launch_instances(&config, count).await?;
        if let Some(token) = &config.launch_token {
            let ids = launched.iter().map(|info| info.id.clone());
            lock(&self.tokens).extend(ids.map(|id| (id, token.clone())));
        }
        Ok(launched)
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.terminate_instance(id).await?;
        let token = lock(&self.tokens).get(id).cloned();
        if let Some(token) = token {
            lock(&self.ended).entry(token).or_insert_with(Instant::now);
        }
        Ok(())
    }
}

#[derive(Default)]
struct FindsWholeBatches;

#[async_trait]
impl Override for FindsWholeBatches {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let found = at.inner.find_launch(token).await?;
        let partial = matches!(&found, LaunchRecord::Found(infos)
            if infos.iter().any(|info| info.state.is_ending()));
        Ok(if partial {
            LaunchRecord::NotFound
        } else {
            found
        })
    }
}

#[derive(Default)]
struct ReplaysTheEnded;

#[async_trait]
impl Override for ReplaysTheEnded {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut launched = at.inner.launch_instances(config, count).await?;
        if launched.iter().any(|info| info.state.is_ending()) {
            launched.retain(|info| info.state.is_ending());
        }
        Ok(launched)
    }
}

#[derive(Default)]
struct ReplacesOneByTwo;

#[async_trait]
impl Override for ReplacesOneByTwo {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let launched = at.inner.launch_instances(config, count).await?;
        if launched.iter().any(|info| info.state.is_ending()) {
            let mut other = config.clone();
            other.launch_token = None;
            at.inner
                .launch_instances(&other, NonZeroU32::MIN.saturating_add(1))
                .await?;
        }
        Ok(launched)
    }
}
