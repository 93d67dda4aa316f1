//! How many native calls each operation sends in the normal case: no stale read, no failure, and the default options.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use emulated::Ec2Harness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceId, InstanceProvisioner,
    wait::{self, WaitPolicy},
};

/// The native calls since the last look.
struct Counter<'a> {
    harness: &'a Ec2Harness,
    before: BTreeMap<String, u64>,
}

impl<'a> Counter<'a> {
    fn new(harness: &'a Ec2Harness) -> Self {
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

async fn wait_for(ec2: &dyn InstanceProvisioner, ids: &[InstanceId], state: CloudInstanceState) {
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(100), Duration::from_secs(1));
    wait::for_state(ec2, ids, state, &policy).await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn one_instance_needs_the_calls_of_the_sdk_and_the_proofs_of_its_token() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = None;

    let launched = ec2.launch_instance(&config).await.unwrap();
    assert_eq!(counter.take(), calls([("RunInstances", 1)]));
    let ids = [launched.id];
    wait_for(&*ec2, &ids, CloudInstanceState::Running).await;
    counter.take();
    ec2.describe_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("DescribeInstances", 1)]));
    let listed = ec2.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(counter.take(), calls([("DescribeInstances", 1)]));
    ec2.stop_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("StopInstances", 1)]));
    wait_for(&*ec2, &ids, CloudInstanceState::Stopped).await;
    counter.take();
    // The response of a start does not have what the result contains.
    ec2.start_instance(&ids[0]).await.unwrap();
    let expected = calls([("StartInstances", 1), ("DescribeInstances", 1)]);
    assert_eq!(counter.take(), expected);
    wait_for(&*ec2, &ids, CloudInstanceState::Running).await;
    counter.take();
    ec2.terminate_instance(&ids[0]).await.unwrap();
    assert_eq!(counter.take(), calls([("TerminateInstances", 1)]));

    // The client token of EC2 is not enough: decision 0043.
    config.launch_token = Some("one".parse().unwrap());
    ec2.launch_instance(&config).await.unwrap();
    let expected = calls([("DescribeInstances", 2), ("RunInstances", 1)]);
    assert_eq!(counter.take(), expected);
}

#[tokio::test(flavor = "current_thread")]
async fn batch_is_one_launch_and_one_termination_and_its_waits_are_reads() {
    const FLEET: u32 = 500;
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = Some("fleet".parse().unwrap());
    let count = NonZeroU32::new(FLEET).unwrap();
    let launched = ec2.launch_instances(&config, count).await.unwrap();
    let expected = calls([("DescribeInstances", 2), ("RunInstances", 1)]);
    assert_eq!(counter.take(), expected);
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    assert_eq!(ids.len(), FLEET as usize);
    wait_for(&*ec2, &ids, CloudInstanceState::Running).await;
    for (name, _) in counter.take() {
        assert_eq!(name, "DescribeInstances", "a wait only reads");
    }
    for result in ec2.terminate_instances(&ids).await {
        result.unwrap();
    }
    assert_eq!(counter.take(), calls([("TerminateInstances", 1)]));
    wait_for(&*ec2, &ids, CloudInstanceState::Terminated).await;
    for (name, _) in counter.take() {
        assert_eq!(name, "DescribeInstances", "a wait only reads");
    }
}
