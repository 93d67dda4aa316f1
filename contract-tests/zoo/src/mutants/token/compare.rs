//! Backends that compare tokens or configs wrongly.

use std::{
    collections::{HashMap, HashSet},
    marker::PhantomData,
    num::NonZeroU32,
    sync::Mutex,
};

use async_trait::async_trait;
use fleetwright::{
    Call, CloudInstanceState, ErrorKind, InstanceConfig, InstanceInfo, InstanceType, InvalidValue,
    LaunchRecord, LaunchToken, Operation, Problem, Result, UserData, Zone,
};

use super::{CallContext, Override, conflict, launch_with, lock};

#[derive(Default)]
pub(super) struct IgnoresTokens;

#[async_trait]
impl Override for IgnoresTokens {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_with(at, config, None).await
    }
}

/// Returns the right instance from a replay, and launches another one.
#[derive(Default)]
pub(super) struct LaunchesOnReplay(Mutex<HashSet<(usize, LaunchToken)>>);

#[async_trait]
impl Override for LaunchesOnReplay {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let known = config.launch_token.clone().map(|token| (at.handle, token));
        let replay = known
            .as_ref()
            .is_some_and(|key| lock(&self.0).contains(key));
        let info = at.inner.launch_instance(config).await?;
        if replay && info.state == CloudInstanceState::Running {
            launch_with(at, config, None).await?;
        }
        lock(&self.0).extend(known);
        Ok(info)
    }
}

/// Replaces the config with the one that the token was first used with.
#[derive(Default)]
pub(super) struct ComparesNothing(Mutex<HashMap<LaunchToken, InstanceConfig>>);

#[async_trait]
impl Override for ComparesNothing {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let token = config.launch_token.as_ref();
        let first = token.and_then(|token| lock(&self.0).get(token).cloned());
        let config = first.unwrap_or_else(|| config.clone());
        let info = at.inner.launch_instance(&config).await?;
        let token = config.launch_token.clone();
        lock(&self.0).extend(token.map(|token| (token, config)));
        Ok(info)
    }
}

/// Replaces the user data with those that the token was first used with.
#[derive(Default)]
pub(super) struct IgnoresUserData(Mutex<HashMap<LaunchToken, Option<UserData>>>);

#[async_trait]
impl Override for IgnoresUserData {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut config = config.clone();
        let token = config.launch_token.clone();
        let first = token
            .as_ref()
            .and_then(|token| lock(&self.0).get(token).cloned());
        config.user_data = first.unwrap_or(config.user_data);
        let info = at.inner.launch_instance(&config).await?;
        lock(&self.0).extend(token.map(|token| (token, config.user_data)));
        Ok(info)
    }
}

/// Replaces the type with the one that the token was first used with.
#[derive(Default)]
pub(super) struct IgnoresType(Mutex<HashMap<LaunchToken, InstanceType>>);

#[async_trait]
impl Override for IgnoresType {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut config = config.clone();
        let token = config.launch_token.clone();
        let first = token
            .as_ref()
            .and_then(|token| lock(&self.0).get(token).cloned());
        config.instance_type = first.unwrap_or(config.instance_type);
        let info = at.inner.launch_instance(&config).await?;
        lock(&self.0).extend(token.map(|token| (token, config.instance_type)));
        Ok(info)
    }
}

/// Reports a conflict in the size of the disk as a bad parameter.
#[derive(Default)]
pub(super) struct ConflictIsInvalid;

#[async_trait]
impl Override for ConflictIsInvalid {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let hidden = |kind| kind == ErrorKind::TokenConflict && config.disk_size_gb.is_some();
        result.map_err(|error| {
            if !hidden(error.kind()) {
                return error;
            }
            let value = InvalidValue::new("launch token", Problem::Empty);
            Call::new("memory", Operation::LaunchInstance).invalid(value)
        })
    }
}

/// Compares tags in the order of a hash map, which differs each time.
#[derive(Default)]
pub(super) struct ComparesTagOrder(Mutex<HashMap<LaunchToken, usize>>);

