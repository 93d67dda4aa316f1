//! A failed item of a combined call fails only its caller, and is retried alone.

use std::time::Duration;

use fleetwright::{
    Effect, ErrorKind, InstanceId, InstanceProvisioner, Operation, ProvisionError, Result,
    RetryAdvice,
    layer::{Coalesce, CoalescePolicy, RetryBudget, RetryPolicy, Stack},
};
use fleetwright_memory::{MemoryCloud, WireCall};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::{
    many, millis, numbered, plain,
    scripted::{Response, Scripted, items},
};
use crate::fake::{call, id, secs};

fn retry() -> RetryPolicy {
    RetryPolicy::default()
        .delays(millis(1), millis(1))
        .jitter_seed(1)
}

fn wrap(results: impl IntoIterator<Item = Response>, retry: RetryPolicy) -> Coalesce<Scripted> {
    let backend = Scripted::new(results).with_latency(millis(10));
    Coalesce::with_retry(backend, CoalescePolicy::default(), retry)
}

fn busy(seconds: u64) -> ProvisionError {
    call(Operation::StopInstances).conflict("busy", RetryAdvice::After(secs(seconds)))
}

/// Sends several stops at once. Returns the result and the time of each.
async fn stop(coalesce: &Coalesce<Scripted>, count: usize) -> Vec<(Result<()>, Duration)> {
    let began = Instant::now();
    let one = async |id: InstanceId| {
        let result = coalesce.stop_instance(&id).await;
        (result, began.elapsed())
    };
    join_all(numbered(count).into_iter().map(one)).await
}

