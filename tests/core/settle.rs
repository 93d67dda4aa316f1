//! `settle_launch`: finding out what became of a launch.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::{Pending, Terminated},
    Effect, InstanceConfig, InstanceInfo, InstanceProvisioner as _, InstanceProvisionerExt as _,
    LaunchRecord, LaunchToken, Operation,
};

use crate::fake::{Fake, call, id, secs};

fn token() -> LaunchToken {
    LaunchToken::new("t-1").unwrap()
}

fn found() -> LaunchRecord {
    LaunchRecord::Found(vec![InstanceInfo::new(id("i-1"), Pending)])
}

/// Returns the times at which the token was looked up.
fn lookup_times(fake: &Fake) -> Vec<Duration> {
    let finds = fake.calls(Operation::FindLaunch);
    assert!(finds.iter().all(|find| find.targets == ["t-1"]));
    finds.into_iter().map(|find| find.at).collect()
}

#[tokio::test(start_paused = true)]
async fn launch_is_settled_as_soon_as_it_is_found() {
    let terminated = LaunchRecord::Terminated(vec![InstanceInfo::new(id("i-1"), Terminated)]);
    for record in [found(), terminated] {
        let not_yet = Ok(LaunchRecord::NotFound);
        let fake = Fake::new(secs(9)).with_launch_records([(0, not_yet), (2, Ok(record.clone()))]);
        assert_eq!(fake.settle_launch(&token()).await.unwrap(), record);
        assert_eq!(lookup_times(&fake), [0, 1, 2].map(secs));
    }
}

#[tokio::test(start_paused = true)]
async fn launch_is_not_found_only_after_the_window() {
    let mut fake = Fake::new(secs(5));
    fake.capabilities.poll_interval = secs(2);
    let settled = fake.settle_launch(&token()).await.unwrap();
    assert_eq!(settled, LaunchRecord::NotFound);
    assert_eq!(lookup_times(&fake), [0, 2, 4, 5].map(secs));
}

#[tokio::test(start_paused = true)]
async fn launch_visible_at_the_end_of_the_window_is_found() {
    let fake = Fake::new(secs(5)).with_launch_records([(5, Ok(found()))]);
    assert_eq!(fake.settle_launch(&token()).await.unwrap(), found());
}

#[tokio::test(start_paused = true)]
async fn one_look_up_settles_with_consistent_reads() {
    let fake = Fake::new(secs(0));
    let settled = fake.settle_launch(&token()).await.unwrap();
    assert_eq!(settled, LaunchRecord::NotFound);
    assert_eq!(lookup_times(&fake), [secs(0)]);
}

#[tokio::test(start_paused = true)]
async fn look_ups_are_spaced_without_poll_interval() {
    let millis = Duration::from_millis;
    let mut fake = Fake::new(millis(3));
    fake.capabilities.poll_interval = secs(0);
    fake.settle_launch(&token()).await.unwrap();
    assert_eq!(lookup_times(&fake), [0, 1, 2, 3].map(millis));
}

#[tokio::test(start_paused = true)]
async fn look_up_error_without_retry_is_returned_at_once() {
    let failed = call(Operation::FindLaunch).forbidden("no");
    let fake =
        Fake::new(secs(5)).with_launch_records([(0, Ok(LaunchRecord::NotFound)), (2, Err(failed))]);
    let error = fake.settle_launch(&token()).await.unwrap_err();
    assert_eq!(error.message(), "no");
    assert_eq!(fake.elapsed(), secs(2));
}

#[tokio::test(start_paused = true)]
async fn look_up_is_retried_within_the_window() {
    let down = || Err(call(Operation::FindLaunch).unavailable(Effect::None, "down"));
    let fake = Fake::new(secs(5)).with_launch_records([(0, down()), (2, Ok(found()))]);
    assert_eq!(fake.settle_launch(&token()).await.unwrap(), found());
    assert_eq!(lookup_times(&fake), [0, 1, 2].map(secs));
    let fake = Fake::new(secs(5)).with_launch_records([(0, down())]);
    let error = fake.settle_launch(&token()).await.unwrap_err();
    assert_eq!((error.message(), fake.elapsed()), ("down", secs(5)));
    let throttled = Err(call(Operation::FindLaunch).throttled(secs(3)));
    let fake = Fake::new(secs(5)).with_launch_records([(0, throttled), (3, Ok(found()))]);
    fake.settle_launch(&token()).await.unwrap();
    assert_eq!(lookup_times(&fake), [0, 3].map(secs));
}

#[tokio::test(start_paused = true)]
async fn batch_is_found_by_its_token_or_its_item_tokens() {
    let three = std::num::NonZeroU32::new(3).unwrap();
    let all = ["i-1", "i-2", "i-3"].map(|name| InstanceInfo::new(id(name), Pending));
    let all = LaunchRecord::Found(all.into());
    let fake = Fake::new(secs(0)).with_launch_records([(0, Ok(all.clone()))]);
    assert_eq!(fake.find_launches(&token(), three).await.unwrap(), all);
    assert_eq!(
        fake.calls(Operation::FindLaunch).len(),
        1,
        "the token of the batch finds all of it"
    );
    let fake = Fake::new(secs(0));
    let settled = fake.find_launches(&token(), three).await.unwrap();
    assert_eq!(settled, LaunchRecord::NotFound);
    let requested: Vec<_> = fake
        .calls(Operation::FindLaunch)
        .into_iter()
        .map(|c| c.targets)
        .collect();
    let items = [0, 1, 2].map(|index| vec![token().item(index).to_string()]);
    assert_eq!(requested, items, "the first item has the batch's token");
}

#[tokio::test(start_paused = true)]
async fn batch_launched_item_by_item_is_found_by_item_tokens() {
    let cloud = fleetwright_memory::MemoryCloud::builder()
        .terminated_visible(secs(1))
        .build();
    let (memory, three) = (cloud.provisioner(), std::num::NonZeroU32::new(3).unwrap());
    let mut config = InstanceConfig::builder("image", "small").build().unwrap();
    let mut ids = Vec::new();
    for index in [0, 2] {
        config.launch_token = Some(token().item(index));
        ids.push(memory.launch_instance(&config).await.unwrap().id);
    }
    let LaunchRecord::Found(instances) = memory.find_launches(&token(), three).await.unwrap()
    else {
        panic!("two of three were launched");
    };
    assert_eq!(
        instances.iter().map(|info| &info.id).collect::<Vec<_>>(),
        ids.iter().collect::<Vec<_>>()
    );
    for id in &ids {
        memory.terminate_instance(id).await.unwrap();
    }
    tokio::time::sleep(secs(60)).await;
    let terminated = memory.find_launches(&token(), three).await.unwrap();
    assert_eq!(
        terminated,
        LaunchRecord::Terminated(vec![]),
        "only the tokens are known"
    );
}
