//! Backends that know a token for too short a time, or not everywhere.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Capabilities, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, LaunchRecord,
    LaunchToken, Operation, ProvisionError, Result,
};

use super::{CallContext, Override, conflict, launch_with, lock};

/// Returns from a replay the result of the launch.
#[derive(Default)]
pub(super) struct ReturnsOldState(Mutex<HashMap<LaunchToken, InstanceInfo>>);

#[async_trait]
impl Override for ReturnsOldState {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let Some(token) = config.launch_token.clone() else {
            return Ok(info);
        };
        let mut snapshots = lock(&self.0);
        let kept = snapshots.entry(token).or_insert_with(|| info.clone());
        if kept.id != info.id {
            *kept = info;
        }
        Ok(kept.clone())
    }
}

/// Returns from a replay the addresses that the instance had at launch.
#[derive(Default)]
pub(super) struct ReturnsOldAddresses(Mutex<HashMap<InstanceId, InstanceInfo>>);

#[async_trait]
impl Override for ReturnsOldAddresses {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        let mut launched = lock(&self.0);
        let first = launched
            .entry(info.id.clone())
            .or_insert_with(|| info.clone());
        (info.private_ip, info.public_ip) = (first.private_ip, first.public_ip);
        Ok(info)
    }
}

/// Stores no config: it compares the requested tags with the current ones.
#[derive(Default)]
pub(super) struct ComparesCurrentTags;

#[async_trait]
impl Override for ComparesCurrentTags {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        match &config.launch_token {
            Some(token) if info.tags != config.tags => Err(conflict(token)),
            Some(_) | None => Ok(info),
        }
    }
}

/// Stores a token before it launches, and does not remove it if the launch fails.
#[derive(Default)]
pub(super) struct BlocksTokens(Mutex<HashMap<LaunchToken, InstanceConfig>>);

#[async_trait]
impl Override for BlocksTokens {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if let Some(token) = &config.launch_token {
            let mut taken = lock(&self.0);
            let first = taken.entry(token.clone()).or_insert_with(|| config.clone());
            if first != config {
                return Err(conflict(token));
            }
        }
        at.inner.launch_instance(config).await
    }
}

/// Returns from a replay the error of the first call, even if it had no effect.
#[derive(Default)]
pub(super) struct RemembersRefusals(Mutex<HashMap<LaunchToken, ProvisionError>>);

#[async_trait]
impl Override for RemembersRefusals {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let token = config.launch_token.clone();
        let before = token
            .as_ref()
            .and_then(|token| lock(&self.0).get(token).cloned());
        if let Some(error) = before {
            return Err(error);
        }
        let result = at.inner.launch_instance(config).await;
        let refusal = result.as_ref().err().cloned();
        let is_capacity = |error: &ProvisionError| error.kind() == ErrorKind::Capacity;
        let kept = token.zip(refusal.filter(is_capacity));
        lock(&self.0).extend(kept);
        result
    }
}

#[derive(Default)]
pub(super) struct LaunchesSpentTokens;

#[async_trait]
impl Override for LaunchesSpentTokens {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match at.inner.launch_instance(config).await {
            Err(error) if error.kind() == ErrorKind::TokenSpent => {
                launch_with(at, config, None).await
            }
            result => result,
        }
    }
}

#[derive(Default)]
pub(super) struct ReturnsTerminated;

#[async_trait]
impl Override for ReturnsTerminated {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let spent = |error: &ProvisionError| error.kind() == ErrorKind::TokenSpent;
        let token = config.launch_token.as_ref();
        if let Some(token) = token.filter(|_| result.as_ref().is_err_and(spent)) {
            if let LaunchRecord::Terminated(kept) = at.inner.find_launch(token).await? {
                return kept.into_iter().next().map_or(result, Ok);
            }
        }
        result
    }
}

/// Declares an hour on a cloud that remembers tokens for a shorter time. It looks launches up in its own
/// memory.
#[derive(Default)]
pub(super) struct ForgetsEarly(Mutex<HashMap<LaunchToken, LaunchRecord>>);

#[async_trait]
impl Override for ForgetsEarly {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.token_after_terminate = Duration::from_secs(3600);
        declared
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let record = at.inner.find_launch(token).await?;
        let mut records = lock(&self.0);
        if record == LaunchRecord::NotFound {
            return Ok(records.get(token).cloned().unwrap_or(record));
        }
        records.insert(token.clone(), record.clone());
        Ok(record)
    }
}

/// The tokens that were launched with, in the memory of the process.
#[derive(Default)]
struct UsedTokens(Mutex<HashSet<LaunchToken>>);

impl UsedTokens {
    /// Returns the token of `config` if it was used and the cloud has forgotten it.
    async fn forgotten<'c>(
        &self,
        at: CallContext<'_>,
        config: &'c InstanceConfig,
    ) -> Result<Option<&'c LaunchToken>> {
        let Some(token) = &config.launch_token else {
            return Ok(None);
        };
        let used = lock(&self.0).contains(token);
        let forgotten = used && at.inner.find_launch(token).await? == LaunchRecord::NotFound;
        Ok(forgotten.then_some(token))
    }

    /// Launches, and remembers the token.
    async fn launch(&self, at: CallContext<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        lock(&self.0).extend(config.launch_token.clone());
        Ok(info)
    }
}

/// Launches without the token once the cloud has forgotten it, so that it is never recognized again.
#[derive(Default)]
pub(super) struct ForgetsPermanently(UsedTokens);

#[async_trait]
impl Override for ForgetsPermanently {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match self.0.forgotten(at, config).await? {
            Some(_) => launch_with(at, config, None).await,
            None => self.0.launch(at, config).await,
        }
    }
}

