//! An emulated Azure as a harness: real sockets, real time, fast transitions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "test helpers may panic, and no test binary uses all of them"
)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_azure::{
    AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner,
    fleetwright::{
        CloudInstanceState, ImageId, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner,
        InstanceType, Market, Scope, Tags, Zone, async_trait,
    },
};
use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, Oracle, Truth, WireFault, WireOp,
};
use fleetwright_emulators::azure::{
    AzureEmulator, CallRecord, Capacity, ExternalAction, Knobs, Market as NativeMarket, Operation,
    OracleVm, Timing,
};
use fleetwright_provider_testkit::{EmulatorFaults, broken_responses::EmulatedHarness};
use uuid::Uuid;

/// How long the emulator takes for what Azure takes seconds for.
const TRANSITION: Duration = Duration::from_millis(20);

/// For how long its reads may lag.
const WINDOW: Duration = Duration::from_millis(40);

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
pub(crate) const GROUP: &str = "rg";
pub(crate) const IMAGE: &str = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";
pub(crate) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright fleet";
pub(crate) const TOKEN: &str = "hush-this-is-a-token";

/// One resource group on an emulator of its own.
pub(crate) struct AzureHarness {
    emulator: Arc<AzureEmulator>,
    launch_wait: Duration,
}

/// A handle of the group at another endpoint.
pub(crate) fn launching_at(endpoint: &str, mut options: AzureOptions) -> AzureProvisioner {
    endpoint.clone_into(&mut options.endpoint);
    let launch = AzureHarness::launch_config();
    let made = AzureProvisioner::new(AzureCredentials::token(TOKEN), launch, options);
    made.expect("a launch config without a mistake")
}

impl AzureHarness {
    /// A group whose reads lag, and whose launches answer at once.
    pub(crate) fn new() -> Self {
        Self::with(|knobs| {
            knobs.lag.reads = WINDOW;
            knobs.lag.writes = WINDOW;
            knobs.page_size = std::num::NonZeroU32::new(5).expect("five");
        })
    }

    /// A group with fast transitions, no lag, and knobs that `turn` has turned.
    pub(crate) fn with(turn: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        knobs.timing = Timing::all(TRANSITION);
        knobs.timing.update = Duration::ZERO;
        knobs.timing.deleted_retention = TRANSITION;
        turn(&mut knobs);
        let emulator = AzureEmulator::start(knobs).expect("a free port");
        Self {
            emulator: Arc::new(emulator),
            launch_wait: Duration::ZERO,
        }
    }

    /// The same group, whose launches wait for their operation as they do unless told otherwise.
    pub(crate) fn patient(mut self) -> Self {
        self.launch_wait = AzureOptions::default().launch_wait;
        self
    }

    pub(crate) fn emulator(&self) -> &AzureEmulator {
        &self.emulator
    }

    pub(crate) fn launch_config() -> AzureLaunchConfig {
        AzureLaunchConfig::new(SUBSCRIPTION, GROUP, "eastus", name("vnet/default"), KEY)
    }

    pub(crate) fn options(&self) -> AzureOptions {
        let mut options = AzureOptions::default();
        options.endpoint = self.emulator.endpoint();
        options.consistency_window = WINDOW * 2;
        options.poll_interval = Duration::from_millis(5);
        options.launch_wait = self.launch_wait;
        let size = self.emulator.knobs().page_size.get() as usize;
        options.page_size = std::num::NonZeroUsize::new(size).expect("a page holds something");
        options
    }

    /// A handle that launches as `launch` says.
    pub(crate) fn launching(&self, launch: AzureLaunchConfig) -> AzureProvisioner {
        self.behaving(launch, self.options())
    }

    /// A handle that launches as `launch` and behaves as `options` say.
    pub(crate) fn behaving(
        &self,
        launch: AzureLaunchConfig,
        options: AzureOptions,
    ) -> AzureProvisioner {
        let made = AzureProvisioner::new(AzureCredentials::token(TOKEN), launch, options);
        made.expect("a launch config without a mistake")
    }

    /// The latest call of an operation, as it came over the wire.
    pub(crate) fn latest(&self, operation: &str) -> CallRecord {
        let calls = self.emulator.calls();
        let mut of_it = calls
            .into_iter()
            .rev()
            .filter(|call| call.operation == operation);
        of_it.next().expect("a call of it")
    }

