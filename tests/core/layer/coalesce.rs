//! Which calls are combined, and when the batch is sent.

use std::time::Duration;

use fleetwright::{
    Effect, ErrorKind, InstanceProvisioner, Operation,
    layer::{Coalesce, CoalescePolicy, Layered, Retry, RetryPolicy},
};
use futures_util::future::join_all;
use tokio::time::sleep;

use super::{
    millis, numbered,
    scripted::{Response, Scripted, items},
    size,
};
use crate::fake::{call, id, secs};

pub(crate) fn wrap(backend: Scripted, policy: CoalescePolicy) -> Coalesce<Scripted> {
    Coalesce::new(backend, policy)
}

/// Returns the sent calls, each as `time: ids`.
pub(crate) fn sent(coalesce: &Coalesce<Scripted>) -> Vec<String> {
    let calls = coalesce.inner().calls().into_iter();
    calls
        .map(|call| format!("{}: {}", call.at.as_millis(), call.targets.join(" ")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn single_caller_does_not_wait() {
    let policy = CoalescePolicy::default().window(secs(3600));
    let coalesce = wrap(Scripted::new([]).with_latency(millis(5)), policy);
    let one = id("i-1");
    for _ in 0..3 {
        coalesce.describe_instance(&one).await.unwrap();
        coalesce.stop_instance(&one).await.unwrap();
        coalesce.start_instance(&one).await.unwrap();
        coalesce.terminate_instance(&one).await.unwrap();
    }
    assert_eq!(coalesce.inner().elapsed(), millis(60));
    let calls = coalesce.inner().calls();
    // Each is sent as a single call.
    assert_eq!(calls[0].operation, Operation::DescribeInstance);
    assert!(calls.iter().all(|call| call.targets == ["i-1"]));
    assert_eq!(calls.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn later_callers_wait_for_the_first_call_or_the_window() {
    // The window of the first waiter ends before the running call does.
    let policy = CoalescePolicy::default().window(millis(100));
    let coalesce = wrap(Scripted::new([]).with_latency(secs(1)), policy);
    let ids = numbered(7);
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
        arrive(5, 1005),
        // One call is still running when the second batch has returned.
        arrive(6, 1060)
    );
    // With two running calls it waits twice as long, until the first of them returns.
    assert_eq!(
        sent(&coalesce),
        ["0: i-0", "110: i-1 i-2", "1050: i-3 i-4 i-5", "1160: i-6"]
    );
}

#[tokio::test(start_paused = true)]
async fn full_batch_is_sent_at_once() {
    for (most, takes) in [(3, 99), (99, 3)] {
        let policy = CoalescePolicy::default().max_size(size(most));
        let coalesce = wrap(
            Scripted::new([])
                .with_latency(secs(1))
                .with_batch_size(takes),
            policy,
        );
        join_all(numbered(8).iter().map(|id| coalesce.terminate_instance(id))).await;
        let expected = ["0: i-0 i-1 i-2", "0: i-3 i-4 i-5", "200: i-6 i-7"];
        assert_eq!(sent(&coalesce), expected);
    }
    let coalesce = wrap(
        Scripted::new([]).with_latency(secs(1)).with_batch_size(1),
        CoalescePolicy::default(),
    );
    join_all(numbered(3).iter().map(|id| coalesce.terminate_instance(id))).await;
    assert_eq!(sent(&coalesce), ["0: i-0", "0: i-1", "0: i-2"]);
}

#[tokio::test(start_paused = true)]
async fn callers_of_one_instance_share_its_result() {
    let not_found = call(Operation::DescribeInstance).not_found(&id("i-1"));
    let backend = Scripted::new([items([("i-1", not_found)])]).with_latency(secs(1));
    let coalesce = wrap(backend, CoalescePolicy::default());
    let names = ["i-0", "i-1", "i-2", "i-1", "i-1", "i-2"].map(id);
    let results = join_all(names.iter().map(|id| coalesce.describe_instance(id))).await;
    let good: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true, false, false, true]);
    assert_eq!(sent(&coalesce), ["1: i-0 i-1 i-2"]);
}

#[tokio::test(start_paused = true)]
async fn failed_item_error_names_the_single_call() {
    let operations = [
        Operation::DescribeInstance,
        Operation::StopInstance,
        Operation::StartInstance,
        Operation::TerminateInstance,
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        let not_found = call(operation)
            .not_found(&id("i-2"))
            .with_request_id("req-1");
        let backend = Scripted::new([items([("i-2", not_found)])]).with_latency(secs(1));
        let coalesce = wrap(backend, CoalescePolicy::default());
        let send = |id| {
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
        let results = join_all(numbered(4).iter().map(send)).await;
        for (n, result) in results.iter().enumerate() {
            assert_eq!(result.is_err(), n == 2, "{result:?}");
        }
        let error = results[2].as_ref().unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::NotFound, operation)
        );
        assert_eq!(error.request_id(), Some("req-1"));
        assert_eq!(coalesce.inner().calls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_result_count_fails_the_whole_batch() {
    let backend = Scripted::new([Response::MissingItem]).with_latency(millis(1));
    let coalesce = wrap(backend, CoalescePolicy::default());
    let results = join_all(numbered(4).iter().map(|id| coalesce.stop_instance(id))).await;
    for result in &results {
        let error = result.as_ref().unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unexpected, Effect::Unknown)
        );
        assert_eq!(error.operation(), Operation::StopInstance);
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_batch_is_retried_as_one_call() {
    let throttled = call(Operation::DescribeInstances).throttled(secs(5));
    let backend = Scripted::new([throttled.into()]).with_latency(millis(10));
    let retry = Layered::new(backend, Retry::new(RetryPolicy::default()));
    let coalesce = Coalesce::new(retry, CoalescePolicy::default());
    let results = join_all(
        numbered(500)
            .iter()
            .map(|id| coalesce.describe_instance(id)),
    )
    .await;
    assert!(results.iter().all(Result::is_ok));
    let sizes: Vec<_> = coalesce
        .inner()
        .inner()
        .targets()
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [500, 500]);
}

#[tokio::test(start_paused = true)]
async fn no_window_is_too_long_or_too_short() {
    for (window, at) in [(Duration::MAX, 1000), (Duration::ZERO, 10)] {
        let policy = CoalescePolicy::default().window(window);
        let coalesce = wrap(Scripted::new([]).with_latency(secs(1)), policy);
        let ids = numbered(2);
        let later = async {
            sleep(millis(10)).await;
            coalesce.stop_instance(&ids[1]).await
        };
        let (first, second) = tokio::join!(coalesce.stop_instance(&ids[0]), later);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(sent(&coalesce), ["0: i-0".to_owned(), format!("{at}: i-1")]);
    }
    // Without a window, calls that are made at the same time are sent on their own, too.
    let policy = CoalescePolicy::default().window(Duration::ZERO);
    let coalesce = wrap(Scripted::new([]).with_latency(secs(1)), policy);
    join_all(numbered(2).iter().map(|id| coalesce.stop_instance(id))).await;
    assert_eq!(sent(&coalesce), ["0: i-0", "0: i-1"]);
}