#[derive(Default)]
pub(super) struct LaunchesAndRefuses;

#[async_trait]
impl Override for LaunchesAndRefuses {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if matches!(&result, Err(error) if error.kind() == ErrorKind::TokenSpent) {
            launch_with(at, config, None).await?;
        }
        result
    }
}

/// Remembers that a token was used, but not with which config.
#[derive(Default)]
pub(super) struct RefusesForgotten(UsedTokens);

#[async_trait]
impl Override for RefusesForgotten {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match self.0.forgotten(at, config).await? {
            Some(token) => Err(conflict(token)),
            None => self.0.launch(at, config).await,
        }
    }
}

/// Which handle launched with a token, and how many handles were open then.
#[derive(Default)]
struct Launches {
    opened: AtomicUsize,
    by_token: Mutex<HashMap<LaunchToken, (usize, usize)>>,
}

impl Launches {
    /// Launches, without the token if this handle has `lost` it.
    async fn launch(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        lost: impl FnOnce(usize, usize) -> bool + Send,
    ) -> Result<InstanceInfo> {
        let token = config.launch_token.clone();
        let before = token
            .as_ref()
            .and_then(|token| lock(&self.by_token).get(token).copied());
        if before.is_some_and(|(handle, opened)| lost(handle, opened)) {
            return launch_with(at, config, None).await;
        }
        let info = at.inner.launch_instance(config).await?;
        let now = (at.handle, self.opened.load(Ordering::SeqCst));
        if let Some(token) = token {
            lock(&self.by_token).entry(token).or_insert(now);
        }
        Ok(info)
    }
}

#[derive(Default)]
pub(super) struct KeepsPerHandle(Launches);

#[async_trait]
impl Override for KeepsPerHandle {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0
            .launch(at, config, |handle, _| handle != at.handle)
            .await
    }
}

#[derive(Default)]
pub(super) struct ReadsTokensAtOpening(Launches);

#[async_trait]
impl Override for ReadsTokensAtOpening {
    fn opened(&self, handle: usize) {
        self.0.opened.store(handle, Ordering::SeqCst);
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let lost = |handle, opened| handle != at.handle && at.handle <= opened;
        self.0.launch(at, config, lost).await
    }
}

#[derive(Default)]
pub(super) struct LosesTokensOnRestart(Launches);

#[async_trait]
impl Override for LosesTokensOnRestart {
    fn opened(&self, handle: usize) {
        self.0.opened.store(handle, Ordering::SeqCst);
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0
            .launch(at, config, |_, opened| at.handle > opened)
            .await
    }
}

/// Stores tokens in the cloud and configs in the process: a new process compares nothing.
#[derive(Default)]
pub(super) struct LosesConfigsOnRestart {
    opened: AtomicUsize,
    first: Mutex<HashMap<LaunchToken, (usize, InstanceConfig)>>,
}

#[async_trait]
impl Override for LosesConfigsOnRestart {
    fn opened(&self, handle: usize) {
        self.opened.store(handle, Ordering::SeqCst);
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let first = lock(&self.first).get(token).cloned();
        let lost = first.filter(|(opened, _)| at.handle > *opened);
        let config = lost.map_or_else(|| config.clone(), |(_, first)| first);
        let info = at.inner.launch_instance(&config).await?;
        let opened = self.opened.load(Ordering::SeqCst);
        let mut first = lock(&self.first);
        first.entry(token.clone()).or_insert((opened, config));
        Ok(info)
    }
}

/// Checks whether a token is known and then launches. Another launch can come in between.
#[derive(Default)]
pub(super) struct ChecksThenLaunches {
    derived: AtomicU32,
    native: Mutex<HashMap<LaunchToken, LaunchToken>>,
}

impl ChecksThenLaunches {
    fn native(&self, token: &LaunchToken) -> Option<LaunchToken> {
        lock(&self.native).get(token).cloned()
    }
}

#[async_trait]
impl Override for ChecksThenLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let known = self.native(token);
        let fresh = || token.item(self.derived.fetch_add(1, Ordering::SeqCst));
        let native = known.unwrap_or_else(fresh);
        let info = launch_with(at, config, Some(native.clone())).await?;
        lock(&self.native).entry(token.clone()).or_insert(native);
        Ok(info)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let native = self.native(token);
        at.inner.find_launch(native.as_ref().unwrap_or(token)).await
    }
}

/// Checks and launches under a lock that each handle has for itself.
#[derive(Default)]
pub(super) struct LocksPerHandle {
    unlocked: ChecksThenLaunches,
    queues: Mutex<HashMap<usize, Arc<tokio::sync::Mutex<()>>>>,
}

#[async_trait]
impl Override for LocksPerHandle {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let queue = Arc::clone(lock(&self.queues).entry(at.handle).or_default());
        let _guard = queue.lock().await;
        self.unlocked.launch_instance(at, config).await
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        self.unlocked.find_launch(at, token).await
    }
}

/// Fails a launch as unavailable while another one with its token is in progress.
#[derive(Default)]
pub(super) struct ConcurrentIsUnavailable(Mutex<HashSet<LaunchToken>>);

/// Marks a launch as in progress until it is dropped.
struct InProgress<'a>(&'a Mutex<HashSet<LaunchToken>>, &'a LaunchToken);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}

#[async_trait]
impl Override for ConcurrentIsUnavailable {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        if !lock(&self.0).insert(token.clone()) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::None, "the row is locked"));
        }
        let _in_progress = InProgress(&self.0, token);
        at.inner.launch_instance(config).await
    }
}
