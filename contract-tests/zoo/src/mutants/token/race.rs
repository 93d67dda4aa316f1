//! Backends that launch twice if one token is used for two different launches.

use std::{collections::HashMap, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceInfo, LaunchRecord, LaunchToken, Result};

use super::{CallContext, Override, conflict, launch_with, lock};

/// The native token of the batch of a token.
fn token_of_batch(token: &LaunchToken) -> LaunchToken {
    LaunchToken::from(token.derive("batch"))
}

/// Launches a batch with a native token of its own.
async fn launch_batch(
    at: CallContext<'_>,
    config: &InstanceConfig,
    count: NonZeroU32,
) -> Result<Vec<InstanceInfo>> {
    let mut config = config.clone();
    config.launch_token = config.launch_token.as_ref().map(token_of_batch);
    at.inner.launch_instances(&config, count).await
}

/// Finds a single launch or a batch.
async fn find_either(at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
    let found = at.inner.find_launch(token).await?;
    if found != LaunchRecord::NotFound {
        return Ok(found);
    }
    at.inner.find_launch(&token_of_batch(token)).await
}

/// Has a native token for single launches and another one for batches.
#[derive(Default)]
pub(super) struct TokensOfBatches;

#[async_trait]
impl Override for TokensOfBatches {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        launch_batch(at, config, count).await
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        find_either(at, token).await
    }
}

/// What a launch of a token was for, once it has returned.
type Uses<T> = Mutex<HashMap<LaunchToken, T>>;

/// Checks that a token was not used for anything else.
fn check<T: PartialEq>(uses: &Uses<T>, token: Option<&LaunchToken>, now: &T) -> Result<()> {
    let Some(token) = token else { return Ok(()) };
    match lock(uses).get(token) {
        Some(before) if before != now => Err(conflict(token)),
        Some(_) | None => Ok(()),
    }
}

fn record<T>(uses: &Uses<T>, token: Option<&LaunchToken>, now: T) {
    if let Some(token) = token {
        lock(uses).entry(token.clone()).or_insert(now);
    }
}

/// Checks before a launch whether the token belongs to a batch. Another launch can come in between.
#[derive(Default)]
pub(super) struct ChecksBatchThenLaunches(Uses<bool>);

#[async_trait]
impl Override for ChecksBatchThenLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let token = config.launch_token.as_ref();
        check(&self.0, token, &false)?;
        let info = at.inner.launch_instance(config).await?;
        record(&self.0, token, false);
        Ok(info)
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let token = config.launch_token.as_ref();
        check(&self.0, token, &true)?;
        let infos = launch_batch(at, config, count).await?;
        record(&self.0, token, true);
        Ok(infos)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        find_either(at, token).await
    }
}

/// Checks before a launch whether the token was used in another zone, and then launches with a token of the
/// zone. Another launch can come in between.
#[derive(Default)]
pub(super) struct ChecksZoneThenLaunches(Uses<String>);

impl ChecksZoneThenLaunches {
    fn native(token: &LaunchToken, zone: &str) -> LaunchToken {
        if zone.is_empty() {
            return token.clone();
        }
        LaunchToken::from(token.derive(zone))
    }
}

#[async_trait]
impl Override for ChecksZoneThenLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let zone = config.placement.zone.as_ref().map(ToString::to_string);
        let (zone, token) = (zone.unwrap_or_default(), config.launch_token.as_ref());
        check(&self.0, token, &zone)?;
        let native = token.map(|token| Self::native(token, &zone));
        let info = launch_with(at, config, native).await?;
        record(&self.0, token, zone);
        Ok(info)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let zone = lock(&self.0).get(token).cloned().unwrap_or_default();
        at.inner.find_launch(&Self::native(token, &zone)).await
    }
}
