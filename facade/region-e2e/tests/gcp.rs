//! The lifecycle of a server on the emulator of Compute Engine: real sockets, real time, fast transitions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::Zone;
use fleetwright_emulators::gcp::{GcpEmulator, Knobs, Timing};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner, google_cloud_auth::credentials::anonymous,
};

use fleetwright_facade_testkit::{NamePlanner, TestRegion, lifecycle, memory_store};

const WINDOW: Duration = Duration::from_millis(40);

fn emulator() -> GcpEmulator {
    let mut knobs = Knobs::default();
    knobs.timing = Timing::all(Duration::from_millis(20));
    knobs.timing.pending = Duration::from_millis(5);
    knobs.lag.reads = WINDOW;
    knobs.lag.writes = WINDOW;
    GcpEmulator::start(knobs).unwrap()
}

async fn provisioner(emulator: &GcpEmulator) -> GcpProvisioner {
    let zones = ["us-central1-a", "us-central1-b"].map(|zone| Zone::new(zone).unwrap());
    let launch = GcpLaunchConfig::new("fleet-1", zones);
    let mut options = GcpOptions::default();
    options.consistency_window = WINDOW * 2;
    options.poll_interval = Duration::from_millis(5);
    let nobody = anonymous::Builder::new().build();
    let created = GcpProvisioner::new(nobody, Some(&emulator.endpoint()), launch, options).await;
    created.unwrap()
}

fn names() -> NamePlanner {
    let pair = |(name, native): (&str, &str)| (name.to_owned(), native.to_owned());
    let debian = "projects/debian-cloud/global/images/";
    NamePlanner {
        flavors: [("small", "e2-micro"), ("large", "e2-small")]
            .map(pair)
            .into(),
        images: [
            ("debian", &*format!("{debian}family/debian-12")),
            ("rocky", &*format!("{debian}debian-12-bookworm-v20260101")),
        ]
        .map(pair)
        .into(),
    }
}

#[tokio::test]
async fn server_lifecycle_on_compute_engine() {
    let emulator = emulator();
    let cloud = Arc::new(provisioner(&emulator).await);
    let region = TestRegion::with(cloud, memory_store(), names())
        .policy(|policy| policy.tick = Duration::from_millis(100));
    lifecycle::run_server_lifecycle(&region).await;
    let left = emulator.oracle().instances;
    assert!(left.is_empty(), "{left:?}");
}