#[async_trait]
impl Override for ComparesTagOrder {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let mut tags: Vec<_> = config.tags.iter().collect();
        let uses = lock(&self.0).get(token).copied().unwrap_or(0);
        let turned = uses * (tags.len() / 3);
        let turned = turned % tags.len().max(1);
        tags.rotate_left(turned);
        if !tags.iter().copied().eq(config.tags.iter()) {
            return Err(conflict(token));
        }
        let info = at.inner.launch_instance(config).await?;
        *lock(&self.0).entry(token.clone()).or_default() += 1;
        Ok(info)
    }
}

/// Compares user data by pointer. It stores the config, so that no address is reused.
#[derive(Default)]
pub(super) struct ComparesAddresses(Mutex<HashMap<LaunchToken, InstanceConfig>>);

#[async_trait]
impl Override for ComparesAddresses {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let address = |config: &InstanceConfig| {
            config
                .user_data
                .as_ref()
                .map(|d| d.as_bytes().as_ptr() as usize)
        };
        if let Some(token) = &config.launch_token {
            let first = lock(&self.0).get(token).map(address);
            if first.is_some_and(|first| first != address(config)) {
                return Err(conflict(token));
            }
        }
        let info = at.inner.launch_instance(config).await?;
        let token = config.launch_token.clone();
        lock(&self.0).extend(token.map(|token| (token, config.clone())));
        Ok(info)
    }
}

#[derive(Default)]
pub(super) struct MergesEqualConfigs;

#[async_trait]
impl Override for MergesEqualConfigs {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let derived = || LaunchToken::from(config.fingerprint(NonZeroU32::MIN).as_uuid());
        let token = config.launch_token.clone().unwrap_or_else(derived);
        launch_with(at, config, Some(token)).await
    }
}

#[derive(Default)]
pub(super) struct MergesEqualUserData;

#[async_trait]
impl Override for MergesEqualUserData {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let derived = config.fingerprint(NonZeroU32::MIN).as_uuid();
        let derived = config
            .user_data
            .as_ref()
            .map(|_| LaunchToken::from(derived));
        launch_with(at, config, config.launch_token.clone().or(derived)).await
    }
}

/// Gives the cloud another token than the caller's, by the same rule for every call.
pub(super) struct Altered<A>(PhantomData<A>);

/// Returns the changed token.
pub(super) trait Alter: Send + Sync {
    fn alter(token: &str) -> String;
}

impl<A> Default for Altered<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

fn altered<A: Alter>(token: &LaunchToken) -> LaunchToken {
    LaunchToken::new(A::alter(token.as_str())).unwrap_or_else(|_| token.clone())
}

#[async_trait]
impl<A: Alter> Override for Altered<A> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_with(at, config, config.launch_token.as_ref().map(altered::<A>)).await
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        at.inner.find_launch(&altered::<A>(token)).await
    }
}

pub(super) struct LowerCase;

impl Alter for LowerCase {
    fn alter(token: &str) -> String {
        token.to_lowercase()
    }
}

pub(super) struct CutAt64;

impl Alter for CutAt64 {
    fn alter(token: &str) -> String {
        token.chars().take(64).collect()
    }
}

pub(super) struct PlainName;

impl Alter for PlainName {
    fn alter(token: &str) -> String {
        token.replace(|c: char| !c.is_alphanumeric(), "-")
    }
}

/// Uses a token for each zone, so that two zones do not share it.
#[derive(Default)]
pub(super) struct TokenAndZone;

#[async_trait]
impl Override for TokenAndZone {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let zone = config.placement.zone.as_ref();
        let in_zone = |token: LaunchToken| match zone {
            Some(zone) => LaunchToken::from(token.derive(zone.as_str())),
            None => token,
        };
        launch_with(at, config, config.launch_token.clone().map(in_zone)).await
    }
}

/// Replaces the zone with the one that the token was first used with, if there was one.
#[derive(Default)]
pub(super) struct TokenOfOneZone(Mutex<HashMap<LaunchToken, Zone>>);

#[async_trait]
impl Override for TokenOfOneZone {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let (Some(token), Some(zone)) = (&config.launch_token, &config.placement.zone) else {
            return at.inner.launch_instance(config).await;
        };
        let first = lock(&self.0).get(token).cloned();
        if first.is_some_and(|first| first != *zone) {
            let zone_token = LaunchToken::from(token.derive(zone.as_str()));
            return launch_with(at, config, Some(zone_token)).await;
        }
        let info = at.inner.launch_instance(config).await?;
        lock(&self.0).insert(token.clone(), zone.clone());
        Ok(info)
    }
}
