//! The fields of the spans of calls, and the secrets that they must not contain.

use std::{sync::LazyLock, thread};

use fleetwright::{
    Effect, InstanceFilter, InstanceProvisioner as _, LaunchRecord, ListItem, Operation,
    RetryAdvice, UserData,
    layer::{
        Alternative, Coalesce, CoalescePolicy, Fallback, FallbackPolicy, Layered, Retry,
        RetryBudget, RetryPolicy, Trace,
    },
};
use futures_util::{StreamExt as _, future::join_all};
use tracing::{Dispatch, subscriber::NoSubscriber};

use super::{
    many, millis, numbered, plain,
    scripted::{Response, Scripted, info, items},
    send,
    spans::{CapturedSpan, Spans},
    token, with_token,
};
use crate::fake::{call, id, secs};

type Traced = Layered<Layered<Scripted, Retry>, Trace>;

fn wrap(backend: Scripted) -> Traced {
    let policy = RetryPolicy::default()
        .max_attempts(many(3))
        .delays(secs(1), secs(1));
    Layered::new(Layered::new(backend, Retry::new(policy)), Trace)
}

/// Two subscribers that stay registered. While there is just one, `tracing` asks the subscriber of the current
/// thread whether a span is of interest, and remembers the response for all threads. A test without a subscriber
/// could then switch off a span that another test is capturing.
static REGISTERED: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));

fn listen() -> (Spans, tracing::subscriber::DefaultGuard) {
    LazyLock::force(&REGISTERED);
    let spans = Spans::default();
    let guard = tracing::subscriber::set_default(spans.clone());
    (spans, guard)
}

