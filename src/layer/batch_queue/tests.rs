//! Tests that poll the callers of a batch one by one.

use std::{
    pin::Pin,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    thread,
};

use super::*;

/// Counts how often it wakes a caller.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(wakes));
    future.poll(&mut Context::from_waker(&waker))
}

/// One caller polls the batch, which is woken meanwhile. Another caller is polled because of that, and leaves the batch to the
/// first one, which is dropped.
#[test]
fn caller_that_is_dropped_wakes_another_one() {
    let ids = ["i-1", "i-2"].map(|id| InstanceId::new(id).unwrap());
    let queue = BatchQueue::new(Duration::from_secs(1), NonZeroUsize::new(2).unwrap());
    let (barrier, is_sent) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (at_send, sent) = (Arc::clone(&barrier), Arc::clone(&is_sent));
    let send = move |ids: Vec<InstanceId>| -> BoxFuture<'static, Results<()>> {
        let (barrier, is_sent) = (Arc::clone(&at_send), Arc::clone(&sent));
        Box::pin(poll_fn(move |context| {
            if is_sent.swap(true, SeqCst) {
                return Poll::Ready(ids.iter().cloned().map(|id| (id, ())).collect());
            }
            context.waker().wake_by_ref();
            // The other caller is polled in between.
            barrier.wait();
            barrier.wait();
            Poll::Pending
        }))
    };
    let (first, second) = ids.split_at(1);
    let mut leaves = Box::pin(queue.submit(first, send.clone()));
    let mut stays = Box::pin(queue.submit(second, send));
    let wakes = Arc::new(Wakes::default());
    assert!(poll(leaves.as_mut(), &Arc::default()).is_pending());
    assert!(poll(stays.as_mut(), &wakes).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_sent.load(SeqCst) {
                assert!(poll(leaves.as_mut(), &Arc::default()).is_pending());
            }
            drop(leaves);
        });
        barrier.wait();
        wakes.0.store(0, SeqCst);
        assert!(poll(stays.as_mut(), &wakes).is_pending());
        barrier.wait();
    });
    assert_eq!(wakes.0.load(SeqCst), 1);
    assert!(matches!(poll(stays.as_mut(), &wakes), Poll::Ready(results) if results == [Some(())]));
}
