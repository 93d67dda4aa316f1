//! Under a steady load the queue does not grow, whatever delays the calls below.

use std::{sync::Arc, time::Duration};

use fleetwright::{
    InstanceProvisioner as _, Operation,
    layer::{LimitPolicy, Rate, Stack},
};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::{
    millis, numbered,
    scripted::{Response, Scripted},
};
use crate::fake::{call, secs};

/// Sends a call every 20 ms for `time`. Returns when each was sent and how long it took.
async fn load(stack: Stack, backend: Arc<Scripted>, time: Duration) -> Vec<(Duration, Duration)> {
    let (stack, ids) = (stack.wrap(backend), Arc::new(numbered(500)));
    let began = Instant::now();
    let tasks = (0..).map(|n| millis(20) * n).take_while(|at| *at < time);
    let tasks = tasks.enumerate().map(|(n, at)| {
        let (stack, ids) = (stack.clone(), ids.clone());
        tokio::spawn(async move {
            sleep(at).await;
            stack.describe_instance(&ids[n % 500]).await.unwrap();
            (at, began.elapsed() - at)
        })
    });
    let waits = join_all(tasks.collect::<Vec<_>>()).await;
    waits.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(start_paused = true)]
async fn callers_delayed_by_throttling_share_few_calls() {
    let throttled = call(Operation::DescribeInstances).throttled(secs(30));
    let backend =
        Arc::new(Scripted::new([Response::Success, throttled.into()]).with_latency(millis(50)));
    let waits = load(Stack::default(), Arc::clone(&backend), secs(60)).await;
    // The queue drains soon after calls succeed again, although new calls join it.
    let late = waits.iter().filter(|(requested, _)| *requested > secs(35));
    let worst = late.map(|(_, waited)| *waited).max().unwrap();
    assert!(worst < millis(500), "{worst:?}");
    let held = backend
        .times()
        .into_iter()
        .filter(|at| (secs(30)..secs(32)).contains(at));
    assert!(held.count() < 30);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_do_not_pile_up_before_the_limit() {
    let policy =
        LimitPolicy::unlimited().with(&[Operation::DescribeInstance], Rate::every(secs(1)));
    let backend = Arc::new(Scripted::new([]).with_latency(millis(300)));
    let waits = load(
        Stack::default().limit(policy),
        Arc::clone(&backend),
        secs(60),
    )
    .await;
    let worst = waits.iter().map(|(_, waited)| *waited).max().unwrap();
    assert!(worst < secs(10), "{worst:?}");
}
