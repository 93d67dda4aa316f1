//! Waits on a cloud with a consistency window: when "not found" counts.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating},
    ErrorKind,
    wait::WaitCause,
};

use super::{cause, wait_for};
use crate::fake::{Fake, Observation, id, poll, secs};

/// Returns the error "not found".
fn missing() -> Observation {
    poll().not_found(&id("i-1")).into()
}

#[tokio::test(start_paused = true)]
async fn not_found_within_the_window_is_ignored() {
    let fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [(0, missing()), (4, Pending.into()), (6, Running.into())],
    );
    wait_for(&fake, &["i-1"], Running).await.unwrap();
    assert_eq!(fake.elapsed(), secs(6));
}

#[tokio::test(start_paused = true)]
async fn not_found_after_the_window_ends_the_wait() {
    for window in [0, 5] {
        let fake = Fake::new(secs(window)).with_timeline("i-1", [(0, missing())]);
        let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
        assert_eq!((cause(&error), fake.elapsed()), ("failed", secs(window)));
        let WaitCause::Failed(failed) = &error.cause else {
            panic!("{error:?}");
        };
        assert_eq!(failed.kind(), ErrorKind::NotFound);
        assert!(error.not_reached[0].last.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn not_found_after_the_window_counts_as_terminated() {
    for window in [0, 5] {
        let fake = Fake::new(secs(window)).with_timeline("i-1", [(0, missing())]);
        let observed = wait_for(&fake, &["i-1"], Terminated).await.unwrap();
        assert_eq!(
            (&observed[0].id, observed[0].state),
            (&id("i-1"), Terminated)
        );
        assert_eq!(observed[0].state_reason.as_deref(), Some("no record kept"));
        assert_eq!(fake.elapsed(), secs(window));
    }
    let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Terminating.into()), (9, missing())]);
    let observed = wait_for(&fake, &["i-1"], Terminated).await.unwrap();
    assert_eq!(observed[0].state_reason.as_deref(), Some("no record kept"));
    assert_eq!(fake.elapsed(), secs(9));
}

#[tokio::test(start_paused = true)]
async fn delay_of_not_found_is_limited_to_the_window() {
    for (requested, polls) in [(3, [0, 3, 5]), (4, [0, 4, 5])] {
        let error = poll().not_found(&id("i-1")).retry_after(secs(requested));
        let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, error.into())]);
        wait_for(&fake, &["i-1"], Running).await.unwrap_err();
        assert_eq!(fake.polls(), polls.map(secs));
    }
    let error = poll().not_found(&id("i-1")).retry_after(secs(50));
    let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, error.into())]);
    let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
    assert_eq!(cause(&error), "failed");
    assert_eq!(fake.polls(), [0, 5].map(secs));
}

#[tokio::test(start_paused = true)]
async fn reverted_instance_fails_after_the_window() {
    for window in [0, 5] {
        let fake = Fake::new(secs(window))
            .with_timeline("i-1", [(0, Pending.into()), (2, Stopped.into())]);
        let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
        assert_eq!(cause(&error), "reverted");
        assert_eq!(fake.elapsed(), secs(2 + window));
        assert_eq!(error.not_reached[0].last.as_ref().unwrap().state, Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn stale_reads_within_the_window_are_ignored() {
    let fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [
            (0, Pending.into()),
            (2, Stopped.into()),
            (6, Pending.into()),
            (7, Stopped.into()),
            (11, Running.into()),
        ],
    );
    wait_for(&fake, &["i-1"], Running).await.unwrap();
    assert_eq!(fake.elapsed(), secs(11));
}

#[tokio::test(start_paused = true)]
async fn instance_not_yet_heading_to_the_goal_is_waited_for() {
    let fake = Fake::new(secs(2)).with_timeline(
        "i-1",
        [
            (0, Stopped.into()),
            (20, Pending.into()),
            (21, Running.into()),
        ],
    );
    wait_for(&fake, &["i-1"], Running).await.unwrap();
    let fake = Fake::new(secs(2)).with_timeline(
        "i-1",
        [
            (0, Running.into()),
            (20, Stopping.into()),
            (25, Stopped.into()),
        ],
    );
    wait_for(&fake, &["i-1"], Stopped).await.unwrap();
    let fake = Fake::new(secs(2)).with_timeline("i-1", [(0, Stopped.into())]);
    let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
    assert_eq!(cause(&error), "deadline", "it may still be started");
}

#[tokio::test(start_paused = true)]
async fn failed_read_does_not_shorten_the_window() {
    let fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [
            (0, Pending.into()),
            (1, Stopped.into()),
            (2, poll().throttled(secs(1)).into()),
            (5, Pending.into()),
            (8, Running.into()),
        ],
    );
    wait_for(&fake, &["i-1"], Running).await.unwrap();
    assert_eq!(fake.elapsed(), secs(8));
}

#[tokio::test(start_paused = true)]
async fn usual_lag_ends_a_wait_and_only_the_window_proves() {
    fn lagging<const N: usize>(observations: [(u64, Observation); N]) -> Fake {
        let mut fake = Fake::new(secs(60)).with_timeline("i-1", observations);
        fake.capabilities.usual_lag = Some(secs(5));
        fake
    }
    let fake = lagging([(0, missing())]);
    wait_for(&fake, &["i-1"], Running).await.unwrap_err();
    assert_eq!(fake.elapsed(), secs(5));
    let fake = lagging([(0, Pending.into()), (2, Stopped.into())]);
    let error = wait_for(&fake, &["i-1"], Running).await.unwrap_err();
    assert_eq!((cause(&error), fake.elapsed()), ("reverted", secs(7)));
    // The end of an instance must be proved, and so must that of one that the backend has launched.
    let fake = lagging([(0, missing())]);
    wait_for(&fake, &["i-1"], Terminated).await.unwrap();
    assert_eq!(fake.elapsed(), secs(60));
    let launched = || poll().not_found(&id("i-1")).retry_after(secs(5)).into();
    let fake = lagging([(0, launched()), (40, Running.into())]);
    wait_for(&fake, &["i-1"], Running).await.unwrap();
    assert_eq!(fake.elapsed(), secs(40));
}