    /// How many calls of an operation there were.
    pub(crate) fn calls_of(&self, operation: &str) -> u64 {
        let calls = self.emulator.oracle().calls;
        calls.get(operation).copied().unwrap_or_default()
    }

    /// The one machine that there is.
    pub(crate) fn only_vm(&self) -> OracleVm {
        let mut all = self.emulator.oracle().vms;
        assert_eq!(all.len(), 1, "one machine is expected: {all:?}");
        all.remove(0)
    }

    /// The truth about a machine.
    pub(crate) fn vm_of(&self, id: &InstanceId) -> Option<OracleVm> {
        let path = path_of(id);
        let all = self.emulator.oracle().vms;
        all.into_iter().find(|vm| vm.id.eq_ignore_ascii_case(&path))
    }
}

pub(crate) fn name<T: for<'a> TryFrom<&'a str>>(text: &str) -> T {
    T::try_from(text).unwrap_or_else(|_| panic!("{text} is no name"))
}

/// The resource id in an id.
pub(crate) fn path_of(id: &InstanceId) -> String {
    let text = id.as_str().trim_start_matches("azure://");
    text.split('#').next().unwrap_or_default().to_owned()
}

#[async_trait]
impl Harness for AzureHarness {
    fn name(&self) -> String {
        "azure".to_owned()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.launching(Self::launch_config()))
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(name(IMAGE), name("Standard_B1s"))
    }

    fn unknown_id(&self) -> InstanceId {
        name(&format!(
            "azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/\
             fw-never-launched#00000000-0000-0000-0000-000000000001.1790000000000.00000000"
        ))
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(name(
            "Canonical:0001-com-ubuntu-server-jammy:nothing:latest",
        ))
    }

    fn other_image(&self) -> Option<ImageId> {
        Some(name(
            "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:22.04.202601010",
        ))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(name("Standard_B2s"))
    }

    fn zone(&self) -> Option<Zone> {
        Some(name("2"))
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(Group(Arc::clone(&self.emulator))))
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        Some(Arc::new(EmulatorFaults::new(
            Arc::clone(&self.emulator),
            operations,
        )))
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        Some(Arc::new(Group(Arc::clone(&self.emulator))))
    }
}

impl EmulatedHarness for AzureHarness {
    type Cloud = fleetwright_emulators::azure::Azure;

    fn emulator(&self) -> &fleetwright_emulators::Emulator<Self::Cloud> {
        &self.emulator
    }
}

/// The emulator past the wire.
struct Group(Arc<AzureEmulator>);

fn tags(tags: &BTreeMap<String, String>) -> Tags {
    Tags::from_observed(tags.clone())
}

fn state(truth: &OracleVm) -> CloudInstanceState {
    match (
        truth.provisioning_state.as_str(),
        truth.power_state.as_deref(),
    ) {
        ("Deleting", _) => CloudInstanceState::Terminating,
        ("Creating", _) | (_, Some("starting")) => CloudInstanceState::Pending,
        (_, Some("running")) => CloudInstanceState::Running,
        (_, Some("stopping" | "deallocating")) => CloudInstanceState::Stopping,
        (_, Some("stopped" | "deallocated")) => CloudInstanceState::Stopped,
        ("Failed", None) => CloudInstanceState::Terminating,
        other => panic!("the emulator has no states {other:?}"),
    }
}

/// The id of a machine, made without the provider.
pub(crate) fn id_of(truth: &OracleVm) -> InstanceId {
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/{}",
        truth.name
    );
    let text = format!("azure://{path}#{}.{}", truth.vm_id, truth.created_millis);
    let check = Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes());
    name(&format!("{text}.{}", &check.simple().to_string()[..8]))
}

fn info(truth: &OracleVm) -> InstanceInfo {
    let mut info = InstanceInfo::new(id_of(truth), state(truth));
    info.tags = tags(&truth.tags);
    info.private_ip = truth.private_ip.map(Into::into);
    info.public_ip = truth.public_ip.map(Into::into);
    info.image = Some(name(&truth.image));
    info.instance_type = Some(name(&truth.size));
    info.placement.zone = truth.zone.as_deref().map(name);
    info.placement.market = Some(match truth.market {
        NativeMarket::Spot => Market::Spot,
        NativeMarket::OnDemand => Market::OnDemand,
    });
    info
}

