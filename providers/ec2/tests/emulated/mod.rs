//! An emulated EC2 as a harness: real sockets, real time, fast transitions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "test helpers may panic, and no test binary uses all of them"
)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, Oracle, Truth, WireFault, WireOp,
};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{BehaviorVersion, Region, SdkConfig},
    fleetwright::{
        CloudInstanceState, ImageId, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner,
        InstanceType, Market, Scope, Tags, Zone, async_trait,
    },
};
use fleetwright_emulators::ec2::{
    Action, Capacity, Ec2Emulator, ExternalAction, Knobs, OracleInstance,
};
use fleetwright_provider_testkit::{EmulatorFaults, broken_responses::EmulatedHarness};

/// How long the emulator takes for what EC2 takes seconds for.
const TRANSITION: Duration = Duration::from_millis(30);

/// For how long its reads may lag.
const WINDOW: Duration = Duration::from_millis(40);

/// One account on an emulator of its own.
pub(crate) struct Ec2Harness {
    emulator: Arc<Ec2Emulator>,
}

impl Ec2Harness {
    pub(crate) fn new() -> Self {
        Self::with(|knobs| {
            knobs.lag.reads = WINDOW;
            knobs.lag.writes = WINDOW;
        })
    }

    /// An account with fast transitions, no lag, and knobs that `turn` has turned.
    pub(crate) fn with(turn: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        knobs.timing.boot = TRANSITION;
        knobs.timing.stop = TRANSITION;
        knobs.timing.terminate = TRANSITION;
        knobs.timing.image = TRANSITION;
        turn(&mut knobs);
        let emulator = Ec2Emulator::start(knobs).expect("a free port");
        Self {
            emulator: Arc::new(emulator),
        }
    }

    pub(crate) fn emulator(&self) -> &Ec2Emulator {
        &self.emulator
    }

    /// A handle that launches as `launch` says.
    pub(crate) fn launching(&self, launch: Ec2LaunchConfig) -> Ec2Provisioner {
        launching_at(&self.emulator.endpoint(), launch)
    }

    /// The latest call of an action, as it came over the wire.
    pub(crate) fn latest(&self, action: &str) -> BTreeMap<String, String> {
        let calls = self.emulator.calls();
        let mut of_it = calls
            .into_iter()
            .rev()
            .filter(|call| call.operation == action);
        of_it.next().expect("a call of it").parameters
    }
}

/// A handle of the account at an endpoint.
pub(crate) fn launching_at(endpoint: &str, launch: Ec2LaunchConfig) -> Ec2Provisioner {
    let mut options = Ec2Options::default();
    options.consistency_window = WINDOW * 2;
    options.poll_interval = Duration::from_millis(5);
    options.page_size = std::num::NonZeroUsize::new(5).expect("five");
    let made = Ec2Provisioner::new(&sdk_config(endpoint), launch, options);
    made.expect("a launch config without a mistake")
}

fn sdk_config(endpoint: &str) -> SdkConfig {
    let keys = aws_credential_types::Credentials::new("test", "test", None, None, "emulator");
    let keys = aws_credential_types::provider::SharedCredentialsProvider::new(keys);
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(endpoint)
        .credentials_provider(keys)
        .build()
}

fn name<T: for<'a> TryFrom<&'a str>>(text: &str) -> T {
    T::try_from(text).unwrap_or_else(|_| panic!("{text} is no name"))
}

#[async_trait]
impl Harness for Ec2Harness {
    fn name(&self) -> String {
        "ec2".to_owned()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.launching(Ec2LaunchConfig::new()))
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(name("ami-00000000000000001"), name("t3.micro"))
    }

    fn unknown_id(&self) -> InstanceId {
        name("i-0fffffffffffffff0")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(name("ami-0fffffffffffffff0"))
    }

    fn other_image(&self) -> Option<ImageId> {
        Some(name("ami-00000000000000002"))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(name("t3.small"))
    }

    fn zone(&self) -> Option<Zone> {
        Some(name("us-east-1b"))
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(Account(Arc::clone(&self.emulator))))
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        Some(Arc::new(EmulatorFaults::new(
            Arc::clone(&self.emulator),
            actions,
        )))
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        Some(Arc::new(Account(Arc::clone(&self.emulator))))
    }
}

impl EmulatedHarness for Ec2Harness {
    type Cloud = fleetwright_emulators::ec2::Ec2;

