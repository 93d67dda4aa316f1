//! The queue in which the callers of one operation wait until their batch is sent.
//!
//! Owns which caller is in which batch, and when a batch is sent. It never sends anything itself:
//! the caller passes a function that does.
//!
//! The life of a batch:
//!
//! 1. The first caller creates it; later callers [join](BatchQueue::submit) it while it is open.
//! 2. It is closed when it is full, or when its delay is over; see [`gathering_delay`].
//! 3. It is sent, and every caller takes its own result from the shared results.
//!
//! A batch is one [`Shared`] future: whichever of its callers is polled drives it. It is dropped
//! when its last caller is dropped.

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::InstanceId;

/// The results of a batch, by instance.
type Results<T> = BTreeMap<InstanceId, T>;

/// The future of a batch, which all its callers share.
type SharedBatch<T> = Shared<BoxFuture<'static, Arc<Results<T>>>>;

/// The batches of one operation.
pub(super) struct BatchQueue<T> {
    window: Duration,
    max_size: NonZeroUsize,
    state: Arc<Mutex<QueueState<T>>>,
}

struct QueueState<T> {
    /// How many batches were sent and have not returned.
    in_flight: usize,
    /// The batch that callers can still join.
    open: Option<OpenBatch<T>>,
}

/// A batch that was not sent yet.
struct OpenBatch<T> {
    waiters: Arc<Waiters>,
    shared: SharedBatch<T>,
}

/// The callers that wait for a batch to be sent.
#[derive(Default)]
struct Waiters {
    /// How many callers wait for each instance. Empty once the batch was sent.
    by_id: Mutex<BTreeMap<InstanceId, usize>>,
    /// Whether the batch has its maximum size, so that nobody can join.
    full: AtomicBool,
    /// Signals a change after which the batch may be sent.
    changed: Notify,
}

impl<T> fmt::Debug for BatchQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("BatchQueue")
            .field("window", &self.window)
            .field("max_size", &self.max_size)
            .field("in_flight", &state.in_flight)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> BatchQueue<T> {
    /// Creates an empty queue whose batches wait for at least `window` and have at most `max_size`
    /// instances.
    pub(super) fn new(window: Duration, max_size: NonZeroUsize) -> Self {
        let state = QueueState {
            in_flight: 0,
            open: None,
        };
        Self {
            window,
            max_size,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Joins the open batch, or creates one that `send` sends, and returns the result for `id`.
    /// Returns `None` if the batch returned nothing for it.
    pub(super) async fn submit(
        &self,
        id: &InstanceId,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Send + 'static,
    ) -> Option<T> {
        let (waiter, shared) = self.join(id, send);
        let results = shared.await;
        drop(waiter);
        results.get(id).cloned()
    }

    fn join(
        &self,
        id: &InstanceId,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Send + 'static,
    ) -> (WaiterGuard, SharedBatch<T>) {
        let mut state = lock(&self.state);
        let batch = match state.open.take() {
            Some(open) => open,
            None => self.open_batch(send),
        };
        let waiter = WaiterGuard::register(&batch.waiters, id);
        let shared = batch.shared.clone();
        if lock(&batch.waiters.by_id).len() < self.max_size.get() {
            state.open = Some(batch);
        } else {
            batch.waiters.full.store(true, Ordering::Relaxed);
            batch.waiters.changed.notify_one();
        }
        (waiter, shared)
    }

    /// Creates a batch that waits for its [`gathering_delay`] and is then sent.
    fn open_batch(
        &self,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Send + 'static,
    ) -> OpenBatch<T> {
        let waiters = Arc::new(Waiters::default());
        // Weak, because the queue holds the open batch: a strong reference would be a cycle.
        let state = Arc::downgrade(&self.state);
        let (window, own_waiters) = (self.window, Arc::clone(&waiters));
        let future = async move {
            wait_until_due(window, &state, &own_waiters).await;
            let in_flight = InFlightGuard::start(&state, &own_waiters);
            let ids = std::mem::take(&mut *lock(&own_waiters.by_id));
            let results = send(ids.into_keys().collect()).await;
            drop(in_flight);
            Arc::new(results)
        };
        OpenBatch {
            waiters,
            shared: future.boxed().shared(),
        }
    }
}

/// Waits until a batch must be sent. The delay is computed again after every change.
async fn wait_until_due<T>(
    window: Duration,
    state: &Weak<Mutex<QueueState<T>>>,
    waiters: &Waiters,
) {
    let created = Instant::now();
    loop {
        let delay = gathering_delay(window, state, waiters);
        let remaining = delay.saturating_sub(created.elapsed());
        if remaining.is_zero() {
            return;
        }
        let _ = timeout(remaining, waiters.changed.notified()).await;
    }
}

/// How long a batch waits for more callers after it was created: not at all when no batch is in
/// flight or when it is full, else the window, doubled for each batch in flight after the first.
///
/// The doubling matters because calls may queue in a layer below: if batches were sent at a constant
/// rate, they would pile up there and never get larger.
fn gathering_delay<T>(
    window: Duration,
    state: &Weak<Mutex<QueueState<T>>>,
    waiters: &Waiters,
) -> Duration {
    let in_flight = state.upgrade().map_or(0, |state| lock(&state).in_flight);
    if in_flight == 0 || waiters.full.load(Ordering::Relaxed) {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(in_flight - 1).unwrap_or(u32::MAX);
    window.saturating_mul(2_u32.saturating_pow(doublings))
}

/// One caller that waits for a batch. If it is dropped before the batch is sent, its instance is
/// not sent, unless another caller waits for the same instance.
struct WaiterGuard {
    waiters: Arc<Waiters>,
    id: InstanceId,
}

impl WaiterGuard {
    fn register(waiters: &Arc<Waiters>, id: &InstanceId) -> Self {
        *lock(&waiters.by_id).entry(id.clone()).or_default() += 1;
        Self {
            waiters: Arc::clone(waiters),
            id: id.clone(),
        }
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        let mut by_id = lock(&self.waiters.by_id);
        if let Some(callers) = by_id.get_mut(&self.id) {
            *callers -= 1;
            if *callers == 0 {
                by_id.remove(&self.id);
            }
        }
    }
}

/// A batch in flight. When it ends or is dropped, the open batch may be due.
struct InFlightGuard<T> {
    state: Arc<Mutex<QueueState<T>>>,
}

impl<T> InFlightGuard<T> {
    /// Counts the batch as in flight and closes it, so that no caller can join.
    fn start(state: &Weak<Mutex<QueueState<T>>>, waiters: &Arc<Waiters>) -> Option<Self> {
        // Callers borrow the queue, so it exists as long as any of them is polled.
        let state = state.upgrade()?;
        let mut locked = lock(&state);
        locked.in_flight += 1;
        let is_this_batch = |open: &mut OpenBatch<T>| Arc::ptr_eq(&open.waiters, waiters);
        // The open batch holds the future that runs this code: drop it after the lock.
        let closed = locked.open.take_if(is_this_batch);
        drop(locked);
        drop(closed);
        Some(Self { state })
    }
}

impl<T> Drop for InFlightGuard<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.in_flight -= 1;
        if let Some(open) = &state.open {
            open.waiters.changed.notify_one();
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // No code panics while it holds one of these locks, and the values would be valid if it did.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
