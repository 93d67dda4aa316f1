//! Property test of combined calls with arbitrary callers: every caller gets its own result, read
//! after its request.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use fleetwright::{
    Capabilities, CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, Operation,
    Result, TagLimits, async_trait,
    layer::{Coalesce, CoalescePolicy, RetryPolicy},
};
use futures_util::future::join_all;
use proptest::{collection::vec, option::of, prelude::*};
use tokio::time::{sleep, timeout};

use super::{block_on_paused, millis, numbered, size};
use crate::fake::{call, secs};

/// A backend whose results contain the number of callers so far, which shows when it was read.
#[derive(Debug)]
struct Versioned {
    capabilities: Capabilities,
    /// The number of callers so far.
    requested: AtomicU64,
    /// The number of waiting callers for each instance.
    waiting: Mutex<BTreeMap<InstanceId, usize>>,
    /// The delays of the calls, in order, before and after their effect.
    delays: Vec<u64>,
    calls: AtomicU64,
    failing: Vec<InstanceId>,
    /// Whether a change for which no caller waits any more is a mistake. On several threads, a caller can give up
    /// after the change was sent and before it arrives here.
    needs_callers: bool,
}

impl Versioned {
    fn new(delays: Vec<u64>, batch: usize, failing: Vec<InstanceId>) -> Self {
        let mut capabilities = Capabilities::new("versioned", TagLimits::new(9, 9, 9), 9);
        capabilities.batch_size = NonZeroUsize::new(batch).unwrap();
        Self {
            capabilities,
            requested: AtomicU64::new(0),
            waiting: Mutex::default(),
            delays,
            calls: AtomicU64::new(0),
            failing,
            needs_callers: true,
        }
    }

    async fn serve(&self, ids: &[InstanceId]) -> Vec<Result<u64>> {
        assert!(ids.len() <= self.capabilities.batch_size.get());
        let now = self.requested.load(SeqCst);
        let number = self.calls.fetch_add(1, SeqCst) as usize;
        match self.delays.get(number % self.delays.len().max(1)) {
            Some(0) | None => {}
            Some(time) => sleep(millis(*time)).await,
        }
        let one = |id| match self.failing.contains(id) {
            true => Err(call(Operation::StopInstances).not_found(id)),
            false => Ok(now),
        };
        ids.iter().map(one).collect()
    }

    /// Checks that every change still has a waiting caller.
    async fn change(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        for id in ids {
            let callers = self.waiting.lock().unwrap().get(id).copied();
            let is_wanted = callers.is_some_and(|callers| callers > 0);
            assert!(is_wanted || !self.needs_callers, "{id} was given up");
        }
        let results = self.serve(ids).await;
        results.into_iter().map(|result| result.map(drop)).collect()
    }
}

#[async_trait]
impl InstanceProvisioner for Versioned {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.describe_instances(std::slice::from_ref(id))
            .await
            .remove(0)
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let results = self.serve(ids).await.into_iter().zip(ids);
        let shown = results.map(|(result, id)| {
            let mut status = InstanceStatus::new(id.clone(), CloudInstanceState::Running);
            status.native_state = Some(result?.to_string());
            Ok(status)
        });
        shown.collect()
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(std::slice::from_ref(id)).await.remove(0)
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.change(ids).await
    }
    async fn stop_instance(&self, _: &InstanceId) -> Result<()> {
        unreachable!()
    }
    async fn start_instance(&self, _: &InstanceId) -> Result<InstanceInfo> {
        unreachable!()
    }
    async fn launch_instance(&self, _: &InstanceConfig) -> Result<InstanceInfo> {
        unreachable!()
    }
    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        unreachable!()
    }
    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        unreachable!()
    }
}

/// A caller that waits for a change.
struct Waits<'a>(&'a Versioned, &'a InstanceId);

impl<'a> Waits<'a> {
    fn begin(backend: &'a Versioned, id: &'a InstanceId) -> Self {
        *backend
            .waiting
            .lock()
            .unwrap()
            .entry(id.clone())
            .or_default() += 1;
        Self(backend, id)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        *self.0.waiting.lock().unwrap().get_mut(self.1).unwrap() -= 1;
    }
}

/// A caller: its instance, when it calls, and when it gives up.
#[derive(Clone, Debug)]
struct Caller {
    id: usize,
    calls_at: u64,
    drops_after: Option<u64>,
}

fn callers() -> impl Strategy<Value = Vec<Caller>> {
    let one = (0_usize..6, 0_u64..60, of(0_u64..40));
    let one = one.prop_map(|(id, calls_at, drops_after)| Caller {
        id,
        calls_at,
        drops_after,
    });
    vec(one, 1..25)
}

/// Sends the call of `caller` and checks the result.
async fn describe_as(coalesce: &Coalesce<Versioned>, ids: &[InstanceId], caller: &Caller) {
    sleep(millis(caller.calls_at)).await;
    let (backend, id) = (coalesce.inner(), &ids[caller.id]);
    let requested = backend.requested.fetch_add(1, SeqCst) + 1;
    let wait_limit = caller.drops_after.map_or(secs(60), millis);
    let described = timeout(wait_limit, coalesce.describe_instance(id)).await;
    match described {
        Ok(Ok(status)) => {
            assert!(!backend.failing.contains(id));
            assert_eq!(status.id, *id);
            let read: u64 = status.native_state.unwrap().parse().unwrap();
            assert!(
                read >= requested,
                "{caller:?}: read at {read}, requested at {requested}"
            );
        }
        Ok(Err(error)) => {
            assert!(backend.failing.contains(id));
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        Err(_) => assert!(caller.drops_after.is_some(), "{caller:?} was lost"),
    }
    let change = async {
        let _waits = Waits::begin(backend, id);
        coalesce.terminate_instance(id).await
    };
    match timeout(wait_limit, change).await {
        Ok(result) => assert_eq!(result.is_err(), backend.failing.contains(id)),
        Err(_) => assert!(caller.drops_after.is_some(), "{caller:?} was lost"),
    }
}

proptest! {
    #[test]
    fn every_caller_gets_its_own_result(
        callers in callers(), delays in vec(0_u64..30, 1..8), batch in 1_usize..6,
        window in 0_u64..20, failing in 0_usize..3, retrying in any::<bool>(),
    ) {
        block_on_paused(async {
            let ids = numbered(6);
            let backend = Versioned::new(delays, batch, ids[..failing].to_vec());
            let policy = CoalescePolicy::default().window(millis(window)).max_size(size(4));
            let coalesce = if retrying {
                Coalesce::with_retry(backend, policy, RetryPolicy::default())
            } else {
                Coalesce::new(backend, policy)
            };
            join_all(callers.iter().map(|caller| describe_as(&coalesce, &ids, caller))).await;
        });
    }
}

#[test]
fn every_caller_gets_its_result_on_many_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ids = numbered(6);
        let mut backend = Versioned::new(vec![0, 1, 0, 2], 4, vec![ids[0].clone()]);
        backend.needs_callers = false;
        let policy = CoalescePolicy::default().window(Duration::from_micros(300));
        let coalesce = std::sync::Arc::new(Coalesce::new(backend, policy));
        let tasks = (0..2_000_u64).map(|n| {
            let (coalesce, ids) = (coalesce.clone(), ids.clone());
            let drops_after = (n % 7 == 0).then_some(n % 3);
            let caller = Caller {
                id: (n % 6) as usize,
                calls_at: n % 20,
                drops_after,
            };
            tokio::spawn(async move { describe_as(&coalesce, &ids, &caller).await })
        });
        for task in join_all(tasks).await {
            task.unwrap();
        }
    });
}
