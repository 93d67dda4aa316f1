//! `start_and_wait` and `stop_and_wait`.

use std::error::Error as _;

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated},
    Effect, ErrorKind, InstanceInfo, InstanceProvisionerExt as _, InstanceStatus, Operation, Tags,
    wait::WaitError,
};

use super::{running, wait_policy};
use crate::fake::{Fake, call, id, poll, secs};

/// Returns the result of a start, with the addresses from before the stop.
fn started() -> InstanceInfo {
    let mut info = InstanceInfo::new(id("i-1"), Pending);
    info.private_ip = Some([10, 0, 0, 1].into());
    info.tags = Tags::new().with("a", "1").unwrap();
    info
}

#[tokio::test(start_paused = true)]
async fn start_and_wait_returns_the_current_addresses() {
    let mut fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [
            (0, Stopped.into()),
            (1, Pending.into()),
            (4, running(&started()).into()),
        ],
    );
    fake.info = Ok(started());
    let info = fake.start_and_wait(&id("i-1"), &wait_policy()).await;
    let info = info.unwrap();
    assert_eq!(InstanceStatus::from(info.clone()), running(&started()));
    assert_eq!(info.tags, started().tags);
    assert_eq!(fake.calls(Operation::StartInstance).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reverted_start_is_an_error_with_effect() {
    let mut back = InstanceStatus::new(id("i-1"), Stopped);
    back.state_reason = Some("out of capacity".into());
    let mut fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Pending.into()), (2, back.into())]);
    fake.info = Ok(started());
    let waited = fake.start_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (
            ErrorKind::WrongState,
            Effect::Done,
            Operation::StartInstance
        )
    );
    assert_eq!(
        error.message(),
        "instance i-1 is stopped; it must be running (instance i-1 went back to stopped (out of capacity))"
    );
    let kept = &error.survivors()[0];
    assert_eq!(
        (&kept.id, kept.state),
        (&id("i-1"), Stopped),
        "as it is now"
    );
    assert_eq!(fake.elapsed(), secs(7));
}

#[tokio::test(start_paused = true)]
async fn start_that_fails_between_polls_is_reported_after_the_window() {
    let mut fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Stopped.into())]);
    fake.info = Ok(started());
    let waited = fake.start_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::WrongState);
    // The start has just returned, so the first poll is after a second. The window counts from there.
    assert_eq!(fake.polls()[0], secs(1));
    assert_eq!(fake.elapsed(), secs(6));
}

#[tokio::test(start_paused = true)]
async fn unreadable_stop_had_an_effect() {
    let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, poll().forbidden("no").into())]);
    let waited = fake.stop_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Forbidden, Effect::Done)
    );
}

#[tokio::test(start_paused = true)]
async fn start_that_is_not_running_in_time_is_a_timeout() {
    let mut fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Pending.into())]);
    fake.info = Ok(started());
    let waited = fake.start_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (ErrorKind::Timeout, Effect::Done, Operation::StartInstance)
    );
    assert!(error.source().unwrap().is::<WaitError>());
}

#[tokio::test(start_paused = true)]
async fn refused_start_or_stop_is_not_waited_for() {
    let refusal = call(Operation::StartInstance).wrong_state(&id("i-1"), Terminated, "stopped");
    let fake = Fake::new(secs(5))
        .with_timeline("i-1", [(0, Running.into())])
        .with_refusal("i-1", refusal.clone());
    let waited = fake.start_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().to_string(), refusal.to_string());
    let waited = fake.stop_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().to_string(), refusal.to_string());
    assert!(fake.polls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn stop_and_wait_returns_when_stopped() {
    let fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [
            (0, Running.into()),
            (1, Stopping.into()),
            (9, Stopped.into()),
        ],
    );
    let status = fake.stop_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(status.unwrap(), InstanceStatus::new(id("i-1"), Stopped));
    assert_eq!(fake.calls(Operation::StopInstance)[0].targets, ["i-1"]);
    assert_eq!(fake.elapsed(), secs(9));
}

#[tokio::test(start_paused = true)]
async fn failed_stop_names_the_stop() {
    let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Stopping.into())]);
    let waited = fake.stop_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (ErrorKind::Timeout, Effect::Done, Operation::StopInstance)
    );
    let fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Terminated.into())]);
    let waited = fake.stop_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (ErrorKind::WrongState, Effect::Done, Operation::StopInstance)
    );
}
