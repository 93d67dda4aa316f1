//! Backends whose failures have consequences: for their retry, for others, or for what is left.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, ErrorKind, ImageId, InstanceConfig, InstanceId, InstanceInfo, InstanceType,
    LaunchRecord, LaunchToken, Result, SnapshotRequest, TagChange,
};
use fleetwright_contract_tests::Oracle;

use super::{CallContext, Failed, Override, failed_before, leaks, lock};

/// Launches a batch under a token of its own, and stores which one after the instances are created.
#[derive(Default)]
pub(super) struct StoresTokenLate(Mutex<BTreeMap<LaunchToken, LaunchToken>>, Mutex<u32>);

#[async_trait]
impl Override for StoresTokenLate {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let stored = lock(&self.0).get(token).cloned();
        let own = stored.unwrap_or_else(|| {
            let mut tokens = lock(&self.1);
            *tokens += 1;
            // Far away from the items of the batch.
            token.item(1_000 + *tokens)
        });
        let mut config = config.clone();
        config.launch_token = Some(own.clone());
        let launched = at.inner.launch_instances(&config, count).await?;
        lock(&self.0).insert(token.clone(), own);
        Ok(launched)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let stored = lock(&self.0).get(token).cloned();
        at.inner.find_launch(&stored.unwrap_or(token.clone())).await
    }
}

/// Launches a batch under another token if it was begun before and did not end.
#[derive(Default)]
pub(super) struct ForgetsDroppedBatch(Failed);

#[async_trait]
impl Override for ForgetsDroppedBatch {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let token = config.launch_token.as_ref();
        let begun = failed_before(&self.0, token);
        lock(&self.0).extend(token.cloned());
        let mut config = config.clone();
        if begun {
            config.launch_token = token.map(|token| token.item(1_000));
        }
        let result = at.inner.launch_instances(&config, count).await;
        if let Some(token) = token {
            lock(&self.0).remove(token);
        }
        result
    }
}

/// Launches one more if the response of the first attempt was lost.
#[derive(Default)]
pub(super) struct LaunchesOneMore(Failed);

#[async_trait]
impl Override for LaunchesOneMore {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let token = config.launch_token.as_ref();
        if failed_before(&self.0, token) {
            lock(&self.0).clear();
            at.harness.cloud().external_actor().launch(config)?;
        }
        let result = at.inner.launch_instances(config, count).await;
        remember_lost(&self.0, token, &result);
        result
    }
}

/// Remembers the token of a launch whose request or response was lost.
fn remember_lost<T>(failed: &Failed, token: Option<&LaunchToken>, result: &Result<T>) {
    let lost = result.as_ref().err();
    if lost.is_some_and(|error| error.kind() == ErrorKind::Timeout) {
        lock(failed).extend(token.cloned());
    }
}

/// Returns the instances in a state that the call does not name.
fn others(at: CallContext<'_>, state: CloudInstanceState, ids: &[InstanceId]) -> Vec<InstanceId> {
    let all = at.harness.cloud().oracle().instances().into_iter();
    let other = all.filter(|truth| truth.info.state == state && !ids.contains(&truth.info.id));
    other.map(|truth| truth.info.id).collect()
}

#[derive(Default)]
pub(super) struct TerminatesOthers;

#[async_trait]
impl Override for TerminatesOthers {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let results = at.inner.terminate_instances(ids).await;
        if results.iter().any(Result::is_err) {
            for id in others(at, CloudInstanceState::Stopped, ids) {
                let _ = at.harness.cloud().external_actor().terminate(&id);
            }
        }
        results
    }
}

#[derive(Default)]
pub(super) struct StartsOthers;

#[async_trait]
impl Override for StartsOthers {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let result = at.inner.start_instance(id).await;
        if result.is_err() {
            for id in others(at, CloudInstanceState::Stopped, std::slice::from_ref(id)) {
                let _ = at.harness.cloud().external_actor().start(&id);
            }
        }
        result
    }
}

#[derive(Default)]
pub(super) struct ResizesOthers;

#[async_trait]
impl Override for ResizesOthers {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        let result = at.inner.resize_instance(id, to).await;
        if result.is_err() {
            let change = TagChange::new().set("resized", to.as_str());
            for id in others(at, CloudInstanceState::Running, std::slice::from_ref(id)) {
                let change = change.clone().unwrap_or_default();
                let _ = at
                    .harness
                    .cloud()
                    .external_actor()
                    .update_tags(&id, &change);
            }
        }
        result
    }
}

#[derive(Default)]
pub(super) struct LosesUserDataOnRetry(Failed);

#[async_trait]
impl Override for LosesUserDataOnRetry {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let token = config.launch_token.as_ref();
        let mut sent = config.clone();
        if failed_before(&self.0, token) && is_free(at, token).await {
            sent.user_data = None;
        }
        let result = at.inner.launch_instances(&sent, count).await;
        remember_lost(&self.0, token, &result);
        result
    }
}

/// Returns whether no launch has the token.
async fn is_free(at: CallContext<'_>, token: Option<&LaunchToken>) -> bool {
    match token {
        Some(token) => matches!(
            at.inner.find_launch(token).await,
            Ok(LaunchRecord::NotFound)
        ),
        None => false,
    }
}

#[derive(Default)]
pub(super) struct LosesTagsOnRetry(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for LosesTagsOnRetry {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let mut sent = change.clone();
        if lock(&self.0).remove(id) {
            let tags = at.truth(id).map(|truth| truth.info.tags);
            let tags = tags.unwrap_or_default();
            let others = tags.iter().filter(|(key, _)| change.set.get(key).is_none());
            let others = others.filter(|(key, _)| !key.starts_with("fleetwright"));
            let others = others.map(|(key, _)| key.to_owned());
            sent.remove.extend(others);
        }
        let result = at.inner.update_tags(id, &sent).await;
        if result.is_err() {
            lock(&self.0).insert(id.clone());
        }
        result
    }
}

/// Leaves the disks of instances whose termination got no response.
#[derive(Default)]
pub(super) struct LeavesDisksOfLost(leaks::Leftovers);

#[async_trait]
impl Override for LeavesDisksOfLost {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, |_| false)
    }
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let results = at.inner.terminate_instances(ids).await;
        for (id, result) in ids.iter().zip(&results) {
            let lost = result.as_ref().err();
            if lost.is_some_and(|error| error.kind() == ErrorKind::Timeout) {
                self.0.add("disk", id.as_str());
            }
        }
        results
    }
}

/// Creates an image under another name if the first attempt got no response.
#[derive(Default)]
pub(super) struct NamesImageAnew(Mutex<BTreeSet<String>>);

#[async_trait]
impl Override for NamesImageAnew {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let mut sent = request.clone();
        if lock(&self.0).contains(&request.name) {
            sent.name.push_str("-2");
        }
        let result = at.inner.snapshot_image(id, &sent).await;
        let lost = result.as_ref().err();
        if lost.is_some_and(|error| error.kind() == ErrorKind::Timeout) {
            lock(&self.0).insert(request.name.clone());
        }
        result
    }
}
