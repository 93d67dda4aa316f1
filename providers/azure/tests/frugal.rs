//! The number of native calls for a fleet under the layers.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::AzureHarness;
use fleetwright_azure::fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceProvisioner as _,
    layer::{LimitPolicy, Stack},
    wait::{self, WaitPolicy},
};
use fleetwright_contract_tests::Harness as _;
use futures_util::future::join_all;

const FLEET: u32 = 500;

fn calls(harness: &AzureHarness) -> u64 {
    harness.emulator().oracle().calls.values().sum()
}

#[tokio::test(flavor = "current_thread")]
async fn five_hundred_machines_need_a_few_lists() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open_with(AzureHarness::launch_config()).await;
    let mut config = harness.config();
    config.launch_token = Some("fleet-1".parse().unwrap());
    let launched = azure
        .launch_instances(&config, NonZeroU32::new(FLEET).unwrap())
        .await;
    let ids: Vec<_> = launched.unwrap().into_iter().map(|info| info.id).collect();
    // One read, two lists, and one creation each.
    assert_eq!(
        harness.call_count("VirtualMachines_CreateOrUpdate"),
        u64::from(FLEET)
    );
    let before = u64::from(FLEET) + 3;
    let watched = harness.call_count("VirtualMachines_ListAll") - 1;
    assert_eq!(calls(&harness) - watched, before);

    // The default rate would spread the terminates over a minute.
    let stack = Stack::default().limit(LimitPolicy::unlimited());
    let azure = stack.wrap(std::sync::Arc::new(azure));
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(200), Duration::from_secs(2));
    let running = wait::for_state(&*azure, &ids, CloudInstanceState::Running, &policy);
    running.await.unwrap();
    // By now the cleanup has observed that the creations have ended.
    tokio::time::sleep(Duration::from_millis(200)).await;

    let before = calls(&harness);
    let described = join_all(ids.iter().map(|id| azure.describe_instance(id))).await;
    for (id, result) in ids.iter().zip(described) {
        assert_eq!(result.unwrap().id, *id);
    }
    let sent = calls(&harness) - before;
    assert!(
        sent <= 5,
        "{sent} calls for {FLEET} concurrent descriptions"
    );

    let before = calls(&harness);
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed.len(), FLEET as usize);
    for info in &listed {
        assert_eq!(info.state, CloudInstanceState::Running);
        assert!(info.private_ip.is_some() && info.public_ip.is_some());
    }
    let (sent, pages) = (calls(&harness) - before, 1);
    assert!(sent <= pages + 3, "{sent} calls for a list of {FLEET}");

    let before = calls(&harness);
    for result in join_all(ids.iter().map(|id| azure.terminate_instance(id))).await {
        result.unwrap();
    }
    let sent = calls(&harness) - before;
    let most = u64::from(FLEET) + 8;
    assert!(sent <= most, "{sent} calls to terminate {FLEET}");
}
