//! A process with a fault at each of its external calls: a commit, and the calls to the cloud that a test chooses.
#![allow(dead_code, reason = "no test binary uses all helpers")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use fleetwright::{
    BoxFuture, Call, Capabilities, Effect, ImageId, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, Operation,
    SnapshotRequest,
    layer::{Layer, Request},
};
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Revision, Schema, Store, StoreError, Transaction,
    Watch,
};
use tokio::sync::Notify;

/// The fault at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process dies before the call has an effect.
    CrashBefore,
    /// The process dies after the call had its effect.
    CrashAfter,
    /// The call is refused.
    Error,
    /// The call has its effect, and its response is lost.
    LostResponse,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Error,
        Self::LostResponse,
    ];
}

/// Which faults happen at which steps. Steps are counted over all processes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    faults: Vec<(u64, Kind)>,
    steps: AtomicU64,
    listed: AtomicU64,
    dead: AtomicBool,
    died: Notify,
    log: Mutex<Vec<String>>,
}

impl Plan {
    pub(crate) fn new(faults: Vec<(u64, Kind)>) -> Arc<Self> {
        Arc::new(Self {
            faults,
            ..Self::default()
        })
    }

    /// Returns the number of steps.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the number of records that lists returned.
    pub(crate) fn listed(&self) -> u64 {
        self.listed.load(Ordering::Relaxed)
    }

    /// Returns the log of steps and faults, for failure messages.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the process dies, and lets the next one run.
    pub(crate) async fn died(&self) {
        self.died.notified().await;
        self.dead.store(false, Ordering::Relaxed);
    }

    fn next_fault(&self, what: &str) -> Option<Kind> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let found = self.faults.iter().find(|(nth, _)| *nth == step);
        let found = found.map(|(_, kind)| *kind);
        let line = format!("{step} {what} {found:?}");
        self.log.lock().unwrap().push(line);
        found
    }

    async fn step<A, E>(
        &self,
        what: &str,
        call: impl Future<Output = Result<A, E>>,
        refused: impl FnOnce() -> E,
        lost: impl FnOnce() -> E,
    ) -> Result<A, E> {
        self.live().await;
        match self.next_fault(what) {
            None => call.await,
            Some(Kind::CrashBefore) => {
                self.die().await;
                call.await
            }
            Some(Kind::CrashAfter) => {
                let result = call.await;
                self.die().await;
                result
            }
            Some(Kind::Error) => Err(refused()),
            Some(Kind::LostResponse) => {
                let _ = call.await;
                Err(lost())
            }
        }
    }

    async fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_one();
        std::future::pending::<()>().await;
    }

    /// A dead process does nothing.
    async fn live(&self) {
        if self.dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Flaky<T: ?Sized> {
    pub(crate) plan: Arc<Plan>,
    pub(crate) inner: Arc<T>,
}

impl<T: ?Sized> Flaky<T> {
    pub(crate) fn new(plan: &Arc<Plan>, inner: &Arc<T>) -> Arc<Self> {
        Arc::new(Self {
            plan: Arc::clone(plan),
            inner: Arc::clone(inner),
        })
    }
}

/// Makes every call to the cloud of these operations a step.
#[derive(Debug)]
pub(crate) struct CallSteps(pub(crate) Arc<Plan>, pub(crate) &'static [Operation]);

impl Layer for CallSteps {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, fleetwright::Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, fleetwright::Result<T>> {
        Box::pin(async move {
            let operation = request.operation();
            if !self.1.contains(&operation) {
                self.0.live().await;
                return send().await;
            }
            let refused = || request.call.unavailable(Effect::None, "the cloud is busy");
            let lost = || request.call.timeout(Effect::Unknown);
            let step = self.0.step(operation.as_str(), send(), refused, lost);
            step.await
        })
    }
}

#[async_trait]
impl Store for Flaky<dyn Store> {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        self.plan.live().await;
        self.inner.get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.plan.live().await;
        let page = self.inner.list(query).await?;
        let count = page.records.len() as u64;
        self.plan.listed.fetch_add(count, Ordering::Relaxed);
        Ok(page)
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision, StoreError> {
        let reason = || "injected".to_owned();
        let refused = || StoreError::Unavailable {
            reason: reason(),
            source: None,
        };
        let lost = || StoreError::UnknownOutcome {
            reason: reason(),
            source: None,
        };
        let call = self.inner.commit(transaction);
        self.plan.step("commit", call, refused, lost).await
    }
    async fn head(&self) -> Result<Revision, StoreError> {
        self.inner.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch, StoreError> {
        self.inner.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<(), StoreError> {
        self.inner.compact(through).await
    }
}

#[async_trait]
impl InstanceProvisioner for Flaky<dyn InstanceProvisioner> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> fleetwright::Result<InstanceInfo> {
        self.inner.launch_instance(config).await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> fleetwright::Result<()> {
        self.inner.terminate_instance(id).await
    }
    async fn stop_instance(&self, id: &InstanceId) -> fleetwright::Result<()> {
        self.inner.stop_instance(id).await
    }
    async fn start_instance(&self, id: &InstanceId) -> fleetwright::Result<InstanceInfo> {
        self.inner.start_instance(id).await
    }
    async fn describe_instance(&self, id: &InstanceId) -> fleetwright::Result<InstanceStatus> {
        self.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        filter: &InstanceFilter,
    ) -> fleetwright::Result<Vec<InstanceInfo>> {
        self.inner.list_instances(filter).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> fleetwright::Result<LaunchRecord> {
        self.inner.find_launch(token).await
    }
    async fn account_id(&self) -> fleetwright::Result<Option<fleetwright::AccountId>> {
        self.inner.account_id().await
    }
    async fn snapshot_image(
        &self,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> fleetwright::Result<ImageId> {
        let call = Call::new("injected", Operation::SnapshotImage);
        let refused = || call.unavailable(Effect::None, "the cloud is busy");
        let lost = || call.timeout(Effect::Unknown);
        let created = self.inner.snapshot_image(id, request);
        self.plan.step("snapshot", created, refused, lost).await
    }
}
