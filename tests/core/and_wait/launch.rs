//! `launch_and_wait`, including lost responses.

use std::error::Error as _;

use fleetwright::{
    CloudInstanceState::{Pending, Running, Terminated, Terminating},
    Effect, ErrorKind, ImageId, InstanceConfig, InstanceInfo, InstanceProvisionerExt as _,
    InstanceStatus, LaunchRecord, MacAddress, Operation, ProvisionError, Tags,
    wait::WaitError,
};

use super::{running, wait_policy};
use crate::fake::{Fake, call, id, poll, secs};

fn config() -> InstanceConfig {
    let builder = InstanceConfig::builder("image-7", "small").launch_token("t-1");
    builder.build().unwrap()
}

fn without_token() -> InstanceConfig {
    InstanceConfig::builder("image-7", "small").build().unwrap()
}

/// Returns the error of a launch with an unknown outcome.
fn lost() -> ProvisionError {
    call(Operation::LaunchInstance).timeout(Effect::Unknown)
}

/// Returns the result of a launch, with all fields that a status does not have.
fn launched() -> InstanceInfo {
    let mut info = InstanceInfo::new(id("i-1"), Pending);
    info.native_state = Some("STARTING".into());
    info.private_ip = Some([10, 0, 0, 1].into());
    info.public_ip = Some([198, 18, 0, 1].into());
    info.mac_address = Some(MacAddress::new([1; 6]));
    info.tags = Tags::new().with("a", "1").unwrap();
    info.image = Some(ImageId::new("image-7").unwrap());
    info
}

/// Creates a cloud that launches `i-1`, which runs after three seconds.
fn cloud() -> Fake {
    let mut fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [(0, Pending.into()), (3, running(&launched()).into())],
    );
    fake.info = Ok(launched());
    fake
}

