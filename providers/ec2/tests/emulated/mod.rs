//! An account on an emulated EC2.
#![allow(clippy::expect_used, clippy::panic, reason = "test helpers may panic")]

mod native_errors;

use std::{collections::BTreeMap, time::Duration};

use fleetwright_contract_tests::{NativeError, Truth, WireFault, WireOp};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region, SdkConfig},
    fleetwright::{
        CloudInstanceState, InstanceId, InstanceInfo, Market, Operation, Tags, async_trait,
    },
};
use fleetwright_emulators::ec2::{
    Action, Ec2, Ec2Emulator, ExternalAction, Knobs, Oracle, OracleInstance, SecurityGroup, Subnet,
};
use fleetwright_provider_testkit::emulated::{
    CONSISTENCY_WINDOW, EmulatedAccount, EmulatedHarness, Fixtures, POLL_INTERVAL, parse_name,
};

/// How long a transition takes, which takes seconds on EC2.
const TRANSITION: Duration = Duration::from_millis(30);

/// How long a stop takes in the contract. Several polls fall into the part of it that is longer than a read may lag, so
/// STATE-01 reads an instance that is stopping.
const STOP: Duration = Duration::from_millis(200);

/// An account on its own emulator.
pub(crate) type Ec2Harness = EmulatedHarness<Ec2Account>;

/// What is particular to EC2.
pub(crate) struct Ec2Account;

#[async_trait]
impl EmulatedAccount for Ec2Account {
    type Cloud = Ec2;
    type Provisioner = Ec2Provisioner;
    type LaunchConfig = Ec2LaunchConfig;
    type Options = Ec2Options;
    type Instance = OracleInstance;

    const FIXTURES: Fixtures = Fixtures {
        backend: "ec2",
        image: "ami-00000000000000001",
        other_image: "ami-00000000000000002",
        unknown_image: "ami-0fffffffffffffff0",
        unknown_type: "t3.unknown",
        instance_type: "t3.micro",
        other_type: "t3.small",
        zone: "us-east-1b",
        network: "subnet-0000000000000000a",
        security_groups: &["sg-0000000000000000a", "sg-0000000000000000b"],
        unknown_id: "i-0fffffffffffffff0",
        // Codes that EC2 does not document are no failures of a launch.
        late_failure_code: "Server.InternalError",
        late_capacity_code: "Server.InsufficientInstanceCapacity",
    };

    fn fast_knobs() -> Knobs {
        let mut knobs = Knobs::default();
        knobs.timing.boot = TRANSITION;
        knobs.timing.stop = TRANSITION;
        knobs.timing.terminate = TRANSITION;
        knobs.timing.image = TRANSITION;
        knobs
    }

    fn adjust_for_contract(knobs: &mut Knobs) {
        knobs.timing.stop = STOP;
        let fixtures = Self::FIXTURES;
        let range = "10.0.9.0/24".parse().expect("a range of addresses");
        knobs
            .subnets
            .push(Subnet::new(fixtures.network, fixtures.zone, range));
        let groups = fixtures.security_groups.iter();
        let groups = groups.map(|id| SecurityGroup::new(*id, *id));
        knobs.security_groups.extend(groups);
    }

    fn launch_config() -> Ec2LaunchConfig {
        Ec2LaunchConfig::new()
    }

    /// In another zone, with another hop limit.
    fn other_launch_config() -> Ec2LaunchConfig {
        let mut launch = Ec2LaunchConfig::new();
        launch.default_subnet = Some(parse_name("subnet-00000000000000002"));
        launch.metadata.hop_limit = 3;
        launch
    }

    fn options(_: &Ec2Emulator, _: bool) -> Ec2Options {
        let mut options = Ec2Options::default();
        options.consistency_window = CONSISTENCY_WINDOW;
        // A launch polls until reads show it, and the sweeps of the kit have a case for each call.
        options.poll_interval = POLL_INTERVAL * 4;
        options.page_size = std::num::NonZeroUsize::new(5).expect("five");
        options
    }

    async fn connect(
        endpoint: &str,
        launch: Ec2LaunchConfig,
        options: Ec2Options,
    ) -> Ec2Provisioner {
        Ec2Provisioner::new(&sdk_config(endpoint), launch, options).expect("valid settings")
    }

    fn secrets() -> Vec<String> {
        vec![SECRET_KEY.to_owned()]
    }

    fn instances(oracle: &Oracle) -> &[OracleInstance] {
        &oracle.instances
    }

    fn native_id(instance: &OracleInstance) -> &str {
        &instance.id
    }

    fn id(instance: &OracleInstance) -> InstanceId {
        parse_name(&instance.id)
    }

    fn holds_machine(instance: &OracleInstance) -> bool {
        instance.holds_machine
    }

    fn truth(instance: &OracleInstance, oracle: &Oracle) -> Option<Truth> {
        let root = instance.volumes.first();
        let mut volumes = oracle.volumes.iter();
        let root = volumes.find(|volume| root == Some(&volume.id));
        Some(Truth {
            info: info(instance),
            user_data: instance.user_data.clone(),
            disk_size_gb: root.map(|volume| volume.gib),
            holds_machine: instance.holds_machine,
            boots: u32::try_from(instance.boots).ok(),
        })
    }

