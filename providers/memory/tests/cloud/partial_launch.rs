//! Batch launches: all or nothing, or partial with the survivors in the error.

use fleetwright::{
    BatchLaunch, CloudInstanceState::Terminated, Effect, ErrorKind, InstanceProvisioner as _,
    LaunchRecord, Operation, PublicAddress,
};
use fleetwright_memory::{Capacity, Fault, Phase, Rule, WireCall};

use crate::support::{
    brisk, builder, existing_ids, found, ids, many, open, pass, plain, seconds, state, token,
    with_token,
};

#[tokio::test(start_paused = true)]
async fn all_or_nothing_launches_nothing_if_part_of_the_batch_does_not_fit() {
    let limits = [
        (brisk().quota(2), ErrorKind::Quota),
        (brisk().capacity(Capacity::of(2)), ErrorKind::Capacity),
    ];
    for (knobs, kind) in limits {
        let (cloud, provisioner) = open(knobs);
        let config = with_token("t");
        let error = provisioner
            .launch_instances(&config, many(3))
            .await
            .unwrap_err();
        assert_eq!((error.kind(), error.effect()), (kind, Effect::None));
        assert_eq!(error.operation(), Operation::LaunchInstances);
        assert!(error.survivors().is_empty());
        assert!(cloud.oracle().leftovers().is_empty());
        let two = provisioner
            .launch_instances(&config, many(2))
            .await
            .unwrap();
        assert_eq!(existing_ids(&cloud), ids(&two));
    }
}

#[tokio::test(start_paused = true)]
async fn partial_launch_reports_survivors_and_replay_completes_it() {
    let knobs = brisk().batch_launch(BatchLaunch::Partial).quota(2);
    let (cloud, provisioner) = open(knobs);
    let config = with_token("t");
    let error = provisioner
        .launch_instances(&config, many(5))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::Done)
    );
    assert_eq!(error.native_code(), Some("QuotaExceeded"));
    assert!(
        error
            .message()
            .contains("0 of 2 instances are in use and 5 more"),
        "{error}"
    );
    assert!(error.request_id().is_some(), "{error}");
    assert_eq!(ids(error.survivors()), existing_ids(&cloud));
    assert_eq!(existing_ids(&cloud).len(), 2);
    // The quota is still reached: the replay reports the same survivors.
    let again = provisioner
        .launch_instances(&config, many(5))
        .await
        .unwrap_err();
    assert_eq!(
        (again.kind(), again.effect()),
        (ErrorKind::Quota, Effect::Done)
    );
    assert_eq!(ids(again.survivors()), ids(error.survivors()));
    cloud.external_actor().set_quota(Some(4));
    let more = cloud
        .provisioner()
        .launch_instances(&config, many(5))
        .await
        .unwrap_err();
    assert_eq!(more.survivors().len(), 4);
    assert_eq!(ids(more.survivors()), existing_ids(&cloud));
    cloud.external_actor().set_quota(None);
    let complete = provisioner
        .launch_instances(&config, many(5))
        .await
        .unwrap();
    assert_eq!(ids(&complete), existing_ids(&cloud));
    assert_eq!(ids(&complete[..4]), ids(more.survivors()));
    assert_eq!(
        ids(&provisioner
            .launch_instances(&config, many(5))
            .await
            .unwrap()),
        existing_ids(&cloud)
    );
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(ids(&found(record)), existing_ids(&cloud));
}

#[tokio::test(start_paused = true)]
async fn token_of_a_completed_batch_is_spent_with_its_last_instance() {
    let knobs = brisk().batch_launch(BatchLaunch::Partial).quota(2);
    let (cloud, provisioner) = open(knobs);
    let config = with_token("t");
    provisioner
        .launch_instances(&config, many(3))
        .await
        .unwrap_err();
    cloud.external_actor().set_quota(Some(3));
    let three = provisioner
        .launch_instances(&config, many(3))
        .await
        .unwrap();
    for (number, info) in three.iter().enumerate() {
        let replay = provisioner
            .launch_instances(&config, many(3))
            .await
            .unwrap();
        assert_eq!(ids(&replay), ids(&three), "after {number} terminations");
        provisioner.terminate_instance(&info.id).await.unwrap();
        pass(seconds(1)).await;
        assert_eq!(state(&provisioner, &info.id).await, Terminated);
    }
    let error = provisioner
        .launch_instances(&config, many(3))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenSpent);
    assert!(cloud.oracle().leftovers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn replay_completes_a_partial_launch_with_a_lost_response() {
    for phase in [Phase::Before, Phase::After] {
        let knobs = brisk().batch_launch(BatchLaunch::Partial).quota(2);
        let (cloud, provisioner) = open(knobs);
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, 1, Fault::Lost(phase)));
        let config = with_token("t");
        let error = provisioner.launch_instances(&config, many(3)).await;
        assert_eq!(error.unwrap_err().effect(), Effect::Unknown);
        let part = existing_ids(&cloud);
        assert_eq!(part.len(), if phase == Phase::After { 2 } else { 0 });
        cloud.external_actor().set_quota(None);
        let complete = provisioner
            .launch_instances(&config, many(3))
            .await
            .unwrap();
        assert_eq!(ids(&complete), existing_ids(&cloud));
        assert_eq!(complete.len(), 3);
        assert!(ids(&complete).starts_with(&part));
    }
}

#[tokio::test(start_paused = true)]
async fn partial_launch_without_survivors_has_no_effect() {
    let knobs = brisk().batch_launch(BatchLaunch::Partial).quota(0);
    let (cloud, provisioner) = open(knobs);
    let error = provisioner
        .launch_instances(&with_token("t"), many(3))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::None)
    );
    assert!(error.survivors().is_empty());
    assert!(cloud.oracle().leftovers().is_empty());
    let found = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(found, LaunchRecord::NotFound);
}

#[tokio::test(start_paused = true)]
async fn launch_beyond_the_address_pool_is_a_quota_error_without_effect() {
    let (cloud, provisioner) = open(builder());
    for count in [131_071, u32::MAX] {
        let error = provisioner
            .launch_instances(&plain(), many(count))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Quota, Effect::None)
        );
        assert_eq!(error.native_code(), Some("AddressesExhausted"));
    }
    let mut hidden = plain();
    hidden.placement.public_address = Some(PublicAddress::Absent);
    let error = provisioner
        .launch_instances(&hidden, many(1 << 24))
        .await
        .unwrap_err();
    assert_eq!(error.native_code(), Some("AddressesExhausted"));
    assert!(cloud.oracle().leftovers().is_empty());
}
