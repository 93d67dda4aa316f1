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
    BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, Scope, SnapshotRequest,
    TagChange,
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
    /// Launches that were dropped or never answered, by token: they may live, until the same token
    /// is answered or the sweep after the clause has taken them.
    perhaps: Vec<(Option<LaunchToken>, usize)>,
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
    fn set_aside(
        self: &Arc<Self>,
        config: &InstanceConfig,
        count: usize,
    ) -> Result<Ticket, String> {
        let Allowance { max_live, max_time } = self.allowance;
        let late = self.began.elapsed() > max_time;
        self.with(|state| {
            // Asking again with its token settles a launch of unknown outcome: it is not another one.
            let token = config.launch_token.clone();
            let another = |other: &Option<LaunchToken>| token.is_none() || *other != token;
            let perhaps = state.perhaps.iter().filter(|(other, _)| another(other));
            let perhaps: usize = perhaps.map(|(_, count)| count).sum();
            let live = state.live.len() + state.under_way + perhaps;
            let why = if late {
                format!("cost guard: the run is past {max_time:?}; allow more time")
            } else if live + count > max_live {
                format!(
                    "cost guard: {live} live and {count} more, {max_live} are allowed; allow more"
                )
            } else {
                state.under_way += count;
                state.perhaps.retain(|(other, _)| another(other));
                return Ok(Ticket {
                    guard: Arc::clone(self),
                    token,
                    count,
                    settled: false,
                });
            };
            state.refused = Some(why.clone());
            Err(why)
        })
    }

    /// The clause is over and its sweep has taken what was left: nothing lives on unseen.
    pub fn clause_is_over(&self) {
        self.with(|state| state.perhaps.clear());
    }

    fn terminated(&self, id: &InstanceId) {
        self.with(|state| state.live.remove(id));
    }
}

/// Launches set aside. One that is dropped before it is answered may have come to live, so its place
/// stays taken until its token is answered or the clause is over.
#[derive(Debug)]
struct Ticket {
    guard: Arc<Guard>,
    token: Option<LaunchToken>,
    count: usize,
    settled: bool,
}

impl Ticket {
    /// The launch was answered: its instances live, and what is left of the places is free.
    fn settle(mut self, answer: &Result<Vec<InstanceInfo>>) {
        let unknown = answer
            .as_ref()
            .is_err_and(|error| error.effect() == Effect::Unknown);
        if unknown {
            return;
        }
        self.settled = true;
        let made = match answer {
            Ok(infos) => infos.as_slice(),
            Err(error) => error.survivors(),
        };
        self.guard.with(|state| {
            state.under_way -= self.count;
            state.live.extend(made.iter().map(|info| info.id.clone()));
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            let token = self.token.take();
            self.guard.with(|state| {
                state.under_way -= self.count;
                state.perhaps.push((token, self.count));
            });
        }
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

    fn set_aside(
        &self,
        operation: Operation,
        config: &InstanceConfig,
        count: usize,
    ) -> Result<Ticket> {
        let call = Call::new(self.capabilities().provider.as_str(), operation);
        self.guard
            .set_aside(config, count)
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
        let ticket = self.set_aside(Operation::LaunchInstance, config, 1)?;
        let answer = self.inner.launch_instance(config).await;
        ticket.settle(&answer.clone().map(|info| vec![info]));
        answer
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let wanted = usize::try_from(count.get()).unwrap_or(usize::MAX);
        let ticket = self.set_aside(Operation::LaunchInstances, config, wanted)?;
        let answer = self.inner.launch_instances(config, count).await;
        ticket.settle(&answer);
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
    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
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