/// Checks that `fake` got one launch call.
fn launched_once(fake: &Fake) {
    assert_eq!(fake.calls(Operation::LaunchInstance).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn launch_and_wait_returns_the_running_instance_with_current_data() {
    for config in [config(), without_token()] {
        let fake = cloud();
        let info = fake.launch_and_wait(&config, &wait_policy()).await;
        let info = info.unwrap();
        assert_eq!(fake.elapsed(), secs(3));
        assert_eq!(InstanceStatus::from(info.clone()), running(&launched()));
        assert_eq!((info.tags, info.image), (launched().tags, launched().image));
        assert!(fake.calls(Operation::FindLaunch).is_empty());
        launched_once(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn late_launch_failure_has_the_reason_and_no_survivor() {
    let mut terminated = InstanceStatus::new(id("i-1"), Terminated);
    terminated.state_reason = Some("out of capacity".into());
    let mut fake =
        Fake::new(secs(5)).with_timeline("i-1", [(0, Pending.into()), (2, terminated.into())]);
    fake.info = Ok(launched());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(fake.elapsed(), secs(2));
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (
            ErrorKind::WrongState,
            Effect::Done,
            Operation::LaunchInstance
        )
    );
    assert!(
        error.survivors().is_empty(),
        "a terminated instance has no effect left"
    );
    assert_eq!(
        error.message(),
        "instance i-1 is terminated; it must be running (instance i-1 is terminated (out of capacity))"
    );
    assert!(error.source().unwrap().is::<WaitError>());
}

#[tokio::test(start_paused = true)]
async fn launch_that_is_not_running_in_time_is_a_timeout_with_survivor() {
    let mut fake = Fake::new(secs(5)).with_timeline("i-1", [(0, Pending.into())]);
    fake.info = Ok(launched());
    for policy in [
        wait_policy(),
        wait_policy().max_polls(std::num::NonZeroU32::MIN),
    ] {
        let waited = fake.launch_and_wait(&config(), &policy).await;
        let error = waited.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.operation()),
            (ErrorKind::Timeout, Effect::Done, Operation::LaunchInstance)
        );
        let mut last_seen = launched();
        last_seen.native_state = None;
        (
            last_seen.private_ip,
            last_seen.public_ip,
            last_seen.mac_address,
        ) = (None, None, None);
        assert_eq!(error.survivors(), [last_seen], "the state of the last poll");
        assert_eq!(error.provider(), "fake");
        assert!(error.source().unwrap().is::<WaitError>());
    }
    assert!(fake.calls(Operation::TerminateInstance).is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_poll_error_carries_the_launched_instance() {
    let mut fake = Fake::new(secs(5)).with_timeline("i-1", [(0, poll().forbidden("no").into())]);
    fake.info = Ok(launched());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Forbidden, Effect::Done)
    );
    assert_eq!(error.survivors(), [launched()]);
}

#[tokio::test(start_paused = true)]
async fn lost_response_is_settled_by_token_without_a_second_launch() {
    let found = || Ok(LaunchRecord::Found(vec![launched()]));
    for seen_from in [0, 2, 5] {
        let mut fake =
            cloud().with_launch_records([(0, Ok(LaunchRecord::NotFound)), (seen_from, found())]);
        fake.info = Err(lost());
        let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
        let info = waited.unwrap();
        assert_eq!((info.id, info.state), (id("i-1"), Running));
        assert_eq!(info.tags, launched().tags);
        let finds = fake.calls(Operation::FindLaunch);
        assert!(finds.iter().all(|find| find.targets == ["t-1"]));
        launched_once(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_launch_that_is_never_found_is_an_error_after_the_window() {
    let mut fake = cloud();
    fake.info = Err(lost());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(error.to_string(), lost().to_string());
    assert_eq!(fake.elapsed(), secs(5));
    assert!(fake.polls().is_empty());
    launched_once(&fake);
}

#[tokio::test(start_paused = true)]
async fn lost_launch_without_living_instance_is_an_error() {
    let mut dead = launched();
    dead.state = Terminated;
    for record in [
        LaunchRecord::Terminated(vec![dead.clone()]),
        LaunchRecord::Found(vec![]),
        LaunchRecord::Found(vec![dead]),
    ] {
        let mut fake = cloud().with_launch_records([(0, Ok(record))]);
        fake.info = Err(lost());
        let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
        assert_eq!(waited.unwrap_err().to_string(), lost().to_string());
        assert_eq!((fake.elapsed(), fake.polls().len()), (secs(0), 0));
        launched_once(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn living_instance_of_a_lost_launch_is_waited_for() {
    let mut dead = InstanceInfo::new(id("i-0"), Terminated);
    dead.state_reason = Some("of an earlier launch".into());
    let record = LaunchRecord::from_instances(vec![dead, launched()]);
    let mut fake = cloud()
        .with_timeline("i-0", [(0, Terminated.into())])
        .with_launch_records([(0, Ok(record))]);
    fake.info = Err(lost());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    assert_eq!(waited.unwrap().id, id("i-1"));
}

#[tokio::test(start_paused = true)]
async fn outcome_of_a_lost_launch_stays_unknown_without_a_look_up() {
    let failed = call(Operation::FindLaunch).unavailable(Effect::None, "down");
    let mut fake = cloud().with_launch_records([(0, Err(failed))]);
    fake.info = Err(lost());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(error.operation(), Operation::LaunchInstance);
    launched_once(&fake);
}

#[tokio::test(start_paused = true)]
async fn lost_launch_without_token_is_an_error_at_once() {
    let mut fake = cloud().with_launch_records([(0, Ok(LaunchRecord::Found(vec![launched()])))]);
    fake.info = Err(lost());
    let waited = fake.launch_and_wait(&without_token(), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().to_string(), lost().to_string());
    assert!(fake.calls(Operation::FindLaunch).is_empty());
    assert_eq!(fake.elapsed(), secs(0));
    launched_once(&fake);
}

#[tokio::test(start_paused = true)]
async fn refused_launch_is_not_looked_up() {
    let launch = call(Operation::LaunchInstance);
    for refusal in [launch.forbidden("no"), launch.timeout(Effect::Done)] {
        let mut fake =
            cloud().with_launch_records([(0, Ok(LaunchRecord::Found(vec![launched()])))]);
        fake.info = Err(refusal.clone());
        let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
        assert_eq!(waited.unwrap_err().to_string(), refusal.to_string());
        assert!(fake.calls(Operation::FindLaunch).is_empty());
        launched_once(&fake);
    }
}

#[tokio::test(start_paused = true)]
async fn launch_terminated_by_another_actor_fails_at_once() {
    let mut fake = cloud().with_timeline("i-1", [(0, Pending.into()), (1, Terminating.into())]);
    fake.info = Ok(launched());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::WrongState);
    assert_eq!(fake.elapsed(), secs(1));
}

#[tokio::test(start_paused = true)]
async fn launch_that_disappears_has_no_survivor() {
    let mut fake =
        Fake::new(secs(5)).with_timeline("i-1", [(0, poll().not_found(&id("i-1")).into())]);
    fake.info = Ok(launched());
    let waited = fake.launch_and_wait(&config(), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::NotFound, Effect::Done)
    );
    assert!(error.survivors().is_empty());
}
