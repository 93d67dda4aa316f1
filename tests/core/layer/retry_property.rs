//! Property tests of retries: in every outage, the number of attempts is bounded.

use std::{sync::atomic::Ordering, time::Duration};

use fleetwright::{
    Effect, InstanceFilter, InstanceProvisioner as _, Operation, ProvisionError, RetryAdvice,
    layer::{Layered, Retry, RetryBudget, RetryPolicy},
};
use futures_util::{StreamExt as _, future::join_all};
use proptest::{collection::vec, prelude::*, sample::select};
use tokio::time::timeout;

use super::{
    block_on_paused, many, millis, numbered,
    scripted::{Response, Scripted, items},
    send, with_token,
};
use crate::fake::{call, id, secs};

/// An arbitrary response, successful or not.
fn result() -> impl Strategy<Value = Response> {
    let call = call(Operation::StopInstances);
    let down = call.unavailable(Effect::Unknown, "down");
    let busy = call.conflict("busy", RetryAdvice::After(secs(2)));
    select(vec![
        Response::Success,
        down.clone().into(),
        call.throttled(secs(1)).into(),
        call.forbidden("no").into(),
        items([("i-1", busy), ("i-2", down)]),
        Response::MissingItem,
    ])
}

fn outage() -> ProvisionError {
    call(Operation::StopInstance).unavailable(Effect::None, "down")
}

proptest! {
    #[test]
    fn attempts_never_exceed_the_maximum(
        results in vec(result(), 0..30), attempts in 1_u32..6, calls in vec(select(&Operation::ALL[..]), 1..6),
    ) {
        block_on_paused(async {
            let policy = RetryPolicy::default().max_attempts(many(attempts)).delays(millis(1), secs(1));
            let retry = Layered::new(Scripted::new(results), Retry::new(policy));
            let config = with_token("t-1");
            for operation in &calls {
                let _ = send(&retry, *operation, &config).await;
            }
            let sent = |operation| {
                retry.inner().calls().iter().filter(|one| one.operation == operation).count()
            };
            for operation in Operation::ALL {
                let requested = calls.iter().filter(|one| **one == operation);
                // A failed launch is looked up, by its token and by those of its items.
                let looked_up = |operation: &Operation| {
                    usize::from(*operation == Operation::LaunchInstance)
                        + 3 * usize::from(*operation == Operation::LaunchInstances)
                };
                let is_look_up = usize::from(operation == Operation::FindLaunch);
                let look_ups = is_look_up * calls.iter().map(looked_up).sum::<usize>();
                let limit = (requested.count() + look_ups) * attempts as usize;
                prop_assert!(sent(operation) <= limit, "{operation}: {} of {limit}", sent(operation));
            }
            Ok(())
        })?;
    }

    #[test]
    fn outage_uses_at_most_the_retry_reserve(
        reserve in 0_u32..20, price in 1_u32..5, calls in 1_usize..40, before in 0_u32..40,
    ) {
        block_on_paused(async {
            let budget = RetryBudget::new(reserve, many(price));
            let policy = RetryPolicy::default().budget(budget.clone()).timeout(Duration::MAX);
            let good = vec![Response::Success; before as usize];
            let backend = Scripted::always(outage()).with_latency(millis(10)).first(good);
            let retry = Layered::new(backend, Retry::new(policy));
            for _ in 0..before {
                retry.stop_instance(&id("i-1")).await.unwrap();
            }
            let ids = numbered(calls);
            let results = join_all(ids.iter().map(|id| retry.stop_instance(id))).await;
            prop_assert!(results.iter().all(Result::is_err));
            let sent = retry.inner().calls().len() - before as usize;
            let limit = (calls + reserve as usize).min(5 * calls);
            prop_assert_eq!(sent, limit);
            prop_assert_eq!(budget.remaining() as usize, (reserve as usize).saturating_sub(4 * calls));
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn success_earns_retries_and_final_failure_does_not() {
    let budget = RetryBudget::new(5, many(1));
    let policy = RetryPolicy::default().budget(budget.clone());
    let forbidden = || call(Operation::StopInstances).forbidden("no");
    let backend = Scripted::new([
        outage().into(),
        forbidden().into(),
        forbidden().into(),
        forbidden().into(),
        items([("i-0", forbidden())]),
        Response::Success,
    ]);
    let retry = Layered::new(backend, Retry::new(policy));
    retry.stop_instance(&id("i-1")).await.unwrap_err();
    assert_eq!(budget.remaining(), 4);
    // A batch whose items all fail does not count as a success, nor does a failed stream.
    retry.stop_instances(&numbered(2)).await;
    let filter = InstanceFilter::new();
    let streamed: Vec<_> = retry.stream_instances(&filter).collect().await;
    assert_eq!((streamed.len(), budget.remaining()), (1, 4));
    // A batch with some successful items does.
    retry.stop_instances(&numbered(2)).await;
    assert_eq!(budget.remaining(), 5);
    retry.stop_instance(&id("i-1")).await.unwrap();
    assert_eq!(budget.remaining(), 5);
    assert_eq!(retry.inner().max_in_flight.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn opened_stream_earns_and_failed_stream_costs_budget() {
    let budget = RetryBudget::new(2, many(1));
    let policy = RetryPolicy::default()
        .budget(budget.clone())
        .max_attempts(many(2));
    let backend = Scripted::new([outage().into(), outage().into(), Response::Success]);
    let retry = Layered::new(backend, Retry::new(policy));
    let filter = InstanceFilter::new();
    for left in [1, 2] {
        let _: Vec<_> = retry.stream_instances(&filter).collect().await;
        assert_eq!(budget.remaining(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn caller_dropped_before_a_retry_returns_it_to_the_budget() {
    let budget = RetryBudget::new(3, many(7));
    let policy = RetryPolicy::default().budget(budget.clone());
    let retry = Layered::new(
        Scripted::always(outage().retry_after(secs(30))),
        Retry::new(policy),
    );
    let filter = InstanceFilter::new();
    for (limit, left) in [(5, 3), (45, 2)] {
        let name = id("i-1");
        let one = timeout(secs(limit), retry.stop_instance(&name));
        assert!(one.await.is_err());
        assert_eq!(budget.remaining(), left);
    }
    let ids = numbered(2);
    assert!(timeout(secs(5), retry.stop_instances(&ids)).await.is_err());
    assert!(
        timeout(secs(5), retry.stream_instances(&filter).next())
            .await
            .is_err()
    );
    assert_eq!(budget.remaining(), 2);
}
