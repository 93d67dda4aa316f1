//! The names, labels and values of the metrics.

use fleetwright::{
    InstanceFilter, InstanceProvisioner as _, ListItem, Operation, RetryAdvice, Scope,
    layer::{
        Alternative, Coalesce, CoalescePolicy, Fallback, FallbackPolicy, Layered, Limit,
        LimitPolicy, Metrics, Rate, Retry, RetryBudget, RetryPolicy,
    },
};
use futures_util::{StreamExt as _, future::join_all};
use tokio::time::{sleep, timeout};

use super::{
    many, millis, numbered, plain,
    recorder::TestRecorder,
    scripted::{Response, Scripted, info, items},
    send,
};
use crate::fake::{call, id, secs};

fn wrap(backend: Scripted) -> Layered<Scripted, Metrics> {
    Layered::new(backend, Metrics)
}

#[tokio::test(start_paused = true)]
async fn every_call_is_counted_by_its_outcome_and_measured() {
    for operation in Operation::ALL {
        let recorder = TestRecorder::default();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let forbidden = call(operation).forbidden("no");
        let layer =
            wrap(Scripted::new([Response::Success, forbidden.into()]).with_latency(secs(2)));
        for _ in 0..3 {
            let _ = send(&layer, operation, &plain()).await;
        }
        let values = |name: &str, outcome: &str| {
            recorder.values(&format!(
                "{name}{{operation={operation},{outcome}provider=scripted}}"
            ))
        };
        assert_eq!(
            values("fleetwright_calls_total", "outcome=ok,"),
            [2.0],
            "{operation}"
        );
        assert_eq!(
            values("fleetwright_calls_total", "outcome=forbidden,"),
            [1.0]
        );
        assert_eq!(values("fleetwright_call_duration_seconds", ""), [2.0; 3]);
        assert_eq!(values("fleetwright_calls_in_flight", ""), [0.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn batch_items_are_counted() {
    let recorder = TestRecorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let not_found = call(Operation::StopInstances).not_found(&id("i-1"));
    let layer = wrap(Scripted::new([items([("i-1", not_found)])]));
    layer.stop_instances(&numbered(4)).await;
    let value = |name: &str, outcome: &str| {
        recorder.values(&format!(
            "{name}{{operation=stop_instances,outcome={outcome},provider=scripted}}"
        ))
    };
    assert_eq!(value("fleetwright_batch_items_total", "ok"), [3.0]);
    assert_eq!(value("fleetwright_batch_items_total", "not found"), [1.0]);
    assert_eq!(value("fleetwright_calls_total", "not found"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_counted_and_not_in_flight() {
    for operation in Operation::ALL {
        let recorder = TestRecorder::default();
        let _guard = metrics::set_default_local_recorder(&recorder);
        let layer = wrap(Scripted::always(Response::Hang));
        let in_flight = || {
            recorder.values(&format!(
                "fleetwright_calls_in_flight{{operation={operation},provider=scripted}}"
            ))
        };
        let config = plain();
        let watched = async {
            sleep(secs(1)).await;
            assert_eq!(in_flight(), [1.0]);
        };
        let _ = tokio::join!(timeout(secs(2), send(&layer, operation, &config)), watched);
        assert_eq!(in_flight(), [0.0], "{operation}");
        let line = format!(
            "fleetwright_calls_total{{operation={operation},outcome=dropped,provider=scripted}}"
        );
        assert_eq!(recorder.values(&line), [1.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn finished_stream_is_not_in_flight() {
    let recorder = TestRecorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let seen = || Ok(ListItem::from(info(&id("i-1"))));
    let forbidden = call(Operation::StreamInstances).forbidden("no");
    let backend = [
        vec![seen(), seen()],
        vec![seen(), Err(forbidden)],
        vec![seen(), seen()],
    ];
    let layer = wrap(Scripted::new(backend.map(Response::Stream)));
    let filter = InstanceFilter::new();
    let count = |outcome: &str| {
        recorder.values(&format!("fleetwright_calls_total{{operation=stream_instances,outcome={outcome},provider=scripted}}"))
    };
    let in_flight = || {
        recorder.values("fleetwright_calls_in_flight{operation=stream_instances,provider=scripted}")
    };
    for outcome in ["ok", "forbidden"] {
        let mut read = layer.stream_instances(&filter);
        assert_eq!(in_flight(), [1.0]);
        while read.next().await.is_some_and(|item| item.is_ok()) {}
        assert_eq!((in_flight(), count(outcome)), (vec![0.0], vec![1.0]));
    }
    assert!(layer.stream_instances(&filter).next().await.is_some());
    assert_eq!((count("dropped"), in_flight()), (vec![1.0], vec![0.0]));
}

#[tokio::test(start_paused = true)]
async fn retries_and_denied_retries_are_counted() {
    let recorder = TestRecorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let busy = call(Operation::StopInstance).conflict("busy", RetryAdvice::After(secs(1)));
    let policy = RetryPolicy::default().budget(RetryBudget::new(2, many(1)));
    let retry = Layered::new(Scripted::always(busy), Retry::new(policy));
    retry.stop_instance(&id("i-1")).await.unwrap_err();
    let value = |name: &str, label: &str| {
        recorder.values(&format!(
            "{name}{{{label}operation=stop_instance,provider=scripted}}"
        ))
    };
    assert_eq!(value("fleetwright_attempts_total", ""), [3.0]);
    assert_eq!(value("fleetwright_retries_total", "kind=conflict,"), [2.0]);
    assert_eq!(value("fleetwright_retries_denied_total", ""), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn permit_wait_is_measured_and_rate_changes_are_shown() {
    let recorder = TestRecorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let throttled = call(Operation::StopInstance).throttled(secs(1));
    let rate = Rate::every(millis(500));
    let policy = LimitPolicy::unlimited()
        .with(&[Operation::StopInstance], rate)
        .recovery_time(secs(10));
    let backend = Scripted::new([Response::Success, throttled.into()]);
    let limit = Layered::new(backend, Limit::new(&policy));
    let value = |name: &str| {
        recorder.values(&format!(
            "{name}{{operation=stop_instance,provider=scripted}}"
        ))
    };
    let stop = async || drop(limit.stop_instance(&id("i-1")).await);
    stop().await;
    assert!(value("fleetwright_limit_calls_per_second").is_empty());
    stop().await;
    assert_eq!(value("fleetwright_limit_calls_per_second"), [1.0]);
    stop().await;
    // One second as requested, and one in which the lower rate earns a token.
    assert_eq!(value("fleetwright_limit_wait_seconds"), [0.0, 0.5, 2.0]);
    sleep(secs(10)).await;
    stop().await;
    assert_eq!(value("fleetwright_limit_calls_per_second"), [1.25]);
    sleep(secs(999)).await;
    stop().await;
    assert_eq!(value("fleetwright_limit_calls_per_second"), [2.0]);
}

#[tokio::test(start_paused = true)]
async fn batch_sizes_are_measured_and_fallbacks_counted_by_reason() {
    let recorder = TestRecorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let coalesce = Coalesce::new(
        Scripted::new([]).with_latency(secs(1)),
        CoalescePolicy::default(),
    );
    join_all(numbered(5).iter().map(|id| coalesce.describe_instance(id))).await;
    let sizes = recorder
        .values("fleetwright_coalesced_batch_size{operation=describe_instance,provider=scripted}");
    assert_eq!(sizes, [5.0]);
    let no_capacity = call(Operation::LaunchInstance).capacity(Scope::Region, "none");
    let policy = FallbackPolicy::new([
        Alternative::new("one"),
        Alternative::new("two").zone("b").unwrap(),
    ]);
    let fallback = Layered::new(Scripted::always(no_capacity), Fallback::new(policy));
    fallback.launch_instance(&plain()).await.unwrap_err();
    let count = |reason: &str| {
        recorder.values(&format!(
            "fleetwright_fallbacks_total{{operation=launch_instance,provider=scripted,reason={reason}}}"
        ))
    };
    assert_eq!(
        (count("no_capacity"), count("no_capacity_recently")),
        (vec![1.0], vec![1.0])
    );
}
