//! Who shares a call with whom, and when it is sent.

use std::{sync::Arc, time::Duration};

use fleetwright::{
    Effect, ErrorKind, InstanceProvisioner, Operation,
    layer::{Coalesce, CoalescePolicy, Layered, Retry, RetryPolicy},
};
use fleetwright_memory::{MemoryCloud, WireCall};
use futures_util::{FutureExt as _, StreamExt as _, future::join_all, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, timeout};

use super::{
    dropped_after, many, millis, numbered, plain,
    script::{Answer, Script, items},
    size,
};
use crate::fake::{call, id, secs};

fn over(script: Script, policy: CoalescePolicy) -> Coalesce<Script> {
    Coalesce::new(script, policy)
}

/// What was sent, each call as `when: ids`.
fn sent(coalesce: &Coalesce<Script>) -> Vec<String> {
    let calls = coalesce.inner().calls().into_iter();
    calls
        .map(|call| format!("{}: {}", call.at.as_millis(), call.about.join(" ")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn five_hundred_callers_make_two_calls_and_ten_that_leave_change_nothing() {
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
                    // Some of them before their batch is sent, some after.
                    let _ = timeout(millis(9 * (n as u64 / 50 + 1)), call).await;
                } else {
                    assert_eq!(call.await.unwrap().id, info.id);
                }
            }
        });
        let began = Instant::now();
        join_all(calls).await;
        assert!(cloud.oracle().calls_of(WireCall::Describe) <= 2);
        assert!(began.elapsed() <= millis(100));
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_share_calls_like_futures_of_one_task() {
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
    let answers = join_all(tasks).await;
    assert_eq!(
        answers.iter().filter(|a| matches!(a, Ok(true))).count(),
        498
    );
    assert!(cloud.oracle().calls_of(WireCall::Describe) <= 2);
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_does_not_wait() {
    let policy = CoalescePolicy::default().window(secs(3600));
    let coalesce = over(Script::new([]).taking(millis(5)), policy);
    let one = id("i-1");
    for _ in 0..3 {
        coalesce.describe_instance(&one).await.unwrap();
        coalesce.stop_instance(&one).await.unwrap();
        coalesce.start_instance(&one).await.unwrap();
        coalesce.terminate_instance(&one).await.unwrap();
    }
    assert_eq!(coalesce.inner().age(), millis(60));
    let calls = coalesce.inner().calls();
    // Each as the single call that it is.
    assert_eq!(calls[0].operation, Operation::DescribeInstance);
    assert!(calls.iter().all(|call| call.about == ["i-1"]));
    assert_eq!(calls.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_waits_for_the_first_or_for_the_window() {
    // The window of the first who waits ends before the call under way does.
    let policy = CoalescePolicy::default().window(millis(100));
    let coalesce = over(Script::new([]).taking(secs(1)), policy);
    let ids = numbered(6);
    let arrive = |n: usize, at: u64| {
        let (coalesce, id) = (&coalesce, &ids[n]);
        async move {
            sleep(millis(at)).await;
            coalesce.describe_instance(id).await.unwrap();
        }
    };
    tokio::join!(
        arrive(0, 0),
        arrive(1, 10),
        arrive(2, 90),
        arrive(3, 950),
        arrive(4, 990),
        arrive(5, 1005)
    );
    // The third batch leaves when the first call ends.
    assert_eq!(
        sent(&coalesce),
        ["0: i-0", "110: i-1 i-2", "1000: i-3 i-4", "1105: i-5"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_leaves_at_once() {
    for (most, takes) in [(3, 99), (99, 3)] {
        let policy = CoalescePolicy::default().at_most(size(most));
        let coalesce = over(Script::new([]).taking(secs(1)).batches_of(takes), policy);
        join_all(numbered(9).iter().map(|id| coalesce.terminate_instance(id))).await;
        let expected = ["0: i-0", "0: i-1 i-2 i-3", "0: i-4 i-5 i-6", "100: i-7 i-8"];
        assert_eq!(sent(&coalesce), expected);
    }
    let coalesce = over(
        Script::new([]).taking(secs(1)).batches_of(1),
        CoalescePolicy::default(),
    );
    join_all(numbered(3).iter().map(|id| coalesce.terminate_instance(id))).await;
    assert_eq!(sent(&coalesce), ["0: i-0", "0: i-1", "0: i-2"]);
}

#[tokio::test(start_paused = true)]
async fn callers_of_one_instance_share_its_answer() {
    let gone = call(Operation::DescribeInstance).not_found(&id("i-1"));
    let script = Script::new([Answer::Good, items([("i-1", gone)])]).taking(secs(1));
    let coalesce = over(script, CoalescePolicy::default().at_most(size(3)));
    let names = ["i-0", "i-1", "i-2", "i-1", "i-1", "i-2"].map(id);
    let answers = join_all(names.iter().map(|id| coalesce.describe_instance(id))).await;
    let good: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true, false, false, true]);
    assert_eq!(sent(&coalesce), ["0: i-0", "100: i-1 i-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_item_fails_its_callers_in_the_words_of_their_call() {
    let operations = [
        Operation::DescribeInstance,
        Operation::StopInstance,
        Operation::StartInstance,
        Operation::TerminateInstance,
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        let gone = call(operation)
            .not_found(&id("i-2"))
            .with_request_id("req-1");
        let script = Script::new([Answer::Good, items([("i-2", gone)])]).taking(secs(1));
        let coalesce = over(script, CoalescePolicy::default());
        let ask = |id| {
            let coalesce = &coalesce;
            async move {
                match number {
                    0 => coalesce.describe_instance(id).await.map(drop),
                    1 => coalesce.stop_instance(id).await,
                    2 => coalesce.start_instance(id).await.map(drop),
                    _ => coalesce.terminate_instance(id).await,
                }
            }
        };
        let answers = join_all(numbered(4).iter().map(ask)).await;
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_err(), n == 2, "{answer:?}");
        }
        let error = answers[2].as_ref().unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::NotFound, operation)
        );
        assert_eq!(error.request_id(), Some("req-1"));
        assert_eq!(coalesce.inner().calls().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_loses_count_fails_all_of_it() {
    let script = Script::new([Answer::Good, Answer::Short]).taking(millis(1));
    let coalesce = over(script, CoalescePolicy::default());
    let answers = join_all(numbered(4).iter().map(|id| coalesce.stop_instance(id))).await;
    assert!(answers[0].is_ok());
    for answer in &answers[1..] {
        let error = answer.as_ref().unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unexpected, Effect::Unknown)
        );
        assert_eq!(error.operation(), Operation::StopInstance);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_at_any_point_changes_nothing_for_the_others() {
    for leaver in 0..4 {
        for polls in 0..60 {
            let script = Script::new([]).taking(millis(20));
            let coalesce = over(script, CoalescePolicy::default().window(millis(10)));
            let calls = numbered(4).into_iter().enumerate().map(|(n, id)| {
                let coalesce = &coalesce;
                async move {
                    let call = coalesce.describe_instance(&id);
                    let polls = if n == leaver { polls } else { usize::MAX };
                    let answer = dropped_after(polls, call).await;
                    assert!(n == leaver || answer.unwrap().unwrap().id == id);
                }
            });
            // Each is woken on its own account only.
            let mut calls: FuturesUnordered<_> = calls.collect();
            let all = timeout(secs(9), async { while calls.next().await.is_some() {} });
            all.await
                .unwrap_or_else(|_| panic!("{leaver} after {polls}: somebody is lost"));
            // And nothing is under way: the next one does not wait.
            let began = coalesce.inner().age();
            coalesce.describe_instance(&id("i-9")).await.unwrap();
            assert_eq!(
                coalesce.inner().age() - began,
                millis(20),
                "{leaver} after {polls}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_given_up_before_it_was_sent_is_not_sent() {
    let coalesce = over(
        Script::new([]).taking(millis(50)),
        CoalescePolicy::default(),
    );
    let names = numbered(4);
    let terminate = |n: usize| coalesce.terminate_instance(&names[n]);
    let twice = async {
        // Of two callers of one instance, one stays.
        let _ = timeout(millis(20), terminate(3)).await;
    };
    let (first, given_up, _, stays, ()) = tokio::join!(
        terminate(0),
        timeout(millis(20), terminate(1)),
        timeout(millis(30), terminate(2)),
        terminate(3),
        twice
    );
    assert!(first.is_ok() && given_up.is_err() && stays.is_ok());
    assert_eq!(sent(&coalesce), ["0: i-0", "50: i-3"]);
    // Where all have left, nothing is sent at all, and the next one is alone again.
    let busy = terminate(0);
    let leave = async { timeout(millis(20), terminate(1)).await.unwrap_err() };
    let (_, _) = tokio::join!(busy, leave);
    sleep(secs(1)).await;
    let began = coalesce.inner().age();
    terminate(2).await.unwrap();
    assert_eq!(coalesce.inner().age() - began, millis(50));
    assert_eq!(sent(&coalesce)[2..], ["100: i-0", "1150: i-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_holds_later_callers_for_the_window_only() {
    let coalesce = over(Script::new([Answer::Hang]), CoalescePolicy::default());
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
    // Once its caller has left, the hung call is over.
    coalesce.describe_instance(&names[1]).await.unwrap();
    assert_eq!(coalesce.inner().age(), millis(201));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_batch_is_repeated_as_one_call() {
    let throttled = call(Operation::DescribeInstances).throttled(secs(5));
    let script = Script::new([Answer::Good, throttled.into()]).taking(millis(10));
    let retry = Layered::new(script, Retry::new(RetryPolicy::default()));
    let coalesce = Coalesce::new(retry, CoalescePolicy::default());
    let answers = join_all(
        numbered(500)
            .iter()
            .map(|id| coalesce.describe_instance(id)),
    )
    .await;
    assert!(answers.iter().all(Result::is_ok));
    let sizes: Vec<_> = coalesce
        .inner()
        .inner()
        .about()
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [1, 499, 499]);
}

#[tokio::test(start_paused = true)]
async fn no_window_is_too_long_or_too_short() {
    for (window, at) in [(Duration::MAX, 1000), (Duration::ZERO, 0)] {
        let policy = CoalescePolicy::default().window(window);
        let coalesce = over(Script::new([]).taking(secs(1)), policy);
        join_all(numbered(2).iter().map(|id| coalesce.stop_instance(id))).await;
        assert_eq!(sent(&coalesce), ["0: i-0".to_owned(), format!("{at}: i-1")]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_keeps_a_backend_alive_that_nobody_holds() {
    let script = Arc::new(Script::always(Answer::Hang));
    let policy = CoalescePolicy::default().window(secs(9));
    let coalesce = Coalesce::new(Arc::clone(&script), policy);
    let names = numbered(2);
    let all = join_all(names.iter().map(|id| coalesce.describe_instance(id)));
    assert!(timeout(secs(1), all).await.is_err());
    drop(coalesce);
    assert_eq!(Arc::strong_count(&script), 1);
}