    fn emulator(&self) -> &fleetwright_emulators::Emulator<Self::Cloud> {
        &self.emulator
    }
}

/// The emulator past the wire.
struct Account(Arc<Ec2Emulator>);

fn has(tags: &BTreeMap<String, String>, wanted: &Tags) -> bool {
    wanted
        .iter()
        .all(|(key, value)| tags.get(key).is_some_and(|found| found == value))
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

fn info(truth: &OracleInstance) -> InstanceInfo {
    let mut info = InstanceInfo::new(name(&truth.id), state(&truth.state));
    info.tags = Tags::from_observed(truth.tags.clone());
    info.private_ip = truth.private_ip.map(Into::into);
    info.public_ip = truth.public_ip.map(Into::into);
    info.image = Some(name(&truth.image));
    info.instance_type = Some(name(&truth.instance_type));
    info.placement.zone = Some(name(&truth.zone));
    info.placement.market = Some(match truth.market {
        fleetwright_emulators::ec2::Market::Spot => Market::Spot,
        _ => Market::OnDemand,
    });
    info
}

#[async_trait]
impl Oracle for Account {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let oracle = self.0.oracle();
        let ours = oracle
            .instances
            .iter()
            .filter(|truth| has(&truth.tags, tags));
        ours.map(|truth| {
            let root = oracle
                .volumes
                .iter()
                .find(|volume| truth.volumes.first() == Some(&volume.id));
            Truth {
                info: info(truth),
                user_data: truth.user_data.clone(),
                disk_size_gb: root.map(|volume| volume.gib),
                holds_machine: truth.holds_machine,
                boots: u32::try_from(truth.boots).ok(),
            }
        })
        .collect()
    }

    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let oracle = self.0.oracle();
        let alive = |truth: &&OracleInstance| truth.state != "terminated" && has(&truth.tags, tags);
        let instances = oracle
            .instances
            .iter()
            .filter(alive)
            .map(|truth| format!("instance {}", truth.id));
        let volumes = oracle
            .volumes
            .iter()
            .filter(|volume| has(&volume.tags, tags));
        let cards = oracle
            .network_interfaces
            .iter()
            .filter(|card| has(&card.tags, tags));
        instances
            .chain(volumes.map(|volume| format!("volume {}", volume.id)))
            .chain(cards.map(|card| format!("network interface {}", card.id)))
            .collect()
    }

    async fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
}

/// What a call of the kit's is to EC2. Describing, listing and looking up are one action.
fn actions(operation: WireOp, _: &WireFault) -> Vec<Action> {
    match operation {
        WireOp::Any => Vec::new(),
        WireOp::Launch => vec![Action::RunInstances],
        WireOp::Terminate => vec![Action::TerminateInstances],
        WireOp::Stop => vec![Action::StopInstances],
        WireOp::Start => vec![Action::StartInstances],
        WireOp::Describe | WireOp::List | WireOp::FindLaunch => vec![Action::DescribeInstances],
        WireOp::UpdateTags => vec![Action::CreateTags],
    }
}

#[async_trait]
impl ExternalActor for Account {
    async fn launch(&self, tags: Tags) -> InstanceId {
        let tags = tags
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let launch = ExternalAction::LaunchExternal {
            image: None,
            instance_type: None,
            zone: None,
            count: 1,
            tags,
        };
        let made = self.0.perform_external(launch).expect("an external launch");
        name(&made[0])
    }

    async fn stop(&self, id: &InstanceId) {
        // Other people are refused what the state does not allow, like everybody.
        let _ = self
            .0
            .perform_external(ExternalAction::Stop { id: id.to_string() });
    }

    async fn terminate(&self, id: &InstanceId) {
        let _ = self
            .0
            .perform_external(ExternalAction::Terminate { id: id.to_string() });
    }

    async fn cut_off(&self, _: &InstanceId) -> Option<Scope> {
        None
    }

    async fn reconnect(&self) {
        let mut knobs = self.0.knobs();
        knobs.capacity.clear();
        self.0.set_knobs(knobs);
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let held = self
            .0
            .oracle()
            .instances
            .iter()
            .filter(|truth| truth.holds_machine)
            .count() as u64;
        let mut knobs = self.0.knobs();
        knobs.capacity = vec![Capacity::of(held + count)];
        self.0.set_knobs(knobs);
        true
    }
}