fn sent(coalesce: &Coalesce<Scripted>) -> Vec<String> {
    coalesce
        .inner()
        .targets()
        .iter()
        .map(|ids| ids.join(" "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn missing_instance_does_not_delay_other_callers() {
    let cloud = MemoryCloud::builder()
        .latency(millis(50))
        .read_lag(secs(10))
        .build();
    let launched = cloud
        .provisioner()
        .launch_instances(&plain(), many(3))
        .await
        .unwrap();
    sleep(secs(60)).await;
    let stack = Stack::default().wrap(cloud.provisioner());
    let began = Instant::now();
    let describe = async |id: InstanceId| (stack.describe_instance(&id).await, began.elapsed());
    let ids = launched
        .iter()
        .map(|info| info.id.clone())
        .chain([id("i-none")]);
    let results = join_all(ids.map(describe)).await;
    for (result, waited) in &results[..3] {
        assert!(
            result.is_ok() && *waited <= millis(100),
            "{result:?} after {waited:?}"
        );
    }
    // No retry finds it, so its caller waits no longer than the others.
    let (result, waited) = &results[3];
    let error = result.as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::NotFound, Operation::DescribeInstance)
    );
    assert!(*waited <= millis(100), "{waited:?}");
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_instance_does_not_delay_other_callers() {
    let cloud = MemoryCloud::builder().latency(millis(50)).build();
    let handle = cloud.provisioner();
    let launched = handle.launch_instances(&plain(), many(3)).await.unwrap();
    sleep(secs(60)).await;
    for (info, then) in launched.iter().zip([60, 60, 0]) {
        handle.stop_instance(&info.id).await.unwrap();
        sleep(secs(then)).await;
    }
    let stack = Stack::default().wrap(cloud.provisioner());
    let began = Instant::now();
    let start = async |id: &InstanceId| (stack.start_instance(id).await, began.elapsed());
    let results = join_all(launched.iter().map(|info| start(&info.id))).await;
    assert!(
        results.iter().all(|(result, _)| result.is_ok()),
        "{results:?}"
    );
    assert!(
        results[..2]
            .iter()
            .all(|(_, waited)| *waited <= millis(100)),
        "{results:?}"
    );
    assert!(results[2].1 >= secs(2), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_item_is_retried_alone_within_its_attempts() {
    let budget = RetryBudget::new(10, many(99));
    let failing = || items([("i-2", busy(5))]);
    let results = [failing(), busy(5).into(), busy(5).into(), busy(5).into()];
    let coalesce = wrap(
        results,
        retry().max_attempts(many(4)).budget(budget.clone()),
    );
    let results = stop(&coalesce, 4).await;
    for (n, (result, waited)) in results.iter().enumerate() {
        assert_eq!(result.is_ok(), n != 2);
        assert!((n == 2) == (*waited > millis(20)), "{n} after {waited:?}");
    }
    assert_eq!(sent(&coalesce), ["i-0 i-1 i-2 i-3", "i-2", "i-2", "i-2"]);
    assert_eq!(budget.remaining(), 7);
    let error = results[2].0.as_ref().unwrap_err();
    assert_eq!(error.operation(), Operation::StopInstance);
    // The next call succeeds.
    assert!(coalesce.stop_instance(&id("i-2")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn requested_delay_deadline_and_effect_are_respected() {
    let lost = call(Operation::StopInstances)
        .timeout(Effect::Unknown)
        .retry_after(secs(7));
    let first = || items([("i-1", lost.clone())]);
    let coalesce = wrap([first(), busy(9).into()], retry().timeout(secs(20)));
    let results = stop(&coalesce, 3).await;
    assert!(results[1].0.is_ok());
    assert_eq!(coalesce.inner().times(), [1, 7_011, 16_021].map(millis));
    // Past the deadline it fails at once, with the combined effect of both attempts.
    let coalesce = wrap([first(), busy(9).into()], retry().timeout(secs(10)));
    let results = stop(&coalesce, 3).await;
    let error = results[1].0.as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Conflict, Effect::Unknown)
    );
    assert_eq!(results[1].1, millis(7_021));
    let coalesce = wrap([items([("i-1", busy(21))])], retry().timeout(secs(20)));
    assert_eq!(stop(&coalesce, 3).await[1].1, millis(11));
}

#[tokio::test(start_paused = true)]
async fn callers_that_failed_together_share_the_next_batch() {
    let all = (10..60).map(|n| (format!("i-{n}"), busy(5)));
    let coalesce = wrap([Response::ItemFailures(all.collect())], retry());
    let results = stop(&coalesce, 100).await;
    assert!(results.iter().all(|(result, _)| result.is_ok()));
    let sizes: Vec<_> = coalesce.inner().targets().iter().map(Vec::len).collect();
    assert_eq!(sizes, [100, 50]);
}

#[tokio::test(start_paused = true)]
async fn batch_without_success_is_retried_as_one_call() {
    let not_found = || call(Operation::StopInstances).not_found(&id("i-3"));
    let mut all: std::collections::BTreeMap<_, _> =
        (0..500).map(|n| (format!("i-{n}"), busy(5))).collect();
    all.insert("i-3".to_owned(), not_found());
    let budget = RetryBudget::new(10, many(99));
    let results = [
        Response::ItemFailures(all.clone()),
        Response::ItemFailures(all),
    ];
    let coalesce = wrap(results, retry().budget(budget.clone()));
    let results = stop(&coalesce, 500).await;
    assert_eq!(
        results.iter().filter(|(result, _)| result.is_err()).count(),
        1
    );
    let sizes: Vec<_> = coalesce.inner().targets().iter().map(Vec::len).collect();
    assert_eq!((sizes, budget.remaining()), (vec![500, 499, 499], 8));
    // If it fails, it fails for all of them.
    let down = call(Operation::StopInstances).unavailable(Effect::None, "down");
    let coalesce = wrap(vec![down.into(); 9], retry());
    let results = stop(&coalesce, 500).await;
    assert_eq!(
        results.iter().filter(|(result, _)| result.is_err()).count(),
        500
    );
    assert_eq!(coalesce.inner().calls().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn other_calls_are_retried_without_batching() {
    let down = || Response::from(call(Operation::LaunchInstance).unavailable(Effect::None, "down"));
    for operation in Operation::ALL {
        let coalesce = wrap([down(), down()], retry());
        super::send(&coalesce, operation, &plain()).await.unwrap();
        let calls = coalesce.inner().calls();
        assert_eq!(calls.len(), 3, "{operation}");
        assert!(calls.iter().all(|call| call.operation == operation));
    }
    let part = items([("i-1", busy(5))]);
    let coalesce = wrap([part, busy(5).into()], retry());
    let results = coalesce.stop_instances(&numbered(3)).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(sent(&coalesce), ["i-0 i-1 i-2", "i-1", "i-1"]);
}
