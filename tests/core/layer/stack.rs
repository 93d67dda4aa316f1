//! The order of the layers in the stack: each test fails with another order.

use std::{num::NonZeroU32, sync::Arc};

use fleetwright::{
    Effect, ErrorKind, InstanceProvisioner, Operation, ProvisionError, Zone,
    layer::{
        Alternative, Coalesce, CoalescePolicy, Fallback, FallbackPolicy, Layered, Limit,
        LimitPolicy, Metrics, Rate, Retry, RetryBudget, RetryPolicy, Stack, Timeout, TimeoutPolicy,
        Trace,
    },
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, Phase, RefusalReason, Rule, WireCall};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::{
    live, many, millis, numbered, plain,
    scripted::{Response, Scripted},
    send, with_token,
};
use crate::fake::{call, id, secs};

/// Wraps a scripted backend.
type Over = fn(Arc<Scripted>) -> Arc<dyn InstanceProvisioner>;

fn retry() -> RetryPolicy {
    RetryPolicy::default()
        .delays(secs(1), secs(1))
        .jitter_seed(1)
}

fn down(operation: Operation) -> ProvisionError {
    call(operation).unavailable(Effect::None, "down")
}

#[tokio::test(start_paused = true)]
async fn every_layer_passes_every_call_through_once() {
    let pass: [Over; 9] = [
        |backend| {
            Arc::new(Layered::new(
                backend,
                Timeout::new(TimeoutPolicy::new(secs(1))),
            ))
        },
        |backend| {
            Arc::new(Layered::new(
                backend,
                Fallback::new(FallbackPolicy::new([])),
            ))
        },
        |backend| Arc::new(Layered::new(backend, Retry::default())),
        |backend| Arc::new(Layered::new(backend, Limit::new(&LimitPolicy::default()))),
        |backend| Arc::new(Layered::new(backend, Trace)),
        |backend| Arc::new(Layered::new(backend, Metrics)),
        |backend| Arc::new(Coalesce::new(backend, CoalescePolicy::default())),
        |backend| {
            Stack::default()
                .fallback(FallbackPolicy::new([]))
                .wrap(backend)
        },
        |backend| {
            let mut stack = Stack::default();
            (stack.total_timeout, stack.coalesce, stack.retry) = (None, None, None);
            (stack.limit, stack.attempt_timeout) = (None, None);
            stack.wrap(backend)
        },
    ];
    for wrap in pass {
        let backend = Arc::new(Scripted::new([]).with_latency(millis(1)));
        let layered = wrap(Arc::clone(&backend));
        assert_eq!(layered.capabilities(), backend.capabilities());
        for operation in Operation::ALL {
            send(&*layered, operation, &with_token("t-1"))
                .await
                .unwrap();
        }
        let called: Vec<_> = backend.calls().iter().map(|call| call.operation).collect();
        assert_eq!(called, Operation::ALL, "{layered:?}");
        // And an error names the operation that was called.
        for operation in Operation::ALL {
            let backend = Arc::new(Scripted::always(call(operation).forbidden("no")));
            let error = send(&*wrap(backend), operation, &plain())
                .await
                .unwrap_err();
            assert_eq!(
                (error.kind(), error.operation()),
                (ErrorKind::Forbidden, operation)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_permit_does_not_count_for_the_attempt_timeout() {
    let policy = LimitPolicy::unlimited().with(&[Operation::LaunchInstance], Rate::every(secs(50)));
    let backend =
        Arc::new(Scripted::new([Response::Success, Response::Hang]).with_latency(secs(9)));
    let stack = Stack::default()
        .limit(policy)
        .retry(retry().max_attempts(many(1)))
        .attempt_timeout(TimeoutPolicy::new(secs(10)))
        .wrap(Arc::clone(&backend));
    let config = plain();
    let (first, second) = tokio::join!(
        stack.launch_instance(&config),
        stack.launch_instance(&config)
    );
    first.unwrap();
    // The delayed call was still sent, and only then timed out.
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(backend.times(), [0, 50].map(secs));
    assert_eq!(backend.elapsed(), secs(60));
}

#[tokio::test(start_paused = true)]
async fn retry_waits_for_a_permit() {
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], Rate::every(secs(50)));
    let backend = Arc::new(Scripted::new([down(Operation::StopInstance).into()]));
    let stack = Stack::default()
        .limit(policy)
        .retry(retry())
        .wrap(Arc::clone(&backend));
    stack.stop_instance(&id("i-1")).await.unwrap();
    assert_eq!(backend.times(), [0, 50].map(secs));
}

#[tokio::test(start_paused = true)]
async fn total_timeout_bounds_everything_below() {
    let started = Instant::now();
    let stack = |result: Response| {
        let policy =
            LimitPolicy::unlimited().with(&[Operation::StopInstance], Rate::every(secs(999)));
        Stack::default()
            .limit(policy)
            .retry(retry().max_attempts(many(999)))
            .attempt_timeout(TimeoutPolicy::new(secs(10)))
            .total_timeout(TimeoutPolicy::new(secs(45)))
            .wrap(Scripted::always(result))
    };
    // Hanging attempts, delays between attempts, and waits for the rate limit.
    let hangs = stack(Response::Hang);
    let refuses = stack(call(Operation::StopInstance).throttled(secs(40)).into());
    let config = plain();
    for (stack, operation) in [
        (&hangs, Operation::LaunchInstance),
        (&hangs, Operation::TerminateInstances),
        (&hangs, Operation::ListInstances),
        (&refuses, Operation::StartInstance),
        (&refuses, Operation::StopInstance),
    ] {
        let began = Instant::now();
        let error = send(&**stack, operation, &config).await.unwrap_err();
        assert!(
            began.elapsed() <= secs(45),
            "{operation}: {:?}",
            began.elapsed()
        );
        let effect = if operation.is_read() {
            Effect::None
        } else {
            Effect::Unknown
        };
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, effect),
            "{operation}"
        );
    }
    assert!(started.elapsed() <= secs(5 * 45));
}

