//! What is counted and measured, under which names and labels.

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
    book::Book,
    make, many, millis, numbered, plain,
    script::{Answer, Script, info, items},
};
use crate::fake::{call, id, secs};

fn over(script: Script) -> Layered<Script, Metrics> {
    Layered::new(script, Metrics)
}

#[tokio::test(start_paused = true)]
async fn every_call_is_counted_by_its_outcome_and_measured() {
    for operation in Operation::ALL {
        let book = Book::default();
        let _guard = metrics::set_default_local_recorder(&book);
        let forbidden = call(operation).forbidden("no");
        let layer = over(Script::new([Answer::Good, forbidden.into()]).taking(secs(2)));
        for _ in 0..3 {
            let _ = make(&layer, operation, &plain()).await;
        }
        let line = |name: &str, outcome: &str| {
            book.of(&format!(
                "{name}{{operation={operation},{outcome}provider=script}}"
            ))
        };
        assert_eq!(
            line("fleetwright_calls_total", "outcome=ok,"),
            [2.0],
            "{operation}"
        );
        assert_eq!(line("fleetwright_calls_total", "outcome=forbidden,"), [1.0]);
        assert_eq!(line("fleetwright_call_duration_seconds", ""), [2.0; 3]);
        assert_eq!(line("fleetwright_calls_in_flight", ""), [0.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn batch_items_are_counted() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let gone = call(Operation::StopInstances).not_found(&id("i-1"));
    let layer = over(Script::new([items([("i-1", gone)])]));
    layer.stop_instances(&numbered(4)).await;
    let of = |name: &str, outcome: &str| {
        book.of(&format!(
            "{name}{{operation=stop_instances,outcome={outcome},provider=script}}"
        ))
    };
    assert_eq!(of("fleetwright_batch_items_total", "ok"), [3.0]);
    assert_eq!(of("fleetwright_batch_items_total", "not found"), [1.0]);
    assert_eq!(of("fleetwright_calls_total", "not found"), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_counted_and_not_in_flight() {
    for operation in Operation::ALL {
        let book = Book::default();
        let _guard = metrics::set_default_local_recorder(&book);
        let layer = over(Script::always(Answer::Hang));
        let under_way = || {
            book.of(&format!(
                "fleetwright_calls_in_flight{{operation={operation},provider=script}}"
            ))
        };
        let config = plain();
        let watched = async {
            sleep(secs(1)).await;
            assert_eq!(under_way(), [1.0]);
        };
        let _ = tokio::join!(timeout(secs(2), make(&layer, operation, &config)), watched);
        assert_eq!(under_way(), [0.0], "{operation}");
        let line = format!(
            "fleetwright_calls_total{{operation={operation},outcome=dropped,provider=script}}"
        );
        assert_eq!(book.of(&line), [1.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn finished_stream_is_not_in_flight() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let seen = || Ok(ListItem::from(info(&id("i-1"))));
    let forbidden = call(Operation::StreamInstances).forbidden("no");
    let script = [
        vec![seen(), seen()],
        vec![seen(), Err(forbidden)],
        vec![seen(), seen()],
    ];
    let layer = over(Script::new(script.map(Answer::ListItem)));
    let filter = InstanceFilter::new();
    let of = |outcome: &str| {
        book.of(&format!("fleetwright_calls_total{{operation=stream_instances,outcome={outcome},provider=script}}"))
    };
    let under_way =
        || book.of("fleetwright_calls_in_flight{operation=stream_instances,provider=script}");
    for outcome in ["ok", "forbidden"] {
        let mut read = layer.stream_instances(&filter);
        assert_eq!(under_way(), [1.0]);
        while read.next().await.is_some_and(|item| item.is_ok()) {}
        assert_eq!((under_way(), of(outcome)), (vec![0.0], vec![1.0]));
    }
    assert!(layer.stream_instances(&filter).next().await.is_some());
    assert_eq!((of("dropped"), under_way()), (vec![1.0], vec![0.0]));
}

#[tokio::test(start_paused = true)]
async fn retries_and_denied_retries_are_counted() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let busy = call(Operation::StopInstance).conflict("busy", RetryAdvice::After(secs(1)));
    let policy = RetryPolicy::default().budget(RetryBudget::new(2, many(1)));
    let retry = Layered::new(Script::always(busy), Retry::new(policy));
    retry.stop_instance(&id("i-1")).await.unwrap_err();
    let of = |name: &str, label: &str| {
        book.of(&format!(
            "{name}{{{label}operation=stop_instance,provider=script}}"
        ))
    };
    assert_eq!(of("fleetwright_attempts_total", ""), [3.0]);
    assert_eq!(of("fleetwright_retries_total", "kind=conflict,"), [2.0]);
    assert_eq!(of("fleetwright_retries_denied_total", ""), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn permit_wait_is_measured_and_rate_changes_are_shown() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let throttled = call(Operation::StopInstance).throttled(secs(1));
    let rate = Rate::every(millis(500));
    let policy = LimitPolicy::unlimited()
        .with(&[Operation::StopInstance], rate)
        .recovery_time(secs(10));
    let script = Script::new([Answer::Good, throttled.into()]);
    let limit = Layered::new(script, Limit::new(&policy));
    let of = |name: &str| {
        book.of(&format!(
            "{name}{{operation=stop_instance,provider=script}}"
        ))
    };
    let stop = async || drop(limit.stop_instance(&id("i-1")).await);
    stop().await;
    assert!(of("fleetwright_limit_calls_per_second").is_empty());
    stop().await;
    assert_eq!(of("fleetwright_limit_calls_per_second"), [1.0]);
    stop().await;
    // A second that was asked for, and one in which the slower rate earns a call.
    assert_eq!(of("fleetwright_limit_wait_seconds"), [0.0, 0.5, 2.0]);
    sleep(secs(10)).await;
    stop().await;
    assert_eq!(of("fleetwright_limit_calls_per_second"), [1.25]);
    sleep(secs(999)).await;
    stop().await;
    assert_eq!(of("fleetwright_limit_calls_per_second"), [2.0]);
}

#[tokio::test(start_paused = true)]
async fn batch_sizes_are_measured_and_fallbacks_counted_by_reason() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let coalesce = Coalesce::new(Script::new([]).taking(secs(1)), CoalescePolicy::default());
    join_all(numbered(5).iter().map(|id| coalesce.describe_instance(id))).await;
    let sizes =
        book.of("fleetwright_coalesced_batch_size{operation=describe_instance,provider=script}");
    assert_eq!(sizes, [1.0, 4.0]);
    let lacks = call(Operation::LaunchInstance).capacity(Scope::Region, "none");
    let policy = FallbackPolicy::new([
        Alternative::new("one"),
        Alternative::new("two").zone("b").unwrap(),
    ]);
    let fallback = Layered::new(Script::always(lacks), Fallback::new(policy));
    fallback.launch_instance(&plain()).await.unwrap_err();
    let of = |reason: &str| {
        book.of(&format!(
            "fleetwright_fallbacks_total{{operation=launch_instance,provider=script,reason={reason}}}"
        ))
    };
    assert_eq!(
        (of("no_capacity"), of("no_capacity_recently")),
        (vec![1.0], vec![1.0])
    );
}
