//! Which calls are retried, when, and with which final result.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceInfo, InstanceProvisioner as _,
    InvalidValue, ListItem, Operation, Problem, ProvisionError, RetryAdvice, Scope,
    layer::{Layered, Retry, RetryBudget, RetryPolicy},
};
use futures_util::StreamExt as _;

use super::{
    many, millis, numbered, plain,
    scripted::{Response, Scripted, info, items},
    send, token, with_token,
};
use crate::fake::{call, id, ids, secs};

/// Delays of one, two and four seconds, plus jitter.
fn policy() -> RetryPolicy {
    RetryPolicy::default()
        .delays(secs(1), secs(4))
        .jitter_seed(7)
}

fn wrap(backend: Scripted, policy: RetryPolicy) -> Layered<Scripted, Retry> {
    Layered::new(backend, Retry::new(policy))
}

/// Returns an error of this kind with its default advice, and the same with a retry delay.
fn of_kind(kind: ErrorKind, effect: Effect) -> [ProvisionError; 2] {
    let call = call(Operation::LaunchInstance);
    let error = match kind {
        ErrorKind::Invalid => call.invalid(InvalidValue::new("x", Problem::Empty)),
        ErrorKind::NotFound => call.not_found(&id("i-1")),
        ErrorKind::Conflict => call.conflict("busy", RetryAdvice::SameToken),
        ErrorKind::WrongState => {
            call.wrong_state(&id("i-1"), CloudInstanceState::Stopped, "running")
        }
        ErrorKind::TokenConflict => call.token_conflict(&token("t-1")),
        ErrorKind::TokenSpent => call.token_spent(&token("t-1")),
        ErrorKind::Capacity => call.capacity(Scope::Region, "none"),
        ErrorKind::Quota => call.quota(Scope::Account, "none"),
        ErrorKind::Throttled => call.throttled(secs(2)),
        ErrorKind::Unauthenticated => call.unauthenticated("expired"),
        ErrorKind::Forbidden => call.forbidden("no"),
        ErrorKind::Unsupported => call.unsupported(),
        ErrorKind::Incomplete => call.incomplete([Scope::Region]),
        ErrorKind::Timeout => call.timeout(effect),
        ErrorKind::Unavailable => call.unavailable(effect, "down"),
        ErrorKind::Unexpected => call.unexpected(effect, "what"),
        _ => panic!("{kind} is new"),
    };
    let error = error.with_effect(effect);
    [error.clone(), error.retry_after(secs(3))]
}

