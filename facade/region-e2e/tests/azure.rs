//! The lifecycle of a server on the emulator of Azure: real sockets, real time, fast transitions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::NetworkId;
use fleetwright_azure::{AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner};
use fleetwright_emulators::azure::{AzureEmulator, Knobs, Timing};

use fleetwright_facade_testkit::{NamePlanner, TestRegion, lifecycle, memory_store};

const WINDOW: Duration = Duration::from_millis(40);

fn emulator() -> AzureEmulator {
    let mut knobs = Knobs::default();
    knobs.timing = Timing::all(Duration::from_millis(20));
    knobs.lag.reads = WINDOW;
    knobs.lag.writes = WINDOW;
    AzureEmulator::start(knobs).unwrap()
}

fn provisioner(emulator: &AzureEmulator) -> AzureProvisioner {
    let subnet = NetworkId::new("vnet/default").unwrap();
    let subscription = "00000000-0000-0000-0000-00000000000a";
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright";
    let launch = AzureLaunchConfig::new(subscription, "rg", "eastus", subnet, key);
    let mut options = AzureOptions::default();
    options.endpoint = emulator.endpoint();
    options.consistency_window = WINDOW * 2;
    options.poll_interval = Duration::from_millis(5);
    AzureProvisioner::new(AzureCredentials::token("x"), launch, options).unwrap()
}

fn names() -> NamePlanner {
    let pair = |(name, native): (&str, &str)| (name.to_owned(), native.to_owned());
    let ubuntu = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:";
    NamePlanner {
        flavors: [("small", "Standard_B1s"), ("large", "Standard_B2s")]
            .map(pair)
            .into(),
        images: [
            ("debian", &*format!("{ubuntu}latest")),
            ("rocky", &*format!("{ubuntu}22.04.202601010")),
        ]
        .map(pair)
        .into(),
    }
}

#[tokio::test]
async fn server_lifecycle_on_azure() {
    let emulator = emulator();
    let cloud = Arc::new(provisioner(&emulator));
    let region = TestRegion::with(cloud, memory_store(), names())
        .policy(|policy| policy.tick = Duration::from_millis(100));
    lifecycle::run_server_lifecycle(&region).await;
    let left = emulator.oracle();
    assert!(left.vms.is_empty(), "{:?}", left.vms);
    let parts = [left.nics.len(), left.disks.len(), left.public_ips.len()];
    assert_eq!(parts, [0; 3]);
}
