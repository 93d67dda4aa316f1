//! Describes of recent launches: "not found" is retried within the consistency window.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::Running, ErrorKind, InstanceProvisioner as _, InstanceProvisionerExt as _,
    LaunchRecord, RetryAdvice,
};
use fleetwright_memory::{Fault, Rule, WireCall};

use crate::support::{
    brisk, builder, found, ids, many, open, pass, plain, seconds, token, with_token,
};

const WINDOW: Duration = seconds(5);

#[tokio::test(start_paused = true)]
async fn describe_retries_not_found_for_recent_launches_of_the_handle() {
    for latency in [Duration::ZERO, seconds(1), seconds(4)] {
        let (cloud, provisioner) = open(brisk().read_lag(WINDOW).latency(latency));
        cloud
            .faults()
            .add(Rule::always(WireCall::Describe, Fault::StaleRead));
        let launched = provisioner
            .launch_instances(&plain(), many(3))
            .await
            .unwrap();
        let other = cloud.provisioner();
        let error = other.describe_instance(&launched[0].id).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.retry()),
            (ErrorKind::NotFound, RetryAdvice::Never)
        );
        let unknown = fleetwright::InstanceId::new("i-unknown").unwrap();
        let mut requested = ids(&launched);
        requested.push(unknown.clone());
        let began = tokio::time::Instant::now();
        let results = provisioner.describe_instances(&requested).await;
        for (info, result) in launched.iter().zip(&results) {
            assert_eq!(result.as_ref().unwrap().id, info.id);
        }
        assert_eq!(results[3].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
        assert!(
            began.elapsed() >= WINDOW.saturating_sub(latency),
            "{:?}",
            began.elapsed()
        );
        assert!(
            began.elapsed() <= WINDOW + latency * 2,
            "{:?}",
            began.elapsed()
        );
        // Unknown ids, and launches of other handles, are not retried.
        let began = tokio::time::Instant::now();
        provisioner.describe_instance(&unknown).await.unwrap_err();
        assert_eq!(began.elapsed(), latency);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_of_not_found_ends_with_the_window() {
    // The declared poll interval of an hour is longer than the window of five seconds.
    let (cloud, provisioner) = open(brisk().read_lag(WINDOW).poll_interval(seconds(3_600)));
    let stale = Rule::nth(WireCall::Describe, 1, Fault::StaleRead);
    cloud.faults().add(stale);
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    let began = tokio::time::Instant::now();
    provisioner.describe_instance(&info.id).await.unwrap();
    assert_eq!(began.elapsed(), WINDOW);
}

#[tokio::test(start_paused = true)]
async fn retry_of_not_found_uses_the_declared_poll_interval() {
    for (interval, calls) in [(seconds(1), 6), (Duration::ZERO, 5_001)] {
        let (cloud, provisioner) = open(brisk().read_lag(WINDOW).poll_interval(interval));
        cloud
            .faults()
            .add(Rule::always(WireCall::Describe, Fault::StaleRead));
        let info = provisioner.launch_instance(&plain()).await.unwrap();
        provisioner.describe_instance(&info.id).await.unwrap();
        assert_eq!(cloud.oracle().call_count(WireCall::Describe), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_response_still_counts_as_within_the_window() {
    // The cloud handles the read within the window, and the task resumes long after it.
    let (cloud, provisioner) = open(brisk().read_lag(WINDOW).latency(seconds(2)));
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    cloud
        .faults()
        .add(Rule::nth(WireCall::Describe, 1, Fault::StaleRead));
    let mut describing = Box::pin(provisioner.describe_instance(&info.id));
    let waker = futures_util::task::noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    for delay in [seconds(1), seconds(100)] {
        assert!(describing.as_mut().poll(&mut context).is_pending());
        tokio::time::advance(delay).await;
    }
    let status = describing.await.unwrap();
    assert_eq!((status.id, status.state), (info.id, Running));
}

#[tokio::test(start_paused = true)]
async fn recent_launch_expires_after_the_window() {
    let (cloud, provisioner) = open(brisk().read_lag(WINDOW).terminated_visible(seconds(0)));
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    cloud.external_actor().terminate(&info.id).unwrap();
    pass(WINDOW).await;
    let began = tokio::time::Instant::now();
    let error = provisioner.describe_instance(&info.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn settle_launch_waits_for_the_window() {
    let (cloud, provisioner) = open(builder().read_lag(WINDOW));
    cloud
        .faults()
        .add(Rule::always(WireCall::FindLaunch, Fault::StaleRead));
    let began = tokio::time::Instant::now();
    let record = provisioner.settle_launch(&token("t")).await.unwrap();
    assert_eq!((record, began.elapsed()), (LaunchRecord::NotFound, WINDOW));
    let info = provisioner.launch_instance(&with_token("t")).await.unwrap();
    let record = cloud
        .provisioner()
        .settle_launch(&token("t"))
        .await
        .unwrap();
    assert_eq!(ids(&found(record)), [info.id]);
}
