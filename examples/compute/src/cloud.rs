//! The example's EC2: an emulator on loopback, and a provider that uses it.

use std::{io, time::Duration};

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use fleetwright::InvalidValue;
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region, SdkConfig},
};
use fleetwright_emulators::ec2::{Ec2Emulator, Knobs, OracleInstance};
use fleetwright_region::{controller::tags, server::ServerId};

/// The read lag of the emulator.
const LAG: Duration = Duration::from_millis(40);
/// How long a machine takes to boot, and to terminate.
const TRANSITION: Duration = Duration::from_millis(100);

/// Starts an EC2 whose machines boot and terminate fast, and whose reads lag as the real one's do.
pub(crate) fn start() -> io::Result<Ec2Emulator> {
    let mut knobs = Knobs::default();
    knobs.timing.boot = TRANSITION;
    knobs.timing.terminate = TRANSITION;
    knobs.lag.reads = LAG;
    knobs.lag.writes = LAG;
    Ec2Emulator::start(knobs)
}

/// Sets the boot time of machines that are launched from now on.
pub(crate) fn boot_within(emulator: &Ec2Emulator, boot: Option<Duration>) {
    let mut knobs = emulator.knobs();
    knobs.timing.boot = boot.unwrap_or(TRANSITION);
    emulator.set_knobs(knobs);
}

/// A provider that calls the emulator, with the key that emulators accept.
pub(crate) fn provisioner(endpoint: &str) -> Result<Ec2Provisioner, InvalidValue> {
    let key = Credentials::new("test", "test", None, None, "emulator");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(key))
        .build();
    let mut options = Ec2Options::default();
    options.consistency_window = LAG * 2;
    options.poll_interval = Duration::from_millis(10);
    Ec2Provisioner::new(&config, Ec2LaunchConfig::new(), options)
}

/// Every machine that was ever launched for a server, oldest first, from the emulator's oracle.
pub(crate) fn machines(emulator: &Ec2Emulator, server: ServerId) -> Vec<OracleInstance> {
    let server = server.to_string();
    let mut all = emulator.oracle().instances;
    all.retain(|machine| machine.tags.get(tags::SERVER) == Some(&server));
    all
}

/// Whether a machine is neither terminated nor terminating.
pub(crate) fn is_alive(machine: &OracleInstance) -> bool {
    machine.state != "terminated" && machine.state != "shutting-down"
}

/// The number of machines that are not terminated, volumes and network interfaces.
pub(crate) fn leftovers(emulator: &Ec2Emulator) -> usize {
    let oracle = emulator.oracle();
    let machines = oracle.instances.iter();
    let alive = machines.filter(|machine| machine.state != "terminated");
    alive.count() + oracle.volumes.len() + oracle.network_interfaces.len()
}
