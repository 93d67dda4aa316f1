//! Under a steady load nothing piles up, whatever holds the calls below.

use std::{sync::Arc, time::Duration};

use fleetwright::{
    InstanceProvisioner as _, Operation,
    layer::{LimitPolicy, Rate, Stack},
};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::{
    millis, numbered,
    script::{Answer, Script},
};
use crate::fake::{call, secs};

/// Asks every twenty milliseconds for `time`, and answers when each asked and how long it waited.
async fn load(stack: Stack, script: Arc<Script>, time: Duration) -> Vec<(Duration, Duration)> {
    let (stack, ids) = (stack.wrap(script), Arc::new(numbered(500)));
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
    let script = Arc::new(Script::new([Answer::Good, throttled.into()]).taking(millis(50)));
    let waits = load(Stack::default(), Arc::clone(&script), secs(60)).await;
    // The queue is gone soon after calls go again, not kept up by those who come to its end.
    let late = waits.iter().filter(|(asked, _)| *asked > secs(35));
    let worst = late.map(|(_, waited)| *waited).max().unwrap();
    assert!(worst < millis(500), "{worst:?}");
    let held = script
        .times()
        .into_iter()
        .filter(|at| (secs(30)..secs(32)).contains(at));
    assert!(held.count() < 30);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_do_not_pile_up_before_the_limit() {
    let policy =
        LimitPolicy::unlimited().with(&[Operation::DescribeInstance], Rate::every(secs(1)));
    let script = Arc::new(Script::new([]).taking(millis(300)));
    let waits = load(
        Stack::default().limit(policy),
        Arc::clone(&script),
        secs(60),
    )
    .await;
    let worst = waits.iter().map(|(_, waited)| *waited).max().unwrap();
    assert!(worst < secs(10), "{worst:?}");
}
