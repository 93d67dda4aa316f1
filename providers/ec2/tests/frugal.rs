//! The number of native calls for a fleet under the layers.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

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
