//! Waits that end without reaching their goal.

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Terminating},
    Effect, InstanceStatus, Operation, ProvisionError,
    wait::{self, WaitError, WaitPolicy},
};

use super::{cause, every_second, wait_for};
use crate::fake::{Fake, Observation, id, ids, poll, secs};

/// Returns the error of a wait for `i-1` to run.
async fn failed(fake: &Fake, policy: &WaitPolicy) -> WaitError {
    let waited = wait::for_state(fake, &ids(&["i-1"]), Running, policy).await;
    waited.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_its_deadline() {
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into())]);
    let error = failed(&fake, &every_second(Duration::from_millis(3500))).await;
    assert_eq!((cause(&error), error.polls), ("deadline", 4));
    assert_eq!(fake.elapsed(), Duration::from_millis(3500));
    assert_eq!(
        fake.polls(),
        [0, 1, 2, 3].map(secs),
        "one poll per interval"
    );
}

#[tokio::test(start_paused = true)]
async fn goal_reached_at_the_deadline_counts() {
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (3, Running.into())]);
    let policy = every_second(secs(3));
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    assert_eq!(waited.unwrap()[0].state, Running);
    let policy = WaitPolicy::within(secs(3)).delays(secs(40), secs(40));
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (3, Running.into())]);
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    assert_eq!(
        waited.unwrap()[0].state,
        Running,
        "there is a last poll at the deadline"
    );
}

#[tokio::test(start_paused = true)]
async fn zero_timeout_makes_one_poll() {
    for (shown, reached) in [(Running, true), (Pending, false)] {
        let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, shown.into())]);
        let policy = every_second(secs(0));
        let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
        assert_eq!(waited.is_ok(), reached);
        assert_eq!((fake.polls().len(), fake.elapsed()), (1, secs(0)));
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_poll_ends_at_the_deadline() {
    let fake =
        Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (2, Observation::Hang)]);
    let error = failed(&fake, &every_second(secs(30))).await;
    assert_eq!((cause(&error), error.polls), ("deadline", 3));
    assert_eq!(fake.elapsed(), secs(30));
    assert_eq!(error.not_reached[0].last.as_ref().unwrap().state, Pending);
}

#[tokio::test(start_paused = true)]
async fn wait_without_timeout_continues() {
    let fake =
        Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (5000, Running.into())]);
    let policy = WaitPolicy::within(Duration::MAX);
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    assert_eq!(waited.unwrap()[0].state, Running);
}

#[tokio::test(start_paused = true)]
async fn requested_delay_beyond_the_deadline_ends_the_wait() {
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, poll().throttled(secs(40)).into())]);
    let error = failed(&fake, &every_second(secs(30))).await;
    assert_eq!((cause(&error), error.polls), ("deadline", 1));
    assert_eq!(fake.polls(), [secs(0)]);
    assert_eq!(fake.elapsed(), secs(30));
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_the_poll_limit() {
    for limit in [1, 3] {
        let fake =
            Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (3, Running.into())]);
        let policy = every_second(secs(60)).max_polls(NonZeroU32::new(limit).unwrap());
        let error = failed(&fake, &policy).await;
        assert_eq!((cause(&error), error.polls), ("poll limit", limit));
        let last = u64::from(limit) - 1;
        assert_eq!(fake.elapsed(), secs(last), "no delay after the last poll");
    }
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Pending.into()), (3, Running.into())]);
    let policy = every_second(secs(60)).max_polls(NonZeroU32::new(4).unwrap());
    let waited = wait::for_state(&fake, &ids(&["i-1"]), Running, &policy).await;
    assert_eq!(waited.unwrap()[0].state, Running, "the last poll counts");
}

#[tokio::test(start_paused = true)]
async fn errors_that_may_be_retried_do_not_end_a_wait() {
    let errors: [ProvisionError; 4] = [
        poll().timeout(Effect::None),
        poll().unavailable(Effect::None, "down"),
        poll().throttled(secs(1)),
        poll().forbidden("not yet").retry_after(secs(1)),
    ];
    for error in errors {
        let fake = Fake::new(secs(0)).with_timeline(
            "i-1",
            [(0, Pending.into()), (1, error.into()), (4, Running.into())],
        );
        wait_for(&fake, &["i-1"], Running).await.unwrap();
        assert_eq!(fake.polls(), [0, 1, 2, 3, 4].map(secs));
    }
}