    fn leftovers(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let matches = |tags: &BTreeMap<String, String>| {
            Tags::from_observed(tags.clone()).contains_all(wanted)
        };
        let instances = oracle
            .instances
            .iter()
            .filter(|instance| instance.state != "terminated" && matches(&instance.tags))
            .map(|instance| format!("instance {}", instance.id));
        let volumes = oracle
            .volumes
            .iter()
            .filter(|volume| matches(&volume.tags))
            .map(|volume| format!("volume {}", volume.id));
        let interfaces = oracle
            .network_interfaces
            .iter()
            .filter(|interface| matches(&interface.tags))
            .map(|interface| format!("network interface {}", interface.id));
        instances.chain(volumes).chain(interfaces).collect()
    }

    fn images(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let matches = |tags: &BTreeMap<String, String>| {
            Tags::from_observed(tags.clone()).contains_all(wanted)
        };
        let images = oracle.images.iter();
        let images = images
            .filter(|image| matches(&image.tags))
            .map(|image| format!("image {}", image.id));
        let snapshots = oracle.snapshots.iter();
        let snapshots = snapshots
            .filter(|snapshot| matches(&snapshot.image_tags))
            .map(|snapshot| format!("snapshot {}", snapshot.id));
        images.chain(snapshots).collect()
    }

    fn calls(oracle: &Oracle) -> &BTreeMap<String, u64> {
        &oracle.calls
    }

    /// Describing, listing and looking up are one action.
    fn operations(operation: WireOp, _: &WireFault) -> Vec<Action> {
        match operation {
            WireOp::Any => Vec::new(),
            WireOp::Launch => vec![Action::RunInstances],
            WireOp::Terminate => vec![Action::TerminateInstances],
            WireOp::Stop => vec![Action::StopInstances],
            WireOp::Start => vec![Action::StartInstances],
            WireOp::Describe | WireOp::List | WireOp::FindLaunch => {
                vec![Action::DescribeInstances]
            }
            WireOp::UpdateTags => vec![Action::CreateTags],
        }
    }

    fn native_errors() -> Vec<NativeError> {
        native_errors::all()
    }

    fn native_operations(operation: Operation) -> Vec<Action> {
        if operation == Operation::RebootInstance {
            return vec![Action::RebootInstances];
        }
        if operation == Operation::SnapshotImage {
            return vec![Action::CreateImage];
        }
        Self::operations(WireOp::from(operation), &WireFault::Forbidden)
    }

    fn external_launch(tags: &Tags) -> ExternalAction {
        let pairs = tags.iter();
        ExternalAction::LaunchExternal {
            image: None,
            instance_type: None,
            zone: None,
            count: 1,
            tags: pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    fn external_stop(id: &InstanceId) -> ExternalAction {
        ExternalAction::Stop { id: id.to_string() }
    }

    fn external_termination(id: &InstanceId) -> ExternalAction {
        ExternalAction::Terminate { id: id.to_string() }
    }
}

/// The secret key of every handle. The emulator accepts any.
const SECRET_KEY: &str = "s3cr3t-key-of-the-emulator";

/// Returns the settings of the SDK for an emulator.
pub(crate) fn sdk_config(endpoint: &str) -> SdkConfig {
    let keys = aws_credential_types::Credentials::new("test", SECRET_KEY, None, None, "emulator");
    let keys = aws_credential_types::provider::SharedCredentialsProvider::new(keys);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(keys)
        .build()
}

fn info(instance: &OracleInstance) -> InstanceInfo {
    let mut info = InstanceInfo::new(parse_name(&instance.id), state(&instance.state));
    info.tags = Tags::from_observed(instance.tags.clone());
    info.private_ip = instance.private_ip.map(Into::into);
    info.public_ip = instance.public_ip.map(Into::into);
    info.image = Some(parse_name(&instance.image));
    info.instance_type = Some(parse_name(&instance.instance_type));
    info.placement.zone = Some(parse_name(&instance.zone));
    info.placement.network = Some(parse_name(&instance.subnet));
    let groups = instance.security_groups.iter();
    info.placement.security_groups = groups.map(|group| parse_name(group)).collect();
    info.placement.market = Some(match instance.market {
        fleetwright_emulators::ec2::Market::Spot => Market::Spot,
        fleetwright_emulators::ec2::Market::OnDemand => Market::OnDemand,
    });
    info
}

fn state(native: &str) -> CloudInstanceState {
    match native {
        "pending" => CloudInstanceState::Pending,
        "running" => CloudInstanceState::Running,
        "stopping" => CloudInstanceState::Stopping,
        "stopped" => CloudInstanceState::Stopped,
        "shutting-down" => CloudInstanceState::Terminating,
        "terminated" => CloudInstanceState::Terminated,
        other => panic!("the emulator has no state {other}"),
    }
}
