//! How many native calls each operation sends in the normal case: no stale read, no failure, and launches that return
//! when Azure accepts them.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use emulated::AzureHarness;
use fleetwright_azure::{
    AzureProvisioner,
    fleetwright::{
        CloudInstanceState, InstanceId, InstanceProvisioner as _,
        wait::{self, WaitPolicy},
    },
};
use fleetwright_contract_tests::Harness as _;

/// The native calls since the last look.
struct Counter<'a> {
    harness: &'a AzureHarness,
    before: BTreeMap<String, u64>,
}

impl<'a> Counter<'a> {
    fn new(harness: &'a AzureHarness) -> Self {
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

/// Opens a handle without the background cleanup, whose lists would be counted too.
async fn open(harness: &AzureHarness) -> AzureProvisioner {
    let mut options = harness.options();
    options.launch_wait = Duration::ZERO;
    options.background_cleanup = false;
    harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await
}

async fn wait_for(azure: &AzureProvisioner, ids: &[InstanceId], state: CloudInstanceState) {
    let policy = WaitPolicy::within(Duration::from_secs(60))
        .delays(Duration::from_millis(100), Duration::from_secs(1));
    wait::for_state(azure, ids, state, &policy).await.unwrap();
}

/// Checks that a wait has only read lists.
fn assert_only_lists(sent: Vec<(String, u64)>) {
    const LISTS: [&str; 4] = [
        "VirtualMachines_ListAll",
        "VirtualMachines_List",
        "NetworkInterfaces_List",
        "PublicIPAddresses_List",
    ];
    for (name, count) in sent {
        assert!(LISTS.contains(&name.as_str()), "a wait sent {count} {name}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn one_machine_needs_the_call_and_a_read_before_each_change() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = open(&harness).await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = None;

    let launched = azure.launch_instance(&config).await.unwrap();
    assert_eq!(
        counter.take(),
        calls([("VirtualMachines_CreateOrUpdate", 1)])
    );
    let ids = [launched.id];
    wait_for(&azure, &ids, CloudInstanceState::Running).await;
    counter.take();
    azure.describe_instance(&ids[0]).await.unwrap();
    let expected = calls([("NetworkInterfaces_Get", 1), ("VirtualMachines_Get", 1)]);
    assert_eq!(counter.take(), expected);
    azure.stop_instance(&ids[0]).await.unwrap();
    let expected = calls([
        ("VirtualMachines_Deallocate", 1),
        ("VirtualMachines_Get", 1),
    ]);
    assert_eq!(counter.take(), expected);
    wait_for(&azure, &ids, CloudInstanceState::Stopped).await;
    counter.take();
    azure.start_instance(&ids[0]).await.unwrap();
    let expected = calls([
        ("NetworkInterfaces_Get", 1),
        ("VirtualMachines_Get", 2),
        ("VirtualMachines_Start", 1),
    ]);
    assert_eq!(counter.take(), expected);
    wait_for(&azure, &ids, CloudInstanceState::Running).await;
    counter.take();
    azure.terminate_instance(&ids[0]).await.unwrap();
    let expected = calls([("VirtualMachines_Delete", 1), ("VirtualMachines_Get", 1)]);
    assert_eq!(counter.take(), expected);

    config.launch_token = Some("one".parse().unwrap());
    azure.launch_instance(&config).await.unwrap();
    let expected = calls([
        ("VirtualMachines_CreateOrUpdate", 1),
        ("VirtualMachines_Get", 1),
    ]);
    assert_eq!(counter.take(), expected);
}

#[tokio::test(flavor = "current_thread")]
async fn batch_is_one_creation_and_one_deletion_each_and_its_waits_are_lists() {
    const FLEET: u32 = 200;
    // All machines run at the first poll: a poll for the last few reads each with GETs.
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.boot = Duration::ZERO);
    let azure = open(&harness).await;
    let mut counter = Counter::new(&harness);
    let mut config = harness.config();
    config.launch_token = Some("fleet".parse().unwrap());
    let count = NonZeroU32::new(FLEET).unwrap();
    let launched = azure.launch_instances(&config, count).await.unwrap();
    let expected = calls([
        ("VirtualMachines_CreateOrUpdate", u64::from(FLEET)),
        ("VirtualMachines_Get", 1),
        ("VirtualMachines_List", 1),
        ("VirtualMachines_ListAll", 1),
    ]);
    assert_eq!(counter.take(), expected);
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    assert_eq!(ids.len(), FLEET as usize);
    wait_for(&azure, &ids, CloudInstanceState::Running).await;
    assert_only_lists(counter.take());
    // Azure has no call that deletes several machines.
    for result in azure.terminate_instances(&ids).await {
        result.unwrap();
    }
    let expected = calls([
        ("VirtualMachines_Delete", u64::from(FLEET)),
        ("VirtualMachines_ListAll", 1),
    ]);
    assert_eq!(counter.take(), expected);
    // A machine that was created within the consistency window is not found, and that is not its end.
    tokio::time::sleep(harness.options().consistency_window).await;
    wait_for(&azure, &ids, CloudInstanceState::Terminated).await;
    assert_only_lists(counter.take());
}
