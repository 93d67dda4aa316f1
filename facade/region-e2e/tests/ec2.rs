//! The lifecycle of a server on the emulator of EC2: real sockets, real time, fast transitions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region as AwsRegion, SdkConfig},
};
use fleetwright_emulators::ec2::{Ec2Emulator, Knobs};

use fleetwright_facade_testkit::{NamePlanner, TestRegion, lifecycle, memory_store};

const WINDOW: Duration = Duration::from_millis(40);

fn emulator() -> Ec2Emulator {
    let transition = Duration::from_millis(30);
    let mut knobs = Knobs::default();
    knobs.timing.boot = transition;
    knobs.timing.stop = transition;
    knobs.timing.terminate = transition;
    knobs.lag.reads = WINDOW;
    knobs.lag.writes = WINDOW;
    Ec2Emulator::start(knobs).unwrap()
}

fn provisioner(emulator: &Ec2Emulator) -> Ec2Provisioner {
    let keys = Credentials::new("test", "test", None, None, "emulator");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(AwsRegion::new("us-east-1"))
        .endpoint_url(emulator.endpoint())
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .build();
    let mut options = Ec2Options::default();
    options.consistency_window = WINDOW * 2;
    options.poll_interval = Duration::from_millis(5);
    Ec2Provisioner::new(&config, Ec2LaunchConfig::new(), options).unwrap()
}

fn names() -> NamePlanner {
    let pair = |(name, native): (&str, &str)| (name.to_owned(), native.to_owned());
    NamePlanner {
        flavors: [("small", "t3.micro"), ("large", "t3.small")]
            .map(pair)
            .into(),
        images: [
            ("debian", "ami-00000000000000001"),
            ("rocky", "ami-00000000000000002"),
        ]
        .map(pair)
        .into(),
    }
}

#[tokio::test]
async fn server_lifecycle_on_ec2() {
    let emulator = emulator();
    let cloud = Arc::new(provisioner(&emulator));
    let region = TestRegion::with(cloud, memory_store(), names())
        .policy(|policy| policy.tick = Duration::from_millis(100));
    lifecycle::run_server_lifecycle(&region).await;
    let left = emulator.oracle().instances;
    let left: Vec<_> = left
        .iter()
        .filter(|truth| truth.state != "terminated")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
