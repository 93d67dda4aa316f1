//! Where the callers of one operation gather until their batch is sent.
//!
//! Owns who is in which batch and when it leaves. It knows nothing of what is sent.

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

type Answers<T> = BTreeMap<InstanceId, T>;
type Journey<T> = Shared<BoxFuture<'static, Arc<Answers<T>>>>;

/// The batches of one operation.
pub(super) struct Lane<T> {
    window: Duration,
    size: NonZeroUsize,
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    /// How many batches are under way.
    under_way: usize,
    /// The batch that can still be joined.
    open: Option<Batch<T>>,
}

/// A batch as each of its callers holds it. Whoever is polled carries its journey on.
struct Batch<T> {
    crowd: Arc<Crowd>,
    journey: Journey<T>,
}

/// Who waits for a batch to leave.
#[derive(Default)]
struct Crowd {
    /// How many callers wait for each id. Empty once it has left.
    waiting: Mutex<BTreeMap<InstanceId, usize>>,
    /// Whether nobody else can join.
    full: AtomicBool,
    /// Something has changed that may let it leave.
    changed: Notify,
}

impl<T> fmt::Debug for Lane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Lane")
            .field("window", &self.window)
            .field("size", &self.size)
            .field("under_way", &state.under_way)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Lane<T> {
    pub(super) fn new(window: Duration, size: NonZeroUsize) -> Self {
        let state = State {
            under_way: 0,
            open: None,
        };
        Self {
            window,
            size,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Joins a batch, and answers what it brings for `id`.
    pub(super) async fn ask(
        &self,
        id: &InstanceId,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Answers<T>> + Send + 'static,
    ) -> Option<T> {
        let (seat, journey) = self.join(id, send);
        let answers = journey.await;
        drop(seat);
        answers.get(id).cloned()
    }

    fn join(
        &self,
        id: &InstanceId,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Answers<T>> + Send + 'static,
    ) -> (Seat, Journey<T>) {
        let mut state = lock(&self.state);
        let batch = match state.open.take() {
            Some(open) => open,
            None => self.gather(send),
        };
        let seat = Seat::take(&batch.crowd, id);
        let journey = batch.journey.clone();
        if lock(&batch.crowd.waiting).len() < self.size.get() {
            state.open = Some(batch);
        } else {
            batch.crowd.full.store(true, Ordering::Relaxed);
            batch.crowd.changed.notify_one();
        }
        (seat, journey)
    }

    /// A new batch, which leaves as [`patience`] says.
    fn gather(
        &self,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Answers<T>> + Send + 'static,
    ) -> Batch<T> {
        let crowd = Arc::new(Crowd::default());
        // Weak, because the lane holds the batch that can still be joined.
        let (window, state, gathered) =
            (self.window, Arc::downgrade(&self.state), Arc::clone(&crowd));
        let journey = async move {
            let began = Instant::now();
            loop {
                let patience = patience(window, &state, &gathered);
                let left = patience.saturating_sub(began.elapsed());
                if left.is_zero() {
                    break;
                }
                let _ = timeout(left, gathered.changed.notified()).await;
            }
            let under_way = UnderWay::begin(&state, &gathered);
            let ids: Vec<_> = std::mem::take(&mut *lock(&gathered.waiting))
                .into_keys()
                .collect();
            let answers = send(ids).await;
            drop(under_way);
            Arc::new(answers)
        };
        Batch {
            crowd,
            journey: journey.boxed().shared(),
        }
    }
}

/// How long a batch gathers, by what is now: not at all when nothing is under way or nobody can join,
/// and twice as long for each call under way after the first. Below, calls may wait for their turn: if
/// batches left as fast as ever, they would pile up there and never be fewer.
fn patience<T>(window: Duration, state: &Weak<Mutex<State<T>>>, crowd: &Crowd) -> Duration {
    let under_way = state.upgrade().map_or(0, |state| lock(&state).under_way);
    if under_way == 0 || crowd.full.load(Ordering::Relaxed) {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(under_way - 1).unwrap_or(u32::MAX);
    window.saturating_mul(2_u32.saturating_pow(doublings))
}

/// A caller's place in a batch. Who leaves it before the batch does is not sent.
struct Seat {
    crowd: Arc<Crowd>,
    id: InstanceId,
}

impl Seat {
    fn take(crowd: &Arc<Crowd>, id: &InstanceId) -> Self {
        *lock(&crowd.waiting).entry(id.clone()).or_default() += 1;
        Self {
            crowd: Arc::clone(crowd),
            id: id.clone(),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut waiting = lock(&self.crowd.waiting);
        if let Some(callers) = waiting.get_mut(&self.id) {
            *callers -= 1;
            if *callers == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

/// A batch under way. Its end, also by being dropped, may let those leave who have gathered meanwhile.
struct UnderWay<T> {
    state: Arc<Mutex<State<T>>>,
}

impl<T> UnderWay<T> {
    fn begin(state: &Weak<Mutex<State<T>>>, crowd: &Arc<Crowd>) -> Option<Self> {
        // Callers borrow the lane, so it is there as long as any of them is polled.
        let state = state.upgrade()?;
        let mut now = lock(&state);
        now.under_way += 1;
        // From here on nobody can join it.
        let left = |open: &mut Batch<T>| Arc::ptr_eq(&open.crowd, crowd);
        // The journey inside is this very one, so it must not be dropped under the lock.
        let closed = now.open.take_if(left);
        drop(now);
        drop(closed);
        Some(Self { state })
    }
}

impl<T> Drop for UnderWay<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.under_way -= 1;
        if let Some(open) = &state.open {
            open.crowd.changed.notify_one();
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // Nothing under these locks panics; if it did, what they guard would still be sound.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
