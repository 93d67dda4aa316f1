//! The cost guard: a run against a real cloud launches no more at once, and runs no longer, than it
//! was allowed to.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, Operation, Reboot, Result, Scope, Seen, SnapshotRequest, TagChange,
};

/// What a run may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The most instances that live at once.
    pub max_live: usize,
    /// After this time nothing is launched any more.
    pub max_time: Duration,
}

/// Counts what lives, over all handles and clauses of a run.
#[derive(Debug)]
pub struct Guard {
    allowance: Allowance,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeSet<InstanceId>,
    /// Launches under way, which may come to live.
    under_way: usize,
    refused: Option<String>,
}

impl Guard {
    /// A guard whose time begins now.
    pub fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// What the guard refused since it was last asked.
    pub fn take_refusal(&self) -> Option<String> {
        self.with(|state| state.refused.take())
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets `count` launches aside, or says why not.
    fn set_aside(&self, count: usize) -> Result<(), String> {
        let Allowance { max_live, max_time } = self.allowance;
        let late = self.began.elapsed() > max_time;
        self.with(|state| {
            let live = state.live.len() + state.under_way;
            let why = if late {
                format!("cost guard: the run is past {max_time:?}; allow more time")
            } else if live + count > max_live {
                format!(
                    "cost guard: {live} live and {count} more, {max_live} are allowed; allow more"
                )
            } else {
                state.under_way += count;
                return Ok(());
            };
            state.refused = Some(why.clone());
            Err(why)
        })
    }

    fn launched(&self, set_aside: usize, instances: &[InstanceInfo]) {
        self.with(|state| {
            state.under_way -= set_aside;
            state
                .live
                .extend(instances.iter().map(|info| info.id.clone()));
        });
    }

    fn terminated(&self, id: &InstanceId) {
        self.with(|state| state.live.remove(id));
    }
}

/// A handle under the guard.
#[derive(Debug)]
pub struct Guarded {
    inner: Arc<dyn InstanceProvisioner>,
    guard: Arc<Guard>,
}

impl Guarded {
    /// Puts a handle under the guard.
    pub fn new(inner: Arc<dyn InstanceProvisioner>, guard: Arc<Guard>) -> Self {
        Self { inner, guard }
    }

    fn set_aside(&self, operation: Operation, count: usize) -> Result<()> {
        let call = Call::new(self.capabilities().provider.as_str(), operation);
        self.guard
            .set_aside(count)
            .map_err(|why| call.quota(Scope::Account, &why))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Guarded {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.set_aside(Operation::LaunchInstance, 1)?;
        let answer = self.inner.launch_instance(config).await;
        self.guard.launched(
            1,
            answer
                .as_ref()
                .map(std::slice::from_ref)
                .unwrap_or_default(),
        );
        answer
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
        self.set_aside(Operation::LaunchInstances, wanted)?;
        let answer = self.inner.launch_instances(config, count).await;
        let made = match &answer {
            Ok(infos) => infos.as_slice(),
            Err(error) => error.survivors(),
        };
        self.guard.launched(wanted, made);
        answer
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let answer = self.inner.terminate_instance(id).await;
        if answer.is_ok() {
            self.guard.terminated(id);
        }
        answer
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let answers = self.inner.terminate_instances(ids).await;
        for (id, _) in ids
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| answer.is_ok())
        {
            self.guard.terminated(id);
        }
        answers
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.inner.stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.inner.start_instance(id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.inner.describe_instance(id).await
    }
    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.inner.list_instances(filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.inner.find_launch(token).await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.stop_instances(ids).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.inner.start_instances(ids).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.inner.describe_instances(ids).await
    }
    fn stream_instances<'a>(&'a self, filter: &'a InstanceFilter) -> BoxStream<'a, Result<Seen>> {
        self.inner.stream_instances(filter)
    }
    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.inner.update_tags(id, change).await
    }
    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.inner.reboot_instance(id, how).await
    }
    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.inner.resize_instance(id, to).await
    }
    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.inner.reimage_instance(id, image).await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.inner.console_output(id).await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.inner.console_session(id).await
    }
    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.inner.snapshot_image(id, request).await
    }
}
