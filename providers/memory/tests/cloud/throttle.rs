//! Throttling: one bucket for each call, and the reported delay is exact.

use std::time::Duration;

use fleetwright::{Effect, ErrorKind, InstanceProvisioner as _, RetryAdvice};
use fleetwright_memory::{ManualClock, WireCall};

use crate::{
    calls::{self, send, snapshot_state},
    support::{block_on_paused, brisk, existing_ids, many, open, pass, plain, seconds},
};

#[test]
fn every_call_has_its_own_bucket() {
    for throttled in calls::ALL {
        block_on_paused(async {
            // Prepared by the external actor, so that the bucket is full.
            let (cloud, provisioner) = open(brisk().throttle(throttled, seconds(10), many(1)));
            let id = cloud.external_actor().launch(&plain()).unwrap().id;
            pass(seconds(1)).await;
            if matches!(throttled, WireCall::Start | WireCall::Resize) {
                cloud.external_actor().stop(&id).unwrap();
                pass(seconds(1)).await;
            }
            send(throttled, &provisioner, &id).await.unwrap();
            pass(seconds(3)).await;
            let before = snapshot_state(&cloud);
            let error = send(throttled, &provisioner, &id).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::Throttled, Effect::None)
            );
            assert_eq!(error.retry(), RetryAdvice::After(seconds(7)), "{throttled}");
            assert_eq!(error.native_code(), Some("Throttling"));
            assert_eq!(snapshot_state(&cloud), before, "{throttled}");
            // Another handle uses the same bucket; other calls use other buckets.
            let other = cloud.provisioner();
            assert!(send(throttled, &other, &id).await.is_err());
            for call in [WireCall::ListPage, WireCall::FindLaunch] {
                assert_eq!(send(call, &other, &id).await.is_err(), call == throttled);
            }
            pass(seconds(7)).await;
            send(throttled, &provisioner, &id).await.unwrap();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn burst_is_accepted_and_a_batch_counts_as_one_call() {
    let (cloud, provisioner) = open(brisk().throttle(WireCall::Launch, seconds(1), many(3)));
    for _ in 0..3 {
        provisioner
            .launch_instances(&plain(), many(5))
            .await
            .unwrap();
    }
    let error = provisioner.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert_eq!(existing_ids(&cloud).len(), 15);
    assert_eq!(
        cloud.oracle().call_count(WireCall::Launch),
        4,
        "refused calls count"
    );
    pass(seconds(2)).await;
    provisioner.launch_instance(&plain()).await.unwrap();
    provisioner.launch_instance(&plain()).await.unwrap();
    provisioner.launch_instance(&plain()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn bucket_follows_the_clock_of_the_cloud() {
    let clock = std::sync::Arc::new(ManualClock::new());
    let knobs = brisk().throttle(WireCall::Launch, seconds(1), many(1));
    let (_, provisioner) = open(knobs.clock(clock.clone()));
    provisioner.launch_instance(&plain()).await.unwrap();
    pass(seconds(100)).await;
    let error = provisioner.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(error.retry(), RetryAdvice::After(seconds(1)));
    clock.advance(seconds(1));
    provisioner.launch_instance(&plain()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn extreme_buckets_do_not_break_the_cloud() {
    for period in [Duration::ZERO, Duration::MAX] {
        for burst in [1, u32::MAX] {
            let clock = std::sync::Arc::new(ManualClock::new());
            let knobs = brisk().throttle(WireCall::Launch, period, many(burst));
            let (_, provisioner) = open(knobs.clock(clock.clone()));
            provisioner.launch_instance(&plain()).await.unwrap();
            clock.advance(Duration::MAX);
            // Accepted or throttled, but the call returns.
            let _ = provisioner.launch_instance(&plain()).await;
        }
    }
}
