//! Small batches, such as the polls of waits, share calls with others.

use std::{num::NonZeroU32, sync::Arc};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, InstanceProvisioner, Operation, RetryAdvice,
    layer::{CoalescePolicy, Stack},
    wait::{self, WaitCause, WaitPolicy},
};
use fleetwright_memory::{MemoryCloud, Timing, WireCall};
use futures_util::future::join_all;
use tokio::{
    sync::Barrier,
    time::{Instant, sleep, timeout},
};

use super::{
    coalesce::{sent, wrap},
    many, millis, numbered, plain,
    scripted::{Scripted, items},
    size,
};
use crate::fake::{call, id, secs};

#[tokio::test(start_paused = true)]
async fn single_calls_and_batches_share_a_call_and_get_their_own_results() {
    let not_found = call(Operation::DescribeInstances).not_found(&id("i-1"));
    let backend = Scripted::new([items([("i-1", not_found)])]).with_latency(millis(10));
    let coalesce = wrap(backend, CoalescePolicy::default());
    let ids = ["i-0", "i-1", "i-2", "i-3"].map(id);
    let repeated = [ids[3].clone(), ids[1].clone(), ids[3].clone()];
    let (pair, one, missing, mixed) = tokio::join!(
        coalesce.describe_instances(&ids[..2]),
        coalesce.describe_instance(&ids[2]),
        coalesce.describe_instance(&ids[1]),
        coalesce.describe_instances(&repeated)
    );
    assert_eq!(sent(&coalesce), ["1: i-0 i-1 i-2 i-3"]);
    assert_eq!(pair[0].as_ref().unwrap().id, ids[0]);
    assert_eq!(one.unwrap().id, ids[2]);
    let operations = [
        (missing.as_ref().unwrap_err(), Operation::DescribeInstance),
        (pair[1].as_ref().unwrap_err(), Operation::DescribeInstances),
        (mixed[1].as_ref().unwrap_err(), Operation::DescribeInstances),
    ];
    for (error, operation) in operations {
        let found = (error.kind(), error.operation());
        assert_eq!(found, (ErrorKind::NotFound, operation));
    }
    assert_eq!(mixed.len(), 3);
    for at in [0, 2] {
        assert_eq!(mixed[at].as_ref().unwrap().id, ids[3]);
    }
}

#[tokio::test(start_paused = true)]
async fn every_batch_operation_is_combined() {
    let coalesce = wrap(
        Scripted::new([]).with_latency(secs(1)),
        CoalescePolicy::default(),
    );
    let (left, right) = (numbered(2), [id("i-8"), id("i-9")]);
    for number in 0..4 {
        let send = async |ids: &[InstanceId]| match number {
            0 => coalesce.describe_instances(ids).await.len(),
            1 => coalesce.stop_instances(ids).await.len(),
            2 => coalesce.start_instances(ids).await.len(),
            _ => coalesce.terminate_instances(ids).await.len(),
        };
        assert_eq!(tokio::join!(send(&left), send(&right)), (2, 2));
        assert_eq!(coalesce.inner().calls().len(), number + 1);
    }
    let targets = coalesce.inner().targets();
    assert!(targets.iter().all(|ids| ids.join(" ") == "i-0 i-1 i-8 i-9"));
}

#[tokio::test(start_paused = true)]
async fn full_batch_is_passed_on_and_a_smaller_one_fills_the_open_one() {
    let policy = CoalescePolicy::default().max_size(size(4));
    let coalesce = wrap(Scripted::new([]).with_latency(secs(1)), policy);
    let ids = numbered(10);
    let (full, three, two) = tokio::join!(
        coalesce.stop_instances(&ids[..5]),
        coalesce.stop_instances(&ids[5..8]),
        coalesce.stop_instances(&ids[8..])
    );
    assert_eq!((full.len(), three.len(), two.len()), (5, 3, 2));
    let expected = ["0: i-0 i-1 i-2 i-3 i-4", "0: i-5 i-6 i-7 i-8", "100: i-9"];
    assert_eq!(sent(&coalesce), expected);
}

#[tokio::test(start_paused = true)]
async fn dropped_batch_is_sent_only_for_other_callers() {
    let coalesce = wrap(
        Scripted::new([]).with_latency(millis(50)),
        CoalescePolicy::default(),
    );
    let ids = numbered(5);
    let later = async |ids: &[InstanceId]| {
        sleep(millis(1)).await;
        coalesce.terminate_instances(ids).await
    };
    let (_, dropped, kept) = tokio::join!(
        coalesce.terminate_instance(&ids[0]),
        timeout(millis(20), later(&ids[1..4])),
        later(&ids[3..])
    );
    assert!(dropped.is_err() && kept.iter().all(Result::is_ok));
    assert_eq!(sent(&coalesce), ["0: i-0", "50: i-3 i-4"]);
}

