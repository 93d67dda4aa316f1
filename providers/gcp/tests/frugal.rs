//! The number of native calls for a fleet under the layers.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::GcpHarness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_gcp::{
    GcpOptions,
    fleetwright::{
        CloudInstanceState, InstanceFilter, InstanceProvisioner as _,
        layer::{LimitPolicy, Stack},
        wait::{self, WaitPolicy},
    },
};
use futures_util::future::join_all;

const FLEET: u32 = 500;

fn calls(harness: &GcpHarness) -> u64 {
    harness.emulator().oracle().calls.values().sum()
}

#[tokio::test(flavor = "current_thread")]
async fn five_hundred_instances_need_a_few_lists() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.page_size = GcpOptions::default().page_size;
    let gcp = harness
        .open_with_options(GcpHarness::launch_config(), options)
        .await;
    let mut config = harness.config();
    config.launch_token = Some("fleet-1".parse().unwrap());
    let launched = gcp
        .launch_instances(&config, NonZeroU32::new(FLEET).unwrap())
        .await;
    let ids: Vec<_> = launched.unwrap().into_iter().map(|info| info.id).collect();
    // A list before and after, an insert, a bulk insert and the list of what it created.
    assert_eq!(calls(&harness), 5);

    // The default rate would spread the terminates over a minute.
    let stack = Stack::default().limit(LimitPolicy::unlimited());
    let gcp = stack.wrap(std::sync::Arc::new(gcp));
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(200), Duration::from_secs(2));
    let running = wait::for_state(&*gcp, &ids, CloudInstanceState::Running, &policy);
    running.await.unwrap();

    let before = calls(&harness);
    let described = join_all(ids.iter().map(|id| gcp.describe_instance(id))).await;
    for (id, result) in ids.iter().zip(described) {
        assert_eq!(result.unwrap().id, *id);
    }
    let sent = calls(&harness) - before;
    assert!(
        sent <= 4,
        "{sent} calls for {FLEET} concurrent descriptions"
    );

    let before = calls(&harness);
    assert_eq!(
        gcp.list_instances(&InstanceFilter::new())
            .await
            .unwrap()
            .len(),
        FLEET as usize
    );
    let sent = calls(&harness) - before;
    assert!(sent <= 2, "{sent} calls for a list of {FLEET}");

    let before = calls(&harness);
    for result in join_all(ids.iter().map(|id| gcp.terminate_instance(id))).await {
        result.unwrap();
    }
    let sent = calls(&harness) - before;
    let most = u64::from(FLEET) + 8;
    assert!(sent <= most, "{sent} calls to terminate {FLEET}");
}
