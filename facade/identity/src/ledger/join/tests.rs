//! Tests that poll the callers of a group one by one.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
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

/// One caller polls the commit, which is woken meanwhile. Another caller is polled because of that, and leaves the commit to the
/// first one, which is dropped, as when a tenant closes the connection.
#[test]
fn caller_that_is_dropped_wakes_another_one() {
    let (barrier, is_sent) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (at_commit, sent) = (Arc::clone(&barrier), Arc::clone(&is_sent));
    let work = poll_fn(move |context| {
        if sent.swap(true, SeqCst) {
            let each = |_| {
                Err(LedgerError::from(StoreError::Full {
                    reason: "full".to_owned(),
                    source: None,
                }))
            };
            return Poll::Ready(Arc::new((0..2).map(each).collect()));
        }
        context.waker().wake_by_ref();
        // The other caller is polled in between.
        at_commit.wait();
        at_commit.wait();
        Poll::Pending
    });
    let (commit, left): (Commit, _) = (work.boxed().shared(), Arc::default());
    let place = |position| Place {
        commit: commit.clone(),
        position,
        left: Arc::clone(&left),
        has_ended: false,
    };
    let (mut leaves, mut stays) = (Box::pin(place(0).result()), Box::pin(place(1).result()));
    let wakes = Arc::new(Wakes::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(poll(leaves.as_mut(), &Arc::default()).is_pending());
            drop(leaves);
        });
        barrier.wait();
        assert!(poll(stays.as_mut(), &wakes).is_pending());
        wakes.0.store(0, SeqCst);
        barrier.wait();
    });
    assert_eq!(wakes.0.load(SeqCst), 1);
    assert!(poll(stays.as_mut(), &wakes).is_ready());
}
