//! Launch tokens: launches with the same token create the instances once.

use std::sync::Arc;

use fleetwright::{
    CloudInstanceState::{Running, Stopped, Terminated},
    Effect, ErrorKind, InstanceConfig, InstanceProvisioner as _, LaunchRecord, PublicAddress,
    RetryAdvice,
};
use futures_util::future::join_all;

use crate::support::{
    blue, brisk, builder, existing_ids, found, ids, many, open, pass, plain, seconds,
    terminated_instances, token, truth, with_token, zone,
};

#[tokio::test(start_paused = true)]
async fn replay_returns_the_current_state_of_the_same_instance() {
    let (cloud, provisioner) = open(brisk());
    let first = provisioner.launch_instance(&with_token("t")).await.unwrap();
    pass(seconds(1)).await;
    let replay = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!((&replay.id, replay.state), (&first.id, Running));
    provisioner.stop_instance(&first.id).await.unwrap();
    pass(seconds(1)).await;
    let change = fleetwright::TagChange::new().set("fleet", "red").unwrap();
    provisioner.update_tags(&first.id, &change).await.unwrap();
    // The replay compares with the original config, although the tags have changed since.
    let replay = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!((&replay.id, replay.state), (&first.id, Stopped));
    assert_eq!(replay, truth(&cloud, &first.id).info);
    assert_eq!(existing_ids(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn launches_without_a_token_are_independent() {
    let (cloud, provisioner) = open(brisk());
    let one = provisioner.launch_instance(&plain()).await.unwrap();
    let two = provisioner.launch_instance(&plain()).await.unwrap();
    let three = provisioner.launch_instance(&with_token("a")).await.unwrap();
    let four = provisioner.launch_instance(&with_token("b")).await.unwrap();
    assert_eq!(existing_ids(&cloud), ids(&[one, two, three, four]));
}

#[tokio::test(start_paused = true)]
async fn token_outlives_its_handle() {
    let (cloud, provisioner) = open(brisk());
    let first = provisioner.launch_instance(&with_token("t")).await.unwrap();
    drop(provisioner);
    let cloud = cloud.clone();
    for _ in 0..3 {
        let reopened = cloud.provisioner();
        let found = reopened.find_launch(&token("t")).await.unwrap();
        assert_eq!(
            found,
            LaunchRecord::Found(vec![truth(&cloud, &first.id).info])
        );
        let replay = reopened.launch_instance(&with_token("t")).await.unwrap();
        assert_eq!(replay.id, first.id);
        pass(seconds(1)).await;
    }
    assert_eq!(existing_ids(&cloud), [first.id]);
}

#[tokio::test(start_paused = true)]
async fn same_token_with_another_config_is_a_conflict() {
    let (cloud, provisioner) = open(brisk());
    let first = provisioner.launch_instance(&with_token("t")).await.unwrap();
    let changes: [fn(&mut InstanceConfig); 8] = [
        |config| config.image = fleetwright::ImageId::new("image-2").unwrap(),
        |config| config.instance_type = fleetwright::InstanceType::new("large").unwrap(),
        |config| config.user_data = Some(fleetwright::UserData::new("x").unwrap()),
        |config| config.tags = fleetwright::Tags::new(),
        |config| config.disk_size_gb = Some(many(8)),
        |config| config.placement.zone = Some(zone("mem-b")),
        |config| config.placement.public_address = Some(PublicAddress::Absent),
        |config| config.placement.market = Some(fleetwright::Market::Spot),
    ];
    for change in changes {
        let mut other = with_token("t");
        change(&mut other);
        let error = provisioner.launch_instance(&other).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::TokenConflict, Effect::None, RetryAdvice::Never)
        );
    }
    let error = provisioner
        .launch_instances(&with_token("t"), many(2))
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TokenConflict);
    let one = provisioner
        .launch_instances(&with_token("t"), many(1))
        .await;
    assert_eq!(ids(&one.unwrap()), [first.id]);
    assert_eq!(existing_ids(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn spent_token_cannot_launch_until_it_expires() {
    let (cloud, provisioner) = open(
        brisk()
            .token_after_terminate(seconds(30))
            .terminated_visible(seconds(10)),
    );
    let first = provisioner.launch_instance(&with_token("t")).await.unwrap();
    provisioner.terminate_instance(&first.id).await.unwrap();
    // The token is spent as soon as its instance is terminating.
    let error = provisioner
        .launch_instance(&with_token("t"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenSpent);
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(
        terminated_instances(record)[0].state,
        fleetwright::CloudInstanceState::Terminating
    );
    pass(seconds(1)).await;
    for second in 0..30 {
        let error = provisioner
            .launch_instance(&with_token("t"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::TokenSpent, Effect::None, RetryAdvice::Never)
        );
        let other = blue().tag("x", "").launch_token("t").build().unwrap();
        let error = provisioner.launch_instance(&other).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenConflict);
        let record = provisioner.find_launch(&token("t")).await.unwrap();
        let left: Vec<_> = terminated_instances(record)
            .into_iter()
            .map(|info| info.state)
            .collect();
        let expected: &[_] = if second < 10 { &[Terminated] } else { &[] };
        assert_eq!(left, expected, "second {second}");
        pass(seconds(1)).await;
    }
    let found = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(found, LaunchRecord::NotFound);
    let second = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(existing_ids(&cloud), std::slice::from_ref(&second.id));
    // The expiry of the first use does not remove the second one.
    pass(seconds(100)).await;
    let replay = provisioner.launch_instance(&with_token("t")).await.unwrap();
    assert_eq!(replay.id, second.id);
}

#[tokio::test(start_paused = true)]
async fn token_without_retention_can_launch_again_at_once() {
    let (cloud, provisioner) = open(brisk().token_after_terminate(seconds(0)));
    let mut earlier = Vec::new();
    for _ in 0..4 {
        let info = provisioner.launch_instance(&with_token("t")).await.unwrap();
        assert!(!earlier.contains(&info.id));
        assert_eq!(existing_ids(&cloud), std::slice::from_ref(&info.id));
        provisioner.terminate_instance(&info.id).await.unwrap();
        earlier.push(info.id);
        pass(seconds(1)).await;
        let found = provisioner.find_launch(&token("t")).await.unwrap();
        assert_eq!(found, LaunchRecord::NotFound);
    }
}

#[tokio::test(start_paused = true)]
async fn launch_without_effect_does_not_use_its_token() {
    let (cloud, provisioner) = open(brisk().quota(0));
    let error = provisioner
        .launch_instance(&with_token("t"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::None)
    );
    let found = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(found, LaunchRecord::NotFound);
    cloud.external_actor().set_quota(Some(1));
    let other = blue().tag("x", "").launch_token("t").build().unwrap();
    provisioner.launch_instance(&other).await.unwrap();
    // A replay of existing instances succeeds even if the quota is reached.
    provisioner.launch_instance(&other).await.unwrap();
    assert_eq!(existing_ids(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_launches_with_one_token_create_one_instance() {
    let (cloud, provisioner) = open(builder().latency(seconds(1)));
    let (provisioner, other) = (Arc::new(provisioner), Arc::new(cloud.provisioner()));
    let config = with_token("t");
    let calls = (0..50).map(|number| {
        let handle = if number % 2 == 0 {
            &provisioner
        } else {
            &other
        };
        handle.launch_instance(&config)
    });
    let results: Vec<_> = join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(existing_ids(&cloud), [results[0].id.clone()]);
    assert!(results.iter().all(|info| info.id == results[0].id));
}

#[tokio::test(start_paused = true)]
async fn find_launch_follows_the_launch_and_returns_not_found_for_unknown_tokens() {
    let (_, provisioner) = open(brisk());
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(record, LaunchRecord::NotFound);
    let config = with_token("t");
    let three = provisioner
        .launch_instances(&config, many(3))
        .await
        .unwrap();
    provisioner.terminate_instance(&three[1].id).await.unwrap();
    pass(seconds(1)).await;
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    let found = found(record);
    assert_eq!(ids(&found), ids(&three));
    assert_eq!(found[1].state, Terminated);
    for info in &three {
        provisioner.terminate_instance(&info.id).await.unwrap();
    }
    pass(seconds(1)).await;
    let record = provisioner.find_launch(&token("t")).await.unwrap();
    assert_eq!(ids(&terminated_instances(record)), ids(&three));
}