#[tokio::test(start_paused = true)]
async fn throttled_batch_of_five_hundred_is_one_retry() {
    let budget = RetryBudget::new(3, NonZeroU32::MAX);
    let throttled = call(Operation::DescribeInstances).throttled(secs(2));
    let backend = Arc::new(Scripted::new([throttled.into()]).with_latency(millis(10)));
    let stack = Stack::default()
        .retry(retry().budget(budget.clone()))
        .wrap(Arc::clone(&backend));
    let results = join_all(numbered(500).iter().map(|id| stack.describe_instance(id))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((backend.calls().len(), budget.remaining()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn timed_out_caller_does_not_end_the_shared_call() {
    let total = TimeoutPolicy::new(secs(10));
    let stack = Stack::default()
        .total_timeout(total)
        .wrap(Scripted::new([]).with_latency(secs(9)));
    let names = numbered(3);
    let late = async {
        tokio::time::sleep(secs(8)).await;
        stack.describe_instance(&names[2]).await
    };
    let (first, second, late) = tokio::join!(
        stack.describe_instance(&names[0]),
        // It waits for the window, and would return shortly after nine seconds.
        timeout(secs(5), stack.describe_instance(&names[1])),
        late
    );
    assert!(first.is_ok() && second.is_err() && late.is_ok());
}

#[tokio::test(start_paused = true)]
async fn offering_is_given_up_only_after_retries() {
    let zone = |name: &str| Zone::new(name).unwrap();
    let cloud = MemoryCloud::builder()
        .capacity(Capacity::of(0).in_zone(zone("mem-a")))
        .build();
    let refused = Fault::Refused(RefusalReason::Throttled(secs(1)));
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, refused));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 3, Fault::Lost(Phase::After)));
    let alternatives = ["mem-a", "mem-b"].map(|name| Alternative::new(name).zone(name).unwrap());
    let stack = Stack::default()
        .retry(retry())
        .fallback(FallbackPolicy::new(alternatives))
        .wrap(cloud.provisioner());
    let info = stack.launch_instance(&with_token("t-1")).await.unwrap();
    assert_eq!(info.placement.zone, Some(zone("mem-b")));
    // Throttled and refused in one zone, lost and retried in the other.
    assert_eq!(
        (cloud.oracle().call_count(WireCall::Launch), live(&cloud)),
        (4, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn five_hundred_describes_through_the_whole_stack_are_one_call() {
    let cloud = MemoryCloud::builder().latency(millis(50)).build();
    let launched = cloud
        .provisioner()
        .launch_instances(&plain(), many(500))
        .await
        .unwrap();
    let stack = Stack::default().wrap(cloud.provisioner());
    let calls = launched.iter().enumerate().map(|(n, info)| {
        let stack = &stack;
        async move {
            let call = stack.describe_instance(&info.id);
            match n % 50 {
                7 => drop(timeout(millis(9 * (n as u64 / 50 + 1)), call).await),
                _ => assert_eq!(call.await.unwrap().id, info.id),
            }
        }
    });
    join_all(calls).await;
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 1);
}

#[tokio::test(start_paused = true)]
async fn default_stack_is_bounded_in_time() {
    for operation in Operation::ALL {
        let backend = Arc::new(Scripted::always(Response::Hang));
        let stack = Stack::default().wrap(Arc::clone(&backend));
        let error = send(&*stack, operation, &with_token("t-1"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            backend.elapsed() <= secs(600),
            "{operation} after {:?}",
            backend.elapsed()
        );
        let first_two = backend.times();
        let name = operation.as_str();
        let long = name.ends_with("_instances") || name.ends_with("_image");
        if let [first, second, ..] = first_two[..] {
            let attempt = if long { 180 } else { 60 };
            assert!(
                (secs(attempt)..secs(attempt + 1)).contains(&(second - first)),
                "{operation}"
            );
        }
    }
}