/// Returns the only captured call.
fn only(spans: &Spans) -> CapturedSpan {
    let mut calls = spans.named("fleetwright.call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.remove(0)
}

#[test]
fn span_that_a_thread_without_a_subscriber_enters_first_is_captured() {
    let enter = || drop(tracing::info_span!("shared").entered());
    let (spans, _guard) = listen();
    thread::spawn(enter).join().unwrap();
    enter();
    assert_eq!(spans.named("shared").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_call_has_one_span() {
    for operation in Operation::ALL {
        let (spans, _guard) = listen();
        send(&wrap(Scripted::new([])), operation, &with_token("t-1"))
            .await
            .unwrap();
        let span = only(&spans);
        assert_eq!((span.target, span.level.as_str()), ("fleetwright", "INFO"));
        assert_eq!(span.field("provider"), Some("scripted"));
        assert_eq!(span.field("operation"), Some(operation.as_str()));
        assert_eq!(
            span.field("otel.name"),
            Some(&*format!("scripted {operation}"))
        );
        assert_eq!(span.field("otel.kind"), Some("client"));
        assert_eq!(span.field("otel.status_code"), Some("OK"), "{operation}");
        assert_eq!(span.field("attempt"), None);
        let batch = operation.as_str().ends_with("_instances");
        let about_none = matches!(
            operation,
            Operation::ListInstances
                | Operation::StreamInstances
                | Operation::AccountId
                | Operation::DeleteImage
        );
        let many = if batch && !about_none { "2" } else { "1" };
        assert_eq!(span.field("instances"), Some(many), "{operation}");
        let launch = matches!(
            operation,
            Operation::LaunchInstance | Operation::LaunchInstances
        );
        let tokened = launch || operation == Operation::FindLaunch;
        let targets = (!tokened && !about_none).then_some("i-1");
        assert_eq!(span.field("instance"), targets, "{operation}");
        assert_eq!(
            span.field("token_hash").map(str::len),
            tokened.then_some(16)
        );
        let attempts = spans.named("fleetwright.attempt");
        assert_eq!(attempts.len(), 1);
        assert_eq!(
            (attempts[0].level.as_str(), attempts[0].field("attempt")),
            ("DEBUG", Some("1"))
        );
        assert_eq!(
            spans.at(attempts[0].within.unwrap()).name,
            "fleetwright.call"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn failed_call_span_has_all_error_details() {
    let (spans, _guard) = listen();
    let down = call(Operation::StopInstance)
        .unavailable(Effect::Unknown, "internal error")
        .with_native_code("Oops")
        .with_request_id("req-17");
    wrap(Scripted::always(down))
        .stop_instance(&id("i-1"))
        .await
        .unwrap_err();
    let attempts = spans.named("fleetwright.attempt");
    for span in attempts.iter().chain([&only(&spans)]) {
        let captured = [
            "otel.status_code",
            "kind",
            "effect",
            "native_code",
            "request_id",
            "error",
        ];
        let captured: Vec<_> = captured
            .into_iter()
            .filter_map(|name| span.field(name))
            .collect();
        assert_eq!(
            captured,
            [
                "ERROR",
                "unavailable",
                "unknown",
                "Oops",
                "req-17",
                "internal error"
            ]
        );
    }
    assert_eq!(only(&spans).field("attempt"), Some("3"));
    let numbers: Vec<_> = attempts
        .iter()
        .filter_map(|span| span.field("attempt"))
        .collect();
    assert_eq!(numbers, ["1", "2", "3"]);
    // Each retry is an event with its reason and its delay.
    let events = spans.events();
    assert_eq!(events.len(), 2);
    assert!(
        events
            .iter()
            .all(|event| event.field("kind") == Some("unavailable"))
    );
    assert!(events[0].field("delay_ms").unwrap().parse::<u64>().unwrap() >= 1_000);
}

#[tokio::test(start_paused = true)]
async fn batch_span_has_the_failed_count_and_the_first_error() {
    let (spans, _guard) = listen();
    let first = call(Operation::StopInstances).not_found(&id("i-1"));
    let second = call(Operation::StopInstances).forbidden("no");
    let backend = Scripted::new([items([("i-1", first), ("i-2", second)])]);
    wrap(backend).stop_instances(&numbered(4)).await;
    let span = only(&spans);
    assert_eq!(
        (span.field("failed"), span.field("instances")),
        (Some("2"), Some("4"))
    );
    assert_eq!(
        (span.field("kind"), span.field("effect")),
        (Some("not found"), Some("none"))
    );
}

#[tokio::test(start_paused = true)]
async fn stream_span_is_recorded_at_its_end() {
    let down = call(Operation::StreamInstances).forbidden("no");
    let seen = || Ok(ListItem::from(info(&id("i-1"))));
    let filter = InstanceFilter::new();
    for (items, status) in [
        (vec![], "OK"),
        (vec![seen(), seen()], "OK"),
        (vec![seen(), Err(down)], "ERROR"),
    ] {
        let (spans, _guard) = listen();
        let traced = wrap(Scripted::new([Response::Stream(items)]));
        let mut read = traced.stream_instances(&filter);
        while read.next().await.is_some() {
            let captured = only(&spans).field("otel.status_code").map(str::to_owned);
            assert!(captured.is_none() || captured.as_deref() == Some("ERROR"));
        }
        assert_eq!(only(&spans).field("otel.status_code"), Some(status));
    }
    // A stream that is not read to its end has no status.
    let (spans, _guard) = listen();
    let traced = wrap(Scripted::new([Response::Stream(vec![seen(), seen()])]));
    assert!(traced.stream_instances(&filter).next().await.is_some());
    assert_eq!(only(&spans).field("otel.status_code"), None);
}

#[tokio::test(start_paused = true)]
async fn spans_contain_no_user_data_and_no_plain_token() {
    const SECRET: &str = "hunter2-token";
    let mut config = with_token(SECRET);
    config.user_data = Some(UserData::new("password=s3cret".as_bytes()).unwrap());
    let call = call(Operation::LaunchInstance);
    let errors = [
        call.token_conflict(&token(SECRET)),
        call.token_spent(&token(SECRET)),
        call.token_conflict(&token(SECRET).item(1)),
        call.unexpected(Effect::Unknown, &format!("client token {SECRET} is odd")),
        call.throttled(secs(1)),
    ];
    let mut hashes = Vec::new();
    for error in errors {
        let (spans, _guard) = listen();
        let policy = FallbackPolicy::new([Alternative::new("one")]);
        let budget = RetryBudget::new(1, many(9));
        let retry = Retry::new(RetryPolicy::default().budget(budget));
        let stack = Layered::new(
            Layered::new(Scripted::always(error), retry),
            Fallback::new(policy),
        );
        let traced = Layered::new(stack, Trace);
        for operation in [Operation::LaunchInstance, Operation::LaunchInstances] {
            send(&traced, operation, &config).await.unwrap_err();
        }
        let _ = traced.find_launch(&token(SECRET)).await;
        let text = spans.text();
        assert!(
            text.contains("fleetwright.call") && !text.contains(SECRET),
            "{text}"
        );
        assert!(!text.contains("s3cret") && !text.contains(token(SECRET).item(1).as_str()));
        let calls = spans.named("fleetwright.call");
        hashes.extend(
            calls
                .iter()
                .map(|span| span.field("token_hash").unwrap().to_owned()),
        );
        assert!(
            calls
                .iter()
                .all(|span| span.field("error").is_some_and(|text| !text.is_empty()))
        );
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "the digest does not depend on the process");
    let (spans, _guard) = listen();
    send(
        &wrap(Scripted::new([])),
        Operation::LaunchInstance,
        &with_token("another"),
    )
    .await
    .unwrap();
    assert_ne!(only(&spans).field("token_hash"), Some(&*hashes[0]));
}

#[tokio::test(start_paused = true)]
async fn look_up_has_its_own_span() {
    let (spans, _guard) = listen();
    let lost = call(Operation::LaunchInstance).timeout(Effect::Unknown);
    let down = call(Operation::FindLaunch).unavailable(Effect::None, "down");
    let mut created = info(&id("i-1"));
    created.tags = plain().tags;
    let backend = Scripted::new(vec![lost.into(); 3]).first([
        down.into(),
        Response::Found(LaunchRecord::Found(vec![created])),
    ]);
    wrap(backend)
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap();
    let span = only(&spans);
    assert_eq!(
        (span.field("attempt"), span.field("otel.status_code")),
        (Some("3"), Some("OK"))
    );
    let lookups = spans.named("fleetwright.settle_launch");
    assert_eq!(lookups.len(), 1);
    assert_eq!(lookups[0].field("operation"), Some("find_launch"));
    assert_eq!(lookups[0].field("attempt"), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn spans_of_the_caller_are_not_changed() {
    let (spans, _guard) = listen();
    let own = tracing::info_span!("mine", attempt = 77);
    let down = call(Operation::StopInstance).unavailable(Effect::None, "down");
    let retry = Layered::new(Scripted::new([down.into()]), Retry::default());
    let name = id("i-1");
    tracing::Instrument::instrument(retry.stop_instance(&name), own)
        .await
        .unwrap();
    assert_eq!(spans.named("mine")[0].field("attempt"), Some("77"));
}

#[tokio::test(start_paused = true)]
async fn callers_that_share_a_call_have_a_span_each_and_its_attempts_once() {
    let (spans, _guard) = listen();
    let backend = Scripted::new([]).with_latency(millis(10));
    let retry = Layered::new(backend, Retry::default());
    let traced = Layered::new(Coalesce::new(retry, CoalescePolicy::default()), Trace);
    join_all(numbered(9).iter().map(|id| traced.describe_instance(id))).await;
    assert_eq!(spans.named("fleetwright.call").len(), 9);
    let attempts = spans.named("fleetwright.attempt");
    let operations: Vec<_> = attempts
        .iter()
        .filter_map(|span| span.field("operation"))
        .collect();
    assert_eq!(operations, ["describe_instances"]);
    assert_eq!(attempts[0].field("instances"), Some("9"));
}

#[tokio::test(start_paused = true)]
async fn retry_of_one_item_is_traced_for_its_caller() {
    let (spans, _guard) = listen();
    let busy = call(Operation::StopInstances).conflict("busy", RetryAdvice::After(secs(1)));
    let backend = Scripted::new([items([("i-2", busy.clone())]), busy.into()]);
    let (gather, retry) = (CoalescePolicy::default(), RetryPolicy::default());
    let shared = Coalesce::with_retry(backend.with_latency(millis(10)), gather, retry);
    let traced = Layered::new(shared, Trace);
    join_all(numbered(4).iter().map(|id| traced.stop_instance(id))).await;
    for span in spans.named("fleetwright.call") {
        let (targets, attempt) = (span.field("instance"), span.field("attempt"));
        assert_eq!(attempt, (targets == Some("i-2")).then_some("3"));
        assert_eq!(span.field("otel.status_code"), Some("OK"));
    }
    let attempts = spans.named("fleetwright.attempt");
    let repeated = attempts
        .iter()
        .filter(|span| span.field("instance") == Some("i-2"));
    let numbers: Vec<_> = repeated.filter_map(|span| span.field("attempt")).collect();
    assert_eq!((attempts.len(), numbers), (3, vec!["2", "3"]));
}

#[tokio::test(start_paused = true)]
async fn single_caller_gets_the_attempts_of_a_single_call() {
    let (spans, _guard) = listen();
    let down = call(Operation::StopInstance).unavailable(Effect::None, "down");
    let (gather, retry) = (CoalescePolicy::default(), RetryPolicy::default());
    let shared = Coalesce::with_retry(Scripted::new([down.into()]), gather, retry);
    let name = id("i-1");
    Layered::new(shared, Trace)
        .stop_instance(&name)
        .await
        .unwrap();
    assert_eq!(only(&spans).field("attempt"), Some("2"));
    let attempts = spans.named("fleetwright.attempt");
    let numbers: Vec<_> = attempts
        .iter()
        .filter_map(|span| span.field("attempt"))
        .collect();
    assert_eq!(numbers, ["1", "2"]);
}
