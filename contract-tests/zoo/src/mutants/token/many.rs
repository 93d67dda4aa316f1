//! Backends that forget tokens when there are many, or confuse similar ones.

use std::{num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceInfo, LaunchRecord, LaunchToken, Result};

use super::{launch_with, lock, mutant};
use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override, batch::partial},
};

/// TOKEN-22 and TOKEN-23.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    mutant(
        "TOKEN-22",
        "only the latest 64 tokens are remembered",
        OverrideHarness::factory::<RemembersLatest<64>>,
    ),
    mutant(
        "TOKEN-22",
        "only the latest 128 tokens are remembered",
        OverrideHarness::factory::<RemembersLatest<128>>,
    ),
    mutant(
        "TOKEN-23",
        "a token that another one begins with is the same",
        OverrideHarness::factory::<MatchesBeginnings>,
    ),
    mutant(
        "TOKEN-23",
        "the items of a batch have its token with a number",
        || OverrideHarness::factory_on::<NumbersItems>(partial),
    ),
];

/// Launches again with a token that is not among the latest.
#[derive(Default)]
struct RemembersLatest<const COUNT: usize>(Mutex<Vec<LaunchToken>>);

#[async_trait]
impl<const COUNT: usize> Override for RemembersLatest<COUNT> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let place = {
            let mut known = lock(&self.0);
            let place = known.iter().rev().position(|one| one == token);
            if place.is_none() {
                known.push(token.clone());
            }
            place
        };
        if place.is_some_and(|place| place >= COUNT) {
            let again = LaunchToken::from(token.derive("again"));
            return launch_with(at, config, Some(again)).await;
        }
        at.inner.launch_instance(config).await
    }
}

/// Looks a token up as the beginning of a name.
#[derive(Default)]
struct MatchesBeginnings(Mutex<Vec<LaunchToken>>);

#[async_trait]
impl Override for MatchesBeginnings {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = config.launch_token.clone() else {
            return at.inner.launch_instance(config).await;
        };
        let begins = |known: &&LaunchToken| known.as_str().starts_with(token.as_str());
        let found = lock(&self.0).iter().find(begins).cloned();
        let info = launch_with(at, config, Some(found.unwrap_or_else(|| token.clone()))).await?;
        lock(&self.0).push(token);
        Ok(info)
    }
}

/// Returns the token of an item: the batch's own, and then with a number.
fn numbered(token: &LaunchToken, index: u32) -> LaunchToken {
    let text = match index {
        0 => token.as_str().to_owned(),
        later => format!("{token}-{later}"),
    };
    LaunchToken::new(text).unwrap_or_else(|_| token.item(index))
}

/// Launches a batch item by item, with tokens that a caller may use, too.
#[derive(Default)]
struct NumbersItems;

#[async_trait]
impl Override for NumbersItems {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let mut item = config.clone();
        item.batch = Some(count);
        let mut infos = Vec::new();
        for index in 0..count.get() {
            match launch_with(at, &item, Some(numbered(token, index))).await {
                Ok(info) => infos.push(info),
                Err(error) => return Err(error.with_survivors(infos)),
            }
        }
        Ok(infos)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut found = Vec::new();
        for index in 0.. {
            match at.inner.find_launch(&numbered(token, index)).await? {
                LaunchRecord::Found(infos) => found.extend(infos),
                record if index == 0 => return Ok(record),
                LaunchRecord::Terminated(_) | LaunchRecord::NotFound => break,
            }
        }
        Ok(LaunchRecord::from_instances(found))
    }
}
