//! How many native calls each operation sends in the normal case: no stale read, no failure, the default options.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use emulated::{GcpHarness, PROJECT, ZONES};
use fleetwright_contract_tests::Harness as _;
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner,
    fleetwright::{
        CloudInstanceState, InstanceId, InstanceProvisioner as _,
        wait::{self, WaitPolicy},
    },
};

/// The native calls since the last look.
struct Counter<'a> {
    harness: &'a GcpHarness,
    before: BTreeMap<String, u64>,
}

impl<'a> Counter<'a> {
    fn new(harness: &'a GcpHarness) -> Self {
        let before = harness.emulator().oracle().calls;
        Self { harness, before }
    }

    /// Returns the calls by name, and begins again.
    fn take(&mut self) -> Vec<(String, u64)> {
        let now = self.harness.emulator().oracle().calls;
        let before = std::mem::replace(&mut self.before, now.clone());
        let since = now.into_iter().map(|(name, count)| {
            let sent = count - before.get(&name).copied().unwrap_or_default();
            (name, sent)
        });
        since.filter(|(_, sent)| *sent > 0).collect()
    }
}

/// Writes expected calls.
fn calls<const N: usize>(expected: [(&str, u64); N]) -> Vec<(String, u64)> {
    let expected: BTreeMap<_, _> = expected.into();
    let owned = expected.into_iter();
    owned.map(|(name, sent)| (name.to_owned(), sent)).collect()
}

async fn open(harness: &GcpHarness, zones: usize) -> GcpProvisioner {
    let mut options = GcpOptions::default();
    let for_tests = harness.options();
    options.consistency_window = for_tests.consistency_window;
    options.poll_interval = for_tests.poll_interval;
    let zones = ZONES[..zones].iter().map(|zone| zone.parse().unwrap());
    let launch = GcpLaunchConfig::new(PROJECT, zones);
    harness.open_with_options(launch, options).await
}

async fn wait_for(gcp: &GcpProvisioner, ids: &[InstanceId], state: CloudInstanceState) {
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(100), Duration::from_secs(1));
    wait::for_state(gcp, ids, state, &policy).await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn one_instance_needs_the_calls_of_the_sdk_and_the_proofs_of_its_token() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = open(&harness, 1).await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = None;

    let launched = gcp.launch_instance(&config).await.unwrap();
    assert_eq!(counter.take(), calls([("instances.insert", 1)]));
    let ids = [launched.id];
    wait_for(&gcp, &ids, CloudInstanceState::Running).await;
    counter.take();
    gcp.describe_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("instances.get", 1)]));
    gcp.stop_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("instances.stop", 1)]));
    wait_for(&gcp, &ids, CloudInstanceState::Stopped).await;
    counter.take();
    // The response of a start does not have what the result contains.
    gcp.start_instance(&ids[0]).await.unwrap();
    let expected = calls([("instances.start", 1), ("instances.get", 1)]);
    assert_eq!(counter.take(), expected);
    wait_for(&gcp, &ids, CloudInstanceState::Running).await;
    counter.take();
    gcp.terminate_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("instances.delete", 1)]));

    // One zone: what is left of a batch of the token has other names.
    config.launch_token = Some("one".parse().unwrap());
    gcp.launch_instance(&config).await.unwrap();
    let expected = calls([("instances.list", 1), ("instances.insert", 1)]);
    assert_eq!(counter.take(), expected);
    // Several zones: a name is unique in one of them only.
    let gcp = open(&harness, 2).await;
    counter.take();
    config.launch_token = Some("two".parse().unwrap());
    gcp.launch_instance(&config).await.unwrap();
    let expected = calls([("instances.aggregatedList", 2), ("instances.insert", 1)]);
    assert_eq!(counter.take(), expected);
}

#[tokio::test(flavor = "current_thread")]
async fn batch_is_one_bulk_insert_and_its_waits_are_lists() {
    const FLEET: u32 = 500;
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = open(&harness, 1).await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = Some("fleet".parse().unwrap());
    let count = NonZeroU32::new(FLEET).unwrap();
    let launched = gcp.launch_instances(&config, count).await.unwrap();
    let expected = calls([
        ("instances.bulkInsert", 1),
        ("instances.insert", 1),
        ("instances.list", 2),
    ]);
    assert_eq!(counter.take(), expected);
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    assert_eq!(ids.len(), FLEET as usize);
    let replay = gcp.launch_instances(&config, count).await.unwrap();
    assert_eq!(counter.take(), calls([("instances.list", 1)]));
    assert_eq!(replay.len(), ids.len());
    wait_for(&gcp, &ids, CloudInstanceState::Running).await;
    for (name, _) in counter.take() {
        assert_eq!(name, "instances.list", "a wait only lists");
    }
    tokio::time::sleep(harness.options().consistency_window).await;
    for result in gcp.terminate_instances(&ids).await {
        result.unwrap();
    }
    // Compute Engine has no call that deletes several instances.
    assert_eq!(
        counter.take(),
        calls([("instances.delete", u64::from(FLEET))])
    );
    wait_for(&gcp, &ids, CloudInstanceState::Terminated).await;
    for (name, _) in counter.take() {
        assert_eq!(name, "instances.list", "a wait only lists");
    }

    config.launch_token = None;
    let ten = NonZeroU32::new(10).unwrap();
    assert_eq!(gcp.launch_instances(&config, ten).await.unwrap().len(), 10);
    let expected = calls([("instances.bulkInsert", 1), ("instances.list", 1)]);
    assert_eq!(counter.take(), expected);
}