#[tokio::test(start_paused = true)]
async fn failed_item_of_a_batch_is_retried_for_its_caller_only() {
    let busy = call(Operation::StopInstances).conflict("busy", RetryAdvice::After(secs(5)));
    let backend = Arc::new(Scripted::new([items([("i-1", busy)])]).with_latency(millis(10)));
    let stack = Stack::default().wrap(Arc::clone(&backend));
    let (ids, began) = (numbered(4), Instant::now());
    let stop = async |ids: &[InstanceId]| {
        let results = stack.stop_instances(ids).await;
        assert!(results.iter().all(Result::is_ok));
        began.elapsed()
    };
    let (failed, other) = tokio::join!(stop(&ids[..2]), stop(&ids[2..]));
    assert!(
        failed >= secs(5) && other <= millis(20),
        "{failed:?} {other:?}"
    );
    assert_eq!(backend.targets()[1..], [["i-1"]]);
}

/// Launches instances that run after a minute.
async fn launch(count: u32) -> (MemoryCloud, Vec<InstanceId>) {
    let mut timing = Timing::default();
    timing.boot = secs(60);
    let cloud = MemoryCloud::builder().timing(timing).build();
    let launcher = cloud.provisioner();
    let launched = launcher.launch_instances(&plain(), many(count)).await;
    let ids = launched.unwrap().into_iter().map(|info| info.id).collect();
    (cloud, ids)
}

/// Waits for each instance in its own task, and returns the calls that all of them made.
async fn calls_of_waits(policy: &WaitPolicy, expect: fn(&WaitCause) -> bool) -> u64 {
    let (cloud, ids) = launch(10_000).await;
    let stack = Stack::default().wrap(cloud.provisioner());
    let waits = ids.into_iter().map(|id| {
        let (stack, policy) = (Arc::clone(&stack), policy.clone());
        tokio::spawn(async move {
            let goal = CloudInstanceState::Running;
            wait::for_state(&*stack, &[id], goal, &policy).await
        })
    });
    for wait in join_all(waits.collect::<Vec<_>>()).await {
        let error = wait.unwrap().unwrap_err();
        assert!(expect(&error.cause), "{error}");
    }
    cloud.oracle().call_count(WireCall::Describe)
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_poll_with_ten_calls_a_round() {
    for rounds in [1, 3] {
        let policy = WaitPolicy::within(secs(50))
            .max_polls(NonZeroU32::new(rounds).unwrap())
            .jitter_seed(1);
        let is_limit = |cause: &WaitCause| matches!(cause, WaitCause::PollLimit);
        let calls = calls_of_waits(&policy, is_limit).await;
        assert_eq!(calls, u64::from(rounds) * 10);
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_on_common_ticks_poll_with_ten_calls_a_round() {
    let rounds = 3;
    let policy = WaitPolicy::within(secs(50)).max_polls(NonZeroU32::new(rounds).unwrap());
    let is_limit = |cause: &WaitCause| matches!(cause, WaitCause::PollLimit);
    let calls = calls_of_waits(&policy, is_limit).await;
    assert_eq!(calls, u64::from(rounds) * 10);
}

/// Waits that begin one millisecond after the other, for a second, share the ticks after that.
#[tokio::test(start_paused = true)]
async fn waiters_that_begin_at_different_times_share_calls() {
    let mut timing = Timing::default();
    timing.boot = secs(20);
    let cloud = MemoryCloud::builder().timing(timing).build();
    let launched = cloud.provisioner();
    let launched = launched.launch_instances(&plain(), many(1_000)).await;
    let stack = Stack::default().wrap(cloud.provisioner());
    let policy = WaitPolicy::within(secs(60)).delays(secs(2), secs(2));
    let waits = launched
        .unwrap()
        .into_iter()
        .zip(0..)
        .map(|(info, begins)| {
            let (stack, policy) = (Arc::clone(&stack), policy.clone());
            tokio::spawn(async move {
                tokio::time::sleep(millis(begins)).await;
                let goal = CloudInstanceState::Running;
                wait::for_state(&*stack, &[info.id], goal, &policy).await
            })
        });
    let waits = waits.collect::<Vec<_>>();
    tokio::time::sleep(millis(1_500)).await;
    let before = cloud.oracle().call_count(WireCall::Describe);
    for wait in join_all(waits).await {
        wait.unwrap().unwrap();
    }
    // Ten ticks, and one more for the waits that missed the tick before.
    let calls = cloud.oracle().call_count(WireCall::Describe) - before;
    assert!(calls <= 22, "{calls} calls");
}

/// Real time: all tasks begin at once, and a call takes so long that a busy machine does not change what it shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_tasks_on_many_threads_make_few_calls() {
    let backend = Arc::new(Scripted::new([]).with_latency(millis(100)));
    let stack = Stack::default().wrap(Arc::clone(&backend));
    let begin = Arc::new(Barrier::new(500));
    let describes = numbered(500).into_iter().map(|id| {
        let (stack, begin) = (Arc::clone(&stack), Arc::clone(&begin));
        tokio::spawn(async move {
            begin.wait().await;
            stack.describe_instance(&id).await.unwrap().id == id
        })
    });
    for described in join_all(describes.collect::<Vec<_>>()).await {
        assert!(described.unwrap());
    }
    let calls = backend.calls().len();
    assert!(calls <= 50, "{calls} calls");
}
