//! The number of native calls for a fleet under the layers.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use emulated::Ec2Harness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState,
    layer::Stack,
    wait::{self, WaitPolicy},
};
use futures_util::future::join_all;

#[tokio::test(flavor = "current_thread")]
async fn five_hundred_instances_need_at_most_twelve_calls() {
    const FLEET: u32 = 500;
    let harness = Ec2Harness::new();
    let ec2 = Stack::default().wrap(harness.open().await);
    let mut config = harness.config();
    config.launch_token = Some("fleet-1".parse().unwrap());

    let launched = ec2
        .launch_instances(&config, NonZeroU32::new(FLEET).unwrap())
        .await
        .unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(200), Duration::from_secs(2));
    wait::for_state(&*ec2, &ids, CloudInstanceState::Running, &policy)
        .await
        .unwrap();
    for (id, result) in ids
        .iter()
        .zip(join_all(ids.iter().map(|id| ec2.describe_instance(id))).await)
    {
        assert_eq!(result.unwrap().id, *id);
    }
    for result in join_all(ids.iter().map(|id| ec2.terminate_instance(id))).await {
        result.unwrap();
    }

    let calls = harness.emulator().oracle().calls;
    let sent: u64 = calls.values().sum();
    assert!(sent <= 12, "{sent} calls: {calls:?}");
    assert_eq!(calls["RunInstances"], 1);
}

/// A lone launch with a token reads it before and after, because EC2's own client token covers neither another zone nor other
/// options; a replay reads it once.
#[tokio::test]
async fn lone_launch_needs_three_calls_with_a_token_and_one_without() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let count = |name: &str| harness.call_count(name);
    let counts = || (count("RunInstances"), count("DescribeInstances"));
    let mut config = harness.config();
    ec2.launch_instance(&config).await.unwrap();
    assert_eq!(counts(), (1, 0));
    config.launch_token = Some("t-1".parse().unwrap());
    let launched = ec2.launch_instance(&config).await.unwrap();
    assert_eq!(counts(), (2, 2));
    let replayed = ec2.launch_instance(&config).await.unwrap();
    assert_eq!((counts(), replayed.id), ((2, 3), launched.id));
}

/// Every launch has its own look-ups, but 200 of them are one call.
#[tokio::test]
async fn concurrent_launches_share_their_look_ups() {
    const LAUNCHES: usize = 200;
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let configs: Vec<_> = (0..LAUNCHES)
        .map(|number| {
            let mut config = harness.config();
            config.launch_token = Some(format!("t-{number}").parse().unwrap());
            config
        })
        .collect();
    let launched = join_all(configs.iter().map(|config| ec2.launch_instance(config))).await;
    let launched: Vec<_> = launched.into_iter().map(|one| one.unwrap().id).collect();
    assert_eq!(launched.iter().collect::<BTreeSet<_>>().len(), LAUNCHES);
    assert_eq!(harness.call_count("RunInstances"), LAUNCHES as u64);
    let reads = harness.call_count("DescribeInstances");
    assert!(reads <= 50, "{reads} reads");
    // Each token has its own instance.
    let replayed = join_all(configs.iter().map(|config| ec2.launch_instance(config))).await;
    let replayed: Vec<_> = replayed.into_iter().map(|one| one.unwrap().id).collect();
    assert_eq!(replayed, launched);
    assert_eq!(harness.call_count("RunInstances"), LAUNCHES as u64);
}
