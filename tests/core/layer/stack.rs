//! The blessed order, by what would be different in another one.

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
    live, make, many, millis, numbered, plain,
    script::{Answer, Script},
    with_token,
};
use crate::fake::{call, id, secs};

/// Puts something over a script.
type Over = fn(Arc<Script>) -> Arc<dyn InstanceProvisioner>;

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
        |script| {
            Arc::new(Layered::new(
                script,
                Timeout::new(TimeoutPolicy::new(secs(1))),
            ))
        },
        |script| Arc::new(Layered::new(script, Fallback::new(FallbackPolicy::new([])))),
        |script| Arc::new(Layered::new(script, Retry::default())),
        |script| Arc::new(Layered::new(script, Limit::new(&LimitPolicy::default()))),
        |script| Arc::new(Layered::new(script, Trace)),
        |script| Arc::new(Layered::new(script, Metrics)),
        |script| Arc::new(Coalesce::new(script, CoalescePolicy::default())),
        |script| {
            Stack::default()
                .fallback(FallbackPolicy::new([]))
                .wrap(script)
        },
        |script| {
            let mut stack = Stack::default();
            (stack.total_timeout, stack.coalesce, stack.retry) = (None, None, None);
            (stack.limit, stack.attempt_timeout) = (None, None);
            stack.wrap(script)
        },
    ];
    for over in pass {
        let script = Arc::new(Script::new([]).taking(millis(1)));
        let layered = over(Arc::clone(&script));
        assert_eq!(layered.capabilities(), script.capabilities());
        for operation in Operation::ALL {
            make(&*layered, operation, &with_token("t-1"))
                .await
                .unwrap();
        }
        let called: Vec<_> = script.calls().iter().map(|call| call.operation).collect();
        assert_eq!(called, Operation::ALL, "{layered:?}");
        // And what fails is told in the name of what was asked.
        for operation in Operation::ALL {
            let script = Arc::new(Script::always(call(operation).forbidden("no")));
            let error = make(&*over(script), operation, &plain()).await.unwrap_err();
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
    let script = Arc::new(Script::new([Answer::Good, Answer::Hang]).taking(secs(9)));
    let stack = Stack::default()
        .limit(policy)
        .retry(retry().max_attempts(many(1)))
        .attempt_timeout(TimeoutPolicy::new(secs(10)))
        .wrap(Arc::clone(&script));
    let config = plain();
    let (first, second) = tokio::join!(
        stack.launch_instance(&config),
        stack.launch_instance(&config)
    );
    first.unwrap();
    // What has waited was sent all the same, and only then cut off.
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(script.times(), [0, 50].map(secs));
    assert_eq!(script.age(), secs(60));
}

#[tokio::test(start_paused = true)]
async fn retry_waits_for_a_permit() {
    let policy = LimitPolicy::unlimited().with(&[Operation::StopInstance], Rate::every(secs(50)));
    let script = Arc::new(Script::new([down(Operation::StopInstance).into()]));
    let stack = Stack::default()
        .limit(policy)
        .retry(retry())
        .wrap(Arc::clone(&script));
    stack.stop_instance(&id("i-1")).await.unwrap();
    assert_eq!(script.times(), [0, 50].map(secs));
}

#[tokio::test(start_paused = true)]
async fn total_timeout_bounds_everything_below() {
    let started = Instant::now();
    let stack = |answer: Answer| {
        let policy =
            LimitPolicy::unlimited().with(&[Operation::StopInstance], Rate::every(secs(999)));
        Stack::default()
            .limit(policy)
            .retry(retry().max_attempts(many(999)))
            .attempt_timeout(TimeoutPolicy::new(secs(10)))
            .total_timeout(TimeoutPolicy::new(secs(45)))
            .wrap(Script::always(answer))
    };
    // Attempts that hang, waiting between attempts, waiting for a turn.
    let hangs = stack(Answer::Hang);
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
        let error = make(&**stack, operation, &config).await.unwrap_err();
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
    let script = Arc::new(Script::new([Answer::Good, throttled.into()]).taking(millis(10)));
    let stack = Stack::default()
        .retry(retry().budget(budget.clone()))
        .wrap(Arc::clone(&script));
    let answers = join_all(numbered(500).iter().map(|id| stack.describe_instance(id))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!((script.calls().len(), budget.remaining()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn timed_out_caller_does_not_end_the_shared_call() {
    let total = TimeoutPolicy::new(secs(10));
    let stack = Stack::default()
        .total_timeout(total)
        .wrap(Script::new([]).taking(secs(9)));
    let names = numbered(3);
    let late = async {
        tokio::time::sleep(secs(8)).await;
        stack.describe_instance(&names[2]).await
    };
    let (first, second, late) = tokio::join!(
        stack.describe_instance(&names[0]),
        // It gathers for the window, and would be answered at nine and a bit.
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
    // Throttled and refused in one zone, lost and repeated in the other.
    assert_eq!(
        (cloud.oracle().call_count(WireCall::Launch), live(&cloud)),
        (4, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn five_hundred_describes_through_the_whole_stack_are_two_calls() {
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
    assert_eq!(cloud.oracle().call_count(WireCall::Describe), 2);
}

#[tokio::test(start_paused = true)]
async fn default_stack_is_bounded_in_time() {
    for operation in Operation::ALL {
        let script = Arc::new(Script::always(Answer::Hang));
        let stack = Stack::default().wrap(Arc::clone(&script));
        let error = make(&*stack, operation, &with_token("t-1"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            script.age() <= secs(600),
            "{operation} after {:?}",
            script.age()
        );
        let first_two = script.times();
        let long =
            operation.as_str().ends_with("_instances") || operation == Operation::SnapshotImage;
        if let [first, second, ..] = first_two[..] {
            let attempt = if long { 180 } else { 60 };
            assert!(
                (secs(attempt)..secs(attempt + 1)).contains(&(second - first)),
                "{operation}"
            );
        }
    }
}