#[async_trait]
impl Oracle for Group {
    async fn instances(&self, wanted: &Tags) -> Vec<Truth> {
        let oracle = self.0.oracle();
        let ours = oracle.vms.iter().filter(|truth| {
            // What was never made is what is left of a launch, and no instance.
            let made = !(truth.provisioning_state == "Failed" && truth.power_state.is_none());
            made && tags(&truth.tags).contains_all(wanted)
        });
        ours.map(|truth| {
            let disk = oracle
                .disks
                .iter()
                .find(|disk| truth.disks.first() == Some(&disk.id));
            Truth {
                info: info(truth),
                user_data: truth.custom_data.clone(),
                disk_size_gb: disk.map(|disk| disk.gib),
                holds_machine: truth.allocated,
                boots: u32::try_from(truth.boots).ok(),
            }
        })
        .collect()
    }

    async fn leftovers(&self, wanted: &Tags) -> Vec<String> {
        let oracle = self.0.oracle();
        let ours: Vec<_> = oracle
            .vms
            .iter()
            .filter(|truth| tags(&truth.tags).contains_all(wanted))
            .collect();
        // Whatever belongs to no machine was left by one: nobody else makes any here.
        let left = |to: Option<&String>| {
            to.is_none_or(|vm| ours.iter().any(|truth| truth.id.eq_ignore_ascii_case(vm)))
        };
        let machines = ours.iter().map(|truth| format!("machine {}", truth.name));
        let nics = oracle
            .nics
            .iter()
            .filter(|nic| left(nic.attached_to.as_ref()));
        let nics = nics.map(|nic| format!("interface {}", nic.id));
        let disks = oracle
            .disks
            .iter()
            .filter(|disk| left(disk.attached_to.as_ref()));
        let disks = disks.map(|disk| format!("disk {}", disk.id));
        let ips = oracle
            .public_ips
            .iter()
            .filter(|ip| ip.attached_to.is_none());
        let ips = ips.map(|ip| format!("address {}", ip.id));
        machines.chain(nics).chain(disks).chain(ips).collect()
    }

    async fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
}

/// What a call of the kit's is to Azure. Describing and looking up are one operation.
fn operations(operation: WireOp, fault: &WireFault) -> Vec<Operation> {
    match operation {
        WireOp::Any => Vec::new(),
        WireOp::Launch => vec![Operation::VirtualMachinesCreateOrUpdate],
        WireOp::Terminate => vec![Operation::VirtualMachinesDelete],
        WireOp::Stop => vec![Operation::VirtualMachinesDeallocate],
        WireOp::Start => vec![Operation::VirtualMachinesStart],
        WireOp::Describe | WireOp::FindLaunch => vec![Operation::VirtualMachinesGet],
        // States are in a list of their own.
        WireOp::List if matches!(fault, WireFault::UnknownState(_) | WireFault::StaleRead) => {
            vec![Operation::VirtualMachinesListAll]
        }
        WireOp::List => vec![Operation::VirtualMachinesList],
        WireOp::UpdateTags => vec![Operation::VirtualMachinesUpdate],
    }
}

#[async_trait]
impl ExternalActor for Group {
    async fn launch(&self, tags: Tags) -> InstanceId {
        let pairs = tags.iter();
        let launch = ExternalAction::CreateExternal {
            subscription: Some(SUBSCRIPTION.to_owned()),
            resource_group: Some(GROUP.to_owned()),
            prefix: Some(format!(
                "external-{:.8}-",
                Uuid::new_v4().simple().to_string()
            )),
            size: None,
            count: 1,
            tags: pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        };
        let made = self.0.perform_external(launch).expect("an external launch");
        let oracle = self.0.oracle();
        let truth = oracle.vms.iter().find(|truth| truth.id == made[0]);
        id_of(truth.expect("what was just launched"))
    }

    async fn stop(&self, id: &InstanceId) {
        // Other people are refused what the state does not allow, like everybody.
        let _ = self
            .0
            .perform_external(ExternalAction::Deallocate { id: path_of(id) });
    }

    async fn terminate(&self, id: &InstanceId) {
        let _ = self
            .0
            .perform_external(ExternalAction::Delete { id: path_of(id) });
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
        let oracle = self.0.oracle();
        let held = oracle.vms.iter().filter(|truth| truth.allocated).count() as u64;
        let mut knobs = self.0.knobs();
        knobs.capacity = vec![Capacity::of(held + count)];
        self.0.set_knobs(knobs);
        true
    }
}
