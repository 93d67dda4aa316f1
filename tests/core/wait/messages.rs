//! The message, the source and the contents of a wait error.

use std::error::Error as _;

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Terminated},
    Effect, InstanceStatus,
    wait::{self, WaitError, WaitPolicy},
};

use super::{every_second, wait_for};
use crate::fake::{Fake, Observation, id, ids, poll, secs};

fn with_reason(state: fleetwright::CloudInstanceState, reason: &str) -> Observation {
    let mut status = InstanceStatus::new(id("i-2"), state);
    status.state_reason = Some(reason.to_owned());
    status.into()
}

/// Returns the error of a wait for two instances, of which the first reaches the goal at once.
async fn failed<const N: usize>(second: [(u64, Observation); N], policy: &WaitPolicy) -> WaitError {
    let fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, Running.into())])
        .with_timeline("i-2", second);
    let waited = wait::for_state(&fake, &ids(&["i-1", "i-2"]), Running, policy).await;
    waited.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn every_wait_error_is_one_line() {
    let policy = every_second(secs(2));
    let brief = policy.clone().max_polls(std::num::NonZeroU32::MIN);
    let cases = [
        (
            failed([(0, Pending.into())], &policy).await,
            "waiting for running: the deadline passed; 1 of 2 reached it in 3 polls",
        ),
        (
            failed([(0, Pending.into())], &brief).await,
            "waiting for running: the limit of polls was reached; 1 of 2 reached it in 1 polls",
        ),
        (
            failed([(0, with_reason(Terminated, "out of capacity"))], &policy).await,
            "waiting for running: instance i-2 is terminated (out of capacity); 1 of 2 reached it in 1 polls",
        ),
        (
            failed([(0, Terminated.into())], &policy).await,
            "waiting for running: instance i-2 is terminated (no reason given); 1 of 2 reached it in 1 polls",
        ),
        (
            failed(
                [
                    (0, Pending.into()),
                    (1, with_reason(Stopped, "boot failed")),
                ],
                &policy,
            )
            .await,
            "waiting for running: instance i-2 went back to stopped (boot failed); 1 of 2 reached it in 2 polls",
        ),
        (
            failed([(0, poll().forbidden("no").into())], &policy).await,
            "waiting for running: describe_instances failed; 1 of 2 reached it in 1 polls",
        ),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.goal, Running);
        let (reached, not_reached) = (&error.reached, &error.not_reached);
        assert_eq!((reached.len(), not_reached.len()), (1, 1));
        assert_eq!(reached[0], InstanceStatus::new(id("i-1"), Running));
        assert_eq!(not_reached[0].id, id("i-2"));
    }
}

#[tokio::test(start_paused = true)]
async fn source_is_the_last_failed_read() {
    let policy = every_second(secs(3));
    let down = || Observation::from(poll().unavailable(Effect::None, "down"));
    let error = failed([(0, poll().forbidden("no").into())], &policy).await;
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("forbidden: no")
    );
    let error = failed([(0, Pending.into()), (2, down())], &policy).await;
    let source = error.source().unwrap().to_string();
    assert!(source.contains("unavailable: down"), "{source}");
    assert!(
        !error.to_string().contains("down"),
        "the error does not repeat its source"
    );
    let one = &error.not_reached[0];
    assert_eq!(one.last.as_ref().unwrap().state, Pending);
    assert_eq!(one.error.as_ref().unwrap().message(), "down");
}

#[tokio::test(start_paused = true)]
async fn successful_read_clears_the_source() {
    let policy = every_second(secs(3));
    let down = poll().unavailable(Effect::None, "down");
    let error = failed([(0, down.into()), (1, Pending.into())], &policy).await;
    assert!(error.source().is_none());
    assert!(error.not_reached[0].error.is_none());
}

#[tokio::test(start_paused = true)]
async fn never_observed_instance_is_in_the_error() {
    let fake = Fake::new(secs(90));
    let error = wait_for(&fake, &["i-9"], Running).await.unwrap_err();
    assert_eq!(error.not_reached[0].id, id("i-9"));
    assert!(error.not_reached[0].last.is_none());
    assert!(error.source().unwrap().to_string().contains("not found"));
}
