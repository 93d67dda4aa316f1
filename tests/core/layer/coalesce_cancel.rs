//! Cancelled and hanging calls do not affect other callers.

use std::sync::Arc;

use fleetwright::{
    InstanceProvisioner,
    layer::{Coalesce, CoalescePolicy},
};
use fleetwright_memory::{MemoryCloud, WireCall};
use futures_util::{FutureExt as _, StreamExt as _, future::join_all, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, timeout};

use super::{
    coalesce::{sent, wrap},
    drop_after, many, millis, numbered, plain,
    scripted::{Response, Scripted},
};
use crate::fake::{id, secs};

#[tokio::test(start_paused = true)]
async fn five_hundred_callers_make_one_call_even_if_ten_are_dropped() {
    for leaving in [None, Some(7), Some(0)] {
        let cloud = MemoryCloud::builder().latency(millis(50)).build();
        let launched = cloud
            .provisioner()
            .launch_instances(&plain(), many(500))
            .await
            .unwrap();
        let coalesce = Coalesce::new(cloud.provisioner(), CoalescePolicy::default());
        let calls = launched.iter().enumerate().map(|(n, info)| {
            let coalesce = &coalesce;
            async move {
                let call = coalesce.describe_instance(&info.id);
                if Some(n % 50) == leaving {
                    // Some are dropped before their batch is sent, some after.
                    let _ = timeout(millis(9 * (n as u64 / 50 + 1)), call).await;
                } else {
                    assert_eq!(call.await.unwrap().id, info.id);
                }
            }
        });
        let began = Instant::now();
        join_all(calls).await;
        assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
        assert!(began.elapsed() <= millis(100));
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_share_batches() {
    let cloud = MemoryCloud::builder().latency(millis(50)).build();
    let launched = cloud
        .provisioner()
        .launch_instances(&plain(), many(500))
        .await
        .unwrap();
    let coalesce = Arc::new(Coalesce::new(
        cloud.provisioner(),
        CoalescePolicy::default(),
    ));
    let tasks: Vec<_> = launched
        .iter()
        .map(|info| {
            let (coalesce, id) = (Arc::clone(&coalesce), info.id.clone());
            tokio::spawn(async move { coalesce.describe_instance(&id).await.unwrap().id == id })
        })
        .collect();
    tasks[0].abort();
    tasks[300].abort();
    let results = join_all(tasks).await;
    assert_eq!(
        results.iter().filter(|a| matches!(a, Ok(true))).count(),
        498
    );
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_any_caller_does_not_affect_the_others() {
    for leaver in 0..4 {
        for polls in 0..60 {
            let backend = Scripted::new([]).with_latency(millis(20));
            let coalesce = wrap(backend, CoalescePolicy::default().window(millis(10)));
            let calls = numbered(4).into_iter().enumerate().map(|(n, id)| {
                let coalesce = &coalesce;
                async move {
                    let call = coalesce.describe_instance(&id);
                    let polls = if n == leaver { polls } else { usize::MAX };
                    let result = drop_after(polls, call).await;
                    assert!(n == leaver || result.unwrap().unwrap().id == id);
                }
            });
            // Each waiter is woken only for its own result.
            let mut calls: FuturesUnordered<_> = calls.collect();
            let all = timeout(secs(9), async { while calls.next().await.is_some() {} });
            all.await
                .unwrap_or_else(|_| panic!("{leaver} after {polls}: somebody is lost"));
            // No call is running: the next one does not wait.
            let began = coalesce.inner().elapsed();
            coalesce.describe_instance(&id("i-9")).await.unwrap();
            assert_eq!(
                coalesce.inner().elapsed() - began,
                millis(20),
                "{leaver} after {polls}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn caller_dropped_before_sending_is_not_sent() {
    let coalesce = wrap(
        Scripted::new([]).with_latency(millis(50)),
        CoalescePolicy::default(),
    );
    let names = numbered(4);
    let terminate = |n: usize| coalesce.terminate_instance(&names[n]);
    // While the first call is in flight.
    let later = async |n: usize| {
        sleep(millis(1)).await;
        terminate(n).await
    };
    let twice = async {
        // Of two callers for one instance, one remains.
        let _ = timeout(millis(20), later(3)).await;
    };
    let (first, given_up, _, stays, ()) = tokio::join!(
        terminate(0),
        timeout(millis(20), later(1)),
        timeout(millis(30), later(2)),
        later(3),
        twice
    );
    assert!(first.is_ok() && given_up.is_err() && stays.is_ok());
    assert_eq!(sent(&coalesce), ["0: i-0", "50: i-3"]);
    // If all callers are dropped, nothing is sent, and the next call is alone.
    let busy = terminate(0);
    let leave = async { timeout(millis(20), later(1)).await.unwrap_err() };
    let (_, _) = tokio::join!(busy, leave);
    sleep(secs(1)).await;
    let began = coalesce.inner().elapsed();
    terminate(2).await.unwrap();
    assert_eq!(coalesce.inner().elapsed() - began, millis(50));
    assert_eq!(sent(&coalesce)[2..], ["100: i-0", "1150: i-2"]);
}

#[tokio::test(start_paused = true)]
async fn hanging_call_delays_later_callers_by_the_window_only() {
    let coalesce = wrap(Scripted::new([Response::Hang]), CoalescePolicy::default());
    let names = numbered(3);
    let hung = coalesce
        .describe_instance(&names[0])
        .map(|_| unreachable!());
    let others = async {
        sleep(millis(1)).await;
        for n in [1, 2] {
            let began = Instant::now();
            coalesce.describe_instance(&names[n]).await.unwrap();
            assert_eq!(began.elapsed(), millis(100));
        }
    };
    tokio::select! { () = hung => {}, () = others => {} }
    // Once its caller is dropped, the hanging call no longer counts as running.
    coalesce.describe_instance(&names[1]).await.unwrap();
    assert_eq!(coalesce.inner().elapsed(), millis(201));
}

#[tokio::test(start_paused = true)]
async fn unused_backend_is_dropped() {
    let backend = Arc::new(Scripted::always(Response::Hang));
    let policy = CoalescePolicy::default().window(secs(9));
    let coalesce = Coalesce::new(Arc::clone(&backend), policy);
    let names = numbered(2);
    let all = join_all(names.iter().map(|id| coalesce.describe_instance(id)));
    assert!(timeout(secs(1), all).await.is_err());
    assert!(
        format!("{coalesce:?}").contains("in_flight: 0"),
        "{coalesce:?}"
    );
    drop(coalesce);
    assert_eq!(Arc::strong_count(&backend), 1);
}
