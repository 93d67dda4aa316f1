//! When a call times out, and the effect that the error reports.

use std::time::Duration;

use fleetwright::{
    Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, LaunchRecord, ListItem, Operation,
    RetryAdvice,
    layer::{Layered, Retry, RetryPolicy, Timeout, TimeoutPolicy},
};
use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, WireCall};
use futures_util::{StreamExt as _, stream};

use super::{
    live, many, millis, numbered, plain,
    scripted::{Response, Scripted, info},
    send, token, with_token,
};
use crate::{
    fake::{id, secs},
    layer::stream_only::StreamOnly,
};

fn wrap(backend: Scripted, policy: TimeoutPolicy) -> Layered<Scripted, Timeout> {
    Layered::new(backend, Timeout::new(policy))
}

#[tokio::test(start_paused = true)]
async fn timed_out_change_has_unknown_effect_and_read_has_none() {
    for operation in Operation::ALL {
        let timeout = wrap(
            Scripted::always(Response::Hang),
            TimeoutPolicy::new(secs(7)),
        );
        let error = send(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::Timeout, operation)
        );
        let effect = if operation.is_read() {
            Effect::None
        } else {
            Effect::Unknown
        };
        assert_eq!(
            (error.effect(), error.retry()),
            (effect, RetryAdvice::SameToken)
        );
        assert_eq!(error.provider(), "scripted");
        assert_eq!(timeout.inner().elapsed(), secs(7), "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn results_in_time_are_unchanged() {
    for operation in Operation::ALL {
        let backend = Scripted::new([]).with_latency(secs(7) - millis(1));
        let timeout = wrap(backend, TimeoutPolicy::new(secs(7)));
        send(&timeout, operation, &plain()).await.unwrap();
        let refused = crate::fake::call(operation).forbidden("no");
        let timeout = wrap(Scripted::always(refused), TimeoutPolicy::new(secs(7)));
        let error = send(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
    }
}

#[tokio::test(start_paused = true)]
async fn operations_can_have_their_own_timeout() {
    let policy = TimeoutPolicy::new(secs(7))
        .with(Operation::LaunchInstances, secs(30))
        .with(Operation::ListInstances, Duration::MAX);
    assert_eq!(policy.timeout(Operation::LaunchInstance), secs(7));
    for (operation, limit) in [
        (Operation::LaunchInstances, secs(30)),
        (Operation::LaunchInstance, secs(7)),
        (Operation::StreamInstances, secs(7)),
    ] {
        let timeout = wrap(Scripted::always(Response::Hang), policy.clone());
        send(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(timeout.inner().elapsed(), limit);
    }
    let timeout = wrap(Scripted::new([]).with_latency(secs(9_999)), policy);
    send(&timeout, Operation::ListInstances, &plain())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_batch_item_can_lower_the_rate() {
    let timeout = wrap(
        Scripted::always(Response::Hang),
        TimeoutPolicy::new(secs(7)),
    );
    let results = timeout.stop_instances(&numbered(3)).await;
    assert_eq!(results.len(), 3);
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, Effect::Unknown)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_applies_to_each_stream_item() {
    let seen = |n: usize| Ok(ListItem::from(info(&id(&format!("i-{n}")))));
    let items = stream::iter(0..).then(move |n: usize| async move {
        // The fourth item never arrives.
        tokio::time::sleep(secs(if n == 3 { 9_999 } else { 6 })).await;
        seen(n)
    });
    let timeout = Layered::new(
        StreamOnly::new(items),
        Timeout::new(TimeoutPolicy::new(secs(7))),
    );
    let filter = InstanceFilter::new();
    let read: Vec<_> = timeout.stream_instances(&filter).collect().await;
    assert_eq!(read.len(), 4);
    assert!(read[..3].iter().all(Result::is_ok));
    let error = read[3].as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Timeout, Effect::None)
    );
}

#[tokio::test(start_paused = true)]
async fn timed_out_launch_is_found_by_its_token() {
    for (phase, created) in [(Phase::Before, 0), (Phase::After, 1)] {
        let cloud = MemoryCloud::new();
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, 1, Fault::Hang(phase)));
        let policy = TimeoutPolicy::new(secs(7));
        let timeout = Layered::new(cloud.provisioner(), Timeout::new(policy));
        let error = timeout
            .launch_instance(&with_token("t-1"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, Effect::Unknown)
        );
        assert_eq!(live(&cloud), created);
        let found = timeout.find_launch(&token("t-1")).await.unwrap();
        assert_eq!(found != LaunchRecord::NotFound, created == 1);
        // The replay returns the same launch.
        timeout
            .launch_instances(&with_token("t-1"), many(1))
            .await
            .unwrap();
        assert_eq!(live(&cloud), 1);
    }
}

#[tokio::test]
async fn retried_stream_without_items_ends() {
    let inner = Layered::new(
        StreamOnly::new(stream::empty()),
        Timeout::new(TimeoutPolicy::new(secs(1))),
    );
    let retried = Layered::new(inner, Retry::new(RetryPolicy::default()));
    let filter = InstanceFilter::new();
    assert_eq!(retried.stream_instances(&filter).count().await, 0);
}