#[tokio::test(start_paused = true)]
async fn advice_and_effect_decide_and_nothing_else_does() {
    let effects = [Effect::None, Effect::Done, Effect::Unknown];
    for (kind, effect) in ErrorKind::ALL
        .into_iter()
        .flat_map(|k| effects.map(|e| (k, e)))
    {
        for error in of_kind(kind, effect) {
            for operation in Operation::ALL {
                for config in [plain(), with_token("t-1")] {
                    let launch = matches!(
                        operation,
                        Operation::LaunchInstance | Operation::LaunchInstances
                    );
                    let has_no_token = (launch && config.launch_token.is_none())
                        || operation == Operation::RebootInstance;
                    let once = has_no_token && effect != Effect::None;
                    let may = error.retry() != RetryAdvice::Never && !once;
                    let retry = wrap(Scripted::new([error.clone().into()]), policy());
                    let result = send(&retry, operation, &config).await;
                    let what = format!("{operation} with {:?}: {error}", config.launch_token);
                    assert_eq!(result.is_ok(), may, "{what}");
                    let calls = retry.inner().calls();
                    assert_eq!(calls.len(), 1 + usize::from(may), "{what}");
                    // The retry has the same token.
                    let all_equal = calls.iter().all(|c| c.operation == operation);
                    assert!(
                        all_equal && calls.iter().all(|c| c.targets == calls[0].targets),
                        "{what}"
                    );
                    if let (Err(result), false) = (&result, operation.is_read()) {
                        assert_eq!((result.kind(), result.effect()), (kind, effect), "{what}");
                        assert_eq!(result.operation(), operation, "{what}");
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delays_double_with_jitter_below_their_length() {
    let down = call(Operation::DescribeInstance).unavailable(Effect::None, "down");
    let policy = policy().max_attempts(many(6)).timeout(secs(900));
    let retry = wrap(Scripted::always(down), policy);
    let error = retry.describe_instance(&id("i-1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let times = retry.inner().times();
    assert_eq!(times.len(), 6);
    let waits: Vec<_> = times.windows(2).map(|two| two[1] - two[0]).collect();
    for (wait, least) in waits.iter().zip([1, 2, 4, 4, 4].map(secs)) {
        assert!(*wait >= least && *wait < 2 * least + millis(2), "{waits:?}");
    }
    assert!(
        waits.iter().any(|wait| wait.subsec_millis() != 0),
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn requested_delay_is_respected() {
    let wait = |seconds| {
        call(Operation::DescribeInstance)
            .throttled(secs(seconds))
            .into()
    };
    let retry = wrap(Scripted::new([wait(60), wait(7)]), policy());
    retry.describe_instance(&id("i-1")).await.unwrap();
    assert_eq!(retry.inner().times(), [0, 60, 67].map(secs));
}

#[tokio::test(start_paused = true)]
async fn requested_delay_beyond_the_deadline_fails_at_once() {
    for requested in [secs(31), Duration::MAX] {
        let throttled = call(Operation::StopInstance).throttled(requested);
        let retry = wrap(Scripted::always(throttled), policy().timeout(secs(30)));
        let error = retry.stop_instance(&id("i-1")).await.unwrap_err();
        assert_eq!(error.retry(), RetryAdvice::After(requested));
        assert_eq!(
            (retry.inner().times(), retry.inner().elapsed()),
            (vec![secs(0)], secs(0))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_starts_after_the_deadline() {
    let throttled = call(Operation::StopInstance).throttled(secs(10));
    for (deadline, sent) in [(0, 1), (9, 1), (10, 2), (39, 4), (40, 5)] {
        let policy = policy().max_attempts(many(99)).timeout(secs(deadline));
        let retry = wrap(Scripted::always(throttled.clone()), policy);
        retry.stop_instance(&id("i-1")).await.unwrap_err();
        assert_eq!(retry.inner().times().len(), sent, "within {deadline}");
    }
    // The duration of the attempt counts too.
    let slow = Scripted::always(throttled).with_latency(secs(10));
    let retry = wrap(slow, policy().max_attempts(many(99)).timeout(secs(40)));
    retry.stop_instance(&id("i-1")).await.unwrap_err();
    assert_eq!(retry.inner().times(), [0, 20, 40].map(secs));
}

#[tokio::test(start_paused = true)]
async fn error_has_effect_and_survivors_of_all_attempts() {
    let call = call(Operation::LaunchInstances);
    let part = |names: &[&str]| ids(names).iter().map(info).collect::<Vec<InstanceInfo>>();
    let first = call
        .throttled(secs(1))
        .with_survivors(part(&["i-1", "i-2"]));
    let second = call.timeout(Effect::Unknown);
    let mut changed = part(&["i-2", "i-3"]);
    changed[0].state = CloudInstanceState::Stopped;
    let third = call
        .quota(Scope::Account, "full")
        .with_survivors(changed.clone());
    let retry = wrap(
        Scripted::new([first.into(), second.into(), third.into()]),
        policy(),
    );
    let error = retry
        .launch_instances(&with_token("t-1"), many(3))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::Unknown)
    );
    let mut all = part(&["i-1"]);
    all.extend(changed);
    assert_eq!(error.survivors(), all);
}

#[tokio::test(start_paused = true)]
async fn only_failed_batch_items_are_retried_in_order() {
    let busy = || call(Operation::StopInstances).conflict("busy", RetryAdvice::After(secs(9)));
    let not_found = || call(Operation::StopInstances).not_found(&id("i-3"));
    let rounds = [
        items([("i-0", busy()), ("i-3", not_found()), ("i-4", busy())]),
        items([("i-4", busy())]),
    ];
    let retry = wrap(Scripted::new(rounds), policy());
    let results = retry.stop_instances(&numbered(5)).await;
    let failed: Vec<_> = results
        .iter()
        .map(|a| a.as_ref().err().map(|e| e.kind()))
        .collect();
    assert_eq!(failed, [None, None, None, Some(ErrorKind::NotFound), None]);
    let targets: Vec<_> = retry
        .inner()
        .targets()
        .iter()
        .map(|ids| ids.join(" "))
        .collect();
    assert_eq!(targets, ["i-0 i-1 i-2 i-3 i-4", "i-0 i-4", "i-4"]);
    assert_eq!(retry.inner().times(), [0, 9, 18].map(secs));
}

#[tokio::test(start_paused = true)]
async fn item_with_a_too_long_delay_fails_alone() {
    let busy = |wait| call(Operation::StopInstances).conflict("busy", RetryAdvice::After(wait));
    let first = items([("i-0", busy(secs(3600))), ("i-1", busy(secs(9)))]);
    let retry = wrap(Scripted::new([first]), policy());
    let results = retry.stop_instances(&numbered(3)).await;
    assert!(
        results[0].is_err() && results[1].is_ok() && results[2].is_ok(),
        "{results:?}"
    );
    assert_eq!(
        retry.inner().targets(),
        [vec!["i-0", "i-1", "i-2"], vec!["i-1"]]
    );
    assert_eq!(retry.inner().elapsed(), secs(9));
}

#[tokio::test(start_paused = true)]
async fn wrong_result_count_fails_every_item() {
    let retry = wrap(
        Scripted::always(Response::MissingItem),
        policy().max_attempts(many(2)),
    );
    let results = retry.stop_instances(&numbered(3)).await;
    assert_eq!(results.len(), 3);
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Unexpected, Effect::Unknown)
        );
    }
    assert_eq!(retry.inner().times().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stream_is_reopened_only_before_its_first_item() {
    let down = || call(Operation::StreamInstances).unavailable(Effect::None, "down");
    let seen = |name| Ok(ListItem::from(info(&id(name))));
    let broken = Response::Stream(vec![seen("i-1"), Err(down())]);
    let retry = wrap(
        Scripted::new([down().into(), down().into(), broken]),
        policy(),
    );
    let filter = InstanceFilter::new();
    let items: Vec<_> = retry.stream_instances(&filter).collect().await;
    assert!(
        items[0].is_ok() && items[1].is_err() && items.len() == 2,
        "{items:?}"
    );
    assert_eq!(retry.inner().times().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_for_a_policy() {
    let down = call(Operation::StopInstance).unavailable(Effect::None, "down");
    let longest = Duration::MAX;
    for policy in [
        RetryPolicy::default()
            .delays(longest, longest)
            .timeout(longest),
        RetryPolicy::default()
            .delays(millis(1), longest)
            .timeout(longest)
            .max_attempts(many(90)),
        RetryPolicy::default().delays(longest, Duration::ZERO),
        RetryPolicy::default().delays(Duration::ZERO, Duration::ZERO),
    ] {
        let policy = policy.budget(RetryBudget::new(u32::MAX, many(u32::MAX)));
        let retry = wrap(Scripted::always(down.clone()), policy);
        let one = id("i-1");
        let _ = tokio::time::timeout(secs(1 << 33), retry.stop_instance(&one)).await;
        assert!(!retry.inner().calls().is_empty());
    }
}
