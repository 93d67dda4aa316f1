use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::stream;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::*;
use crate::clock::{TokioClock, later};

const SECOND: Duration = Duration::from_secs(1);

fn clock() -> Arc<dyn Clock> {
    Arc::new(TokioClock::starting_at(DateTime::UNIX_EPOCH))
}

/// Yields these keys once and then nothing.
fn once(keys: Vec<u32>) -> impl Stream<Item = Vec<u32>> + Send {
    stream::iter([keys]).chain(stream::pending())
}

fn never_fails(_: &u32, _: &&str, _: u32) -> Duration {
    unreachable!("no reconcile fails")
}

/// When each call started, in seconds.
#[derive(Default)]
struct Calls(Mutex<Vec<(u32, u64)>>);

impl Calls {
    fn record(&self, key: u32, started: Instant) {
        let at = started.elapsed().as_secs();
        self.0.lock().unwrap().push((key, at));
    }

    fn all(&self) -> Vec<(u32, u64)> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_the_given_number_of_keys_are_reconciled_at_once() {
    let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let queued = Mutex::new(Vec::new());
    let reconcile = |_| async {
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(now, Ordering::SeqCst);
        sleep(SECOND).await;
        running.fetch_sub(1, Ordering::SeqCst);
        Ok(Action::AwaitChange)
    };
    let runner = Runner::new(once((0..10).collect()), clock())
        .concurrency(NonZeroUsize::new(3).unwrap())
        .on_queue_length(|length| queued.lock().unwrap().push(length));
    let ran = timeout(SECOND * 60, runner.run(reconcile, never_fails)).await;
    assert!(ran.is_err(), "it runs until it is dropped");
    assert_eq!(most.into_inner(), 3);
    let queued = queued.into_inner().unwrap();
    assert_eq!(queued.iter().max(), Some(&7));
    assert_eq!(queued.last(), Some(&0));
}

#[tokio::test(start_paused = true)]
async fn key_woken_during_its_reconcile_is_reconciled_again() {
    let (wake, woken) = mpsc::unbounded_channel();
    let woken = stream::unfold(woken, |mut woken| async move {
        woken.recv().await.map(|keys| (keys, woken))
    });
    let (calls, started) = (Calls::default(), Instant::now());
    let reconcile = |key| {
        calls.record(key, started);
        async {
            sleep(SECOND * 10).await;
            Ok(Action::AwaitChange)
        }
    };
    let runner = Runner::new(woken, clock()).concurrency(NonZeroUsize::new(3).unwrap());
    let waking = async {
        for _ in 0..4 {
            wake.send(vec![7]).unwrap();
            sleep(SECOND).await;
        }
        sleep(SECOND * 60).await;
    };
    tokio::select! {
        () = runner.run(reconcile, never_fails) => {}
        () = waking => {}
    }
    assert_eq!(calls.all(), [(7, 0), (7, 10)]);
}

#[tokio::test(start_paused = true)]
async fn action_decides_when_the_key_is_reconciled_again() {
    let (clock, calls, started) = (clock(), Calls::default(), Instant::now());
    let reconcile = |key| {
        calls.record(key, started);
        let calls_so_far = calls.all().len();
        let now = clock.now();
        async move {
            Ok(match calls_so_far {
                1 => Action::Requeue,
                2 => Action::RequeueAt(later(now, SECOND * 30)),
                // Further away than the longest timer.
                3 => Action::RequeueAt(later(now, SECOND * 10_000)),
                _ => Action::AwaitChange,
            })
        }
    };
    let runner = Runner::new(once(vec![1]), Arc::clone(&clock));
    let ran = timeout(SECOND * 90_000, runner.run(reconcile, never_fails)).await;
    assert!(ran.is_err());
    assert_eq!(calls.all(), [(1, 0), (1, 0), (1, 30), (1, 3630)]);
}

#[tokio::test(start_paused = true)]
async fn error_policy_gets_the_number_of_consecutive_failures() {
    let (calls, started) = (Calls::default(), Instant::now());
    let results = Mutex::new(BTreeMap::from([
        (1, Err("first")),
        (2, Err("second")),
        (3, Ok(Action::Requeue)),
        (4, Err("conflict")),
    ]));
    let reconcile = |key| {
        calls.record(key, started);
        let result = results.lock().unwrap().remove(&calls.all().len());
        async move { result.unwrap_or(Ok(Action::AwaitChange)) }
    };
    let reported = Mutex::new(Vec::new());
    let policy = |key: &u32, error: &&'static str, failures| {
        reported.lock().unwrap().push((*key, *error, failures));
        match *error {
            "conflict" => Duration::ZERO,
            _ => SECOND * 5 * failures,
        }
    };
    let runner = Runner::new(once(vec![1]), clock());
    let ran = timeout(SECOND * 600, runner.run(reconcile, policy)).await;
    assert!(ran.is_err());
    let reported = reported.into_inner().unwrap();
    assert_eq!(
        reported,
        [(1, "first", 1), (1, "second", 2), (1, "conflict", 1)]
    );
    assert_eq!(calls.all(), [(1, 0), (1, 5), (1, 15), (1, 15), (1, 15)]);
}