#[tokio::test(start_paused = true)]
async fn error_without_retry_ends_the_wait_at_once() {
    let fake = Fake::new(secs(9))
        .with_timeline(
            "i-1",
            [(0, Pending.into()), (2, poll().forbidden("no").into())],
        )
        .with_timeline("i-2", [(0, Pending.into())])
        .with_timeline("i-3", [(0, Pending.into()), (2, Running.into())])
        .with_timeline("i-4", [(2, poll().unauthenticated("late").into())]);
    let error = wait_for(&fake, &["i-3", "i-2", "i-1"], Running).await;
    let error = error.unwrap_err();
    assert_eq!(
        (cause(&error), error.polls, fake.elapsed()),
        ("failed", 3, secs(2))
    );
    assert_eq!(error.reached[0].id, id("i-3"), "reached in the same poll");
    let not_reached: Vec<_> = error
        .not_reached
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!(not_reached, ["i-2", "i-1"], "in request order");
    assert_eq!(error.not_reached[1].last.as_ref().unwrap().state, Pending);
    let own = error.not_reached[1].error.as_ref().unwrap();
    assert_eq!(own.message(), "no");
    assert!(error.not_reached[0].error.is_none());
}

#[tokio::test(start_paused = true)]
async fn first_failure_is_returned() {
    let fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, poll().forbidden("first").into())])
        .with_timeline("i-2", [(0, poll().forbidden("second").into())]);
    let error = wait_for(&fake, &["i-1", "i-2"], Running).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("first"), "{source}");
}

#[tokio::test(start_paused = true)]
async fn unreachable_goal_ends_the_wait_at_once() {
    for goal in CloudInstanceState::ALL {
        for shown in CloudInstanceState::ALL {
            let fake = Fake::new(secs(9)).with_timeline("i-1", [(0, shown.into())]);
            let error = wait_for(&fake, &["i-1"], goal).await.err();
            let expected = if shown == goal {
                None
            } else if goal.can_be_observed_after(shown) {
                Some("deadline")
            } else {
                Some("unreachable")
            };
            assert_eq!(error.as_ref().map(cause), expected, "{shown} to {goal}");
            let at_once = expected != Some("deadline");
            assert_eq!(fake.polls().len() == 1, at_once, "{shown} to {goal}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_unreachable_instance_ends_the_wait_for_all() {
    let fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, Stopped.into())])
        .with_timeline("i-2", [(0, Pending.into()), (1, Terminating.into())]);
    let error = wait_for(&fake, &["i-1", "i-2"], Running).await.unwrap_err();
    assert_eq!((cause(&error), fake.elapsed()), ("unreachable", secs(1)));
    assert!(error.to_string().contains("instance i-2 is terminating"));
}

#[tokio::test(start_paused = true)]
async fn results_in_another_order_fail_the_wait() {
    let other = InstanceStatus::new(id("i-2"), Running);
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, other.into())]);
    let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
    assert_eq!((cause(&error), error.polls), ("failed", 1));
    assert!(error.reached.is_empty(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn missing_results_fail_the_wait() {
    let mut fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, Running.into())])
        .with_timeline("i-2", [(0, Running.into())]);
    fake.lost = 1;
    let error = wait_for(&fake, &["i-1", "i-2"], Running).await.unwrap_err();
    assert_eq!((cause(&error), error.polls), ("failed", 1));
    assert!(
        error.reached.is_empty(),
        "the results cannot be assigned to ids"
    );
    let wait::WaitCause::Failed(failed) = &error.cause else {
        panic!("{error:?}");
    };
    assert_eq!(failed.operation(), Operation::DescribeInstances);
    assert_eq!(failed.effect(), Effect::None);
    assert_eq!(
        failed.to_string(),
        "fake describe_instances: unexpected: the backend returned 1 results for 2 instances \
         [no effect, retry with the same token]"
    );
}
