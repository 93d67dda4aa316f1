//! A resource group on an emulated Azure.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "test helpers may panic, and no test binary uses all of them"
)]

mod native_errors;

use std::{collections::BTreeMap, time::Duration};

use fleetwright_azure::{
    AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner,
    fleetwright::{CloudInstanceState, InstanceId, InstanceInfo, Market, Tags, async_trait},
};
use fleetwright_contract_tests::{NativeError, Truth, WireFault, WireOp};
use fleetwright_emulators::azure::{
    Azure, AzureEmulator, ExternalAction, Knobs, Market as NativeMarket, Operation, Oracle,
    OracleVm, Timing, VirtualNetwork,
};
use fleetwright_provider_testkit::emulated::{
    CONSISTENCY_WINDOW, EmulatedAccount, EmulatedHarness, Fixtures, POLL_INTERVAL, parse_name,
};
use uuid::Uuid;

/// How long a transition takes, which takes seconds on Azure.
const TRANSITION: Duration = Duration::from_millis(20);

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
pub(crate) const GROUP: &str = "rg";
pub(crate) const IMAGE: &str = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";
pub(crate) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright fleet";
pub(crate) const TOKEN: &str = "s3cr3t-this-is-a-token";

/// A resource group on its own emulator.
pub(crate) type AzureHarness = EmulatedHarness<AzureGroup>;

/// What is particular to Azure.
pub(crate) struct AzureGroup;

#[async_trait]
impl EmulatedAccount for AzureGroup {
    type Cloud = Azure;
    type Provisioner = AzureProvisioner;
    type LaunchConfig = AzureLaunchConfig;
    type Options = AzureOptions;
    type Instance = OracleVm;

    const FIXTURES: Fixtures = Fixtures {
        backend: "azure",
        image: IMAGE,
        other_image: "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:22.04.202601010",
        unknown_image: "Canonical:0001-com-ubuntu-server-jammy:nothing:latest",
        unknown_type: "Standard_Unknown",
        instance_type: "Standard_B1s",
        other_type: "Standard_B2s",
        zone: "2",
        network: "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers/Microsoft.Network/\
                  virtualNetworks/contract/subnets/default",
        // A network interface has one group.
        security_groups: &[
            "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers/\
                            Microsoft.Network/networkSecurityGroups/nsg",
        ],
        unknown_id: "azure:///subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/\
                     providers/Microsoft.Compute/virtualMachines/fw-never-launched\
                     #00000000-0000-0000-0000-000000000001.1790000000000.00000000",
        late_failure_code: "ContractFailsLate",
        late_capacity_code: "AllocationFailed",
    };

    fn fast_knobs() -> Knobs {
        let mut knobs = Knobs::default();
        knobs.timing = Timing::all(TRANSITION);
        knobs.timing.update = Duration::ZERO;
        knobs.timing.deleted_retention = TRANSITION;
        knobs
    }

    /// Makes lists of a few machines take several pages, and omit machines, which they always may. A
    /// name is not free for a while after a deletion.
    fn adjust_for_contract(knobs: &mut Knobs) {
        knobs.timing.recreation = TRANSITION;
        knobs.omissions.lists = 25;
        knobs.page_size = std::num::NonZeroU32::new(5).expect("five");
        let range = "10.9.0.0/16".parse().expect("a range of addresses");
        let network = VirtualNetwork::new(GROUP, "contract", "eastus", range);
        knobs.virtual_networks.push(network);
    }

    fn launch_config() -> AzureLaunchConfig {
        let subnet = parse_name("vnet/default");
        AzureLaunchConfig::new(SUBSCRIPTION, GROUP, "eastus", subnet, KEY)
    }

    /// In another zone, with another disk.
    fn other_launch_config() -> AzureLaunchConfig {
        let mut launch = Self::launch_config();
        launch.zone = Some(parse_name("2"));
        launch.os_disk_type = Some("Premium_LRS".to_owned());
        launch
    }

    fn options(emulator: &AzureEmulator, wait_for_launch: bool) -> AzureOptions {
        let mut options = AzureOptions::default();
        options.endpoint = emulator.endpoint();
        options.consistency_window = CONSISTENCY_WINDOW;
        options.poll_interval = POLL_INTERVAL;
        if !wait_for_launch {
            options.launch_wait = Duration::ZERO;
        }
        let page_size = emulator.knobs().page_size.get() as usize;
        options.page_size = std::num::NonZeroUsize::new(page_size).expect("a page size");
        options
    }

    async fn connect(
        endpoint: &str,
        launch: AzureLaunchConfig,
        mut options: AzureOptions,
    ) -> AzureProvisioner {
        endpoint.clone_into(&mut options.endpoint);
        let opened = AzureProvisioner::new(AzureCredentials::token(TOKEN), launch, options);
        opened.expect("valid settings")
    }

    fn secrets() -> Vec<String> {
        vec![TOKEN.to_owned()]
    }

    fn instances(oracle: &Oracle) -> &[OracleVm] {
        &oracle.vms
    }

    fn native_id(vm: &OracleVm) -> &str {
        &vm.id
    }

    fn id(vm: &OracleVm) -> InstanceId {
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/{}",
            vm.name
        );
        let text = format!("azure://{path}#{}.{}", vm.vm_id, vm.created_millis);
        let check = Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes());
        parse_name(&format!("{text}.{}", &check.simple().to_string()[..8]))
    }

    fn holds_machine(vm: &OracleVm) -> bool {
        vm.allocated
    }

    /// Returns `None` for what a failed creation leaves behind.
    fn truth(vm: &OracleVm, oracle: &Oracle) -> Option<Truth> {
        if vm.provisioning_state == "Failed" && vm.power_state.is_none() {
            return None;
        }
        let os_disk = vm.disks.first();
        let os_disk = oracle.disks.iter().find(|disk| os_disk == Some(&disk.id));
        Some(Truth {
            info: info(vm, oracle),
            user_data: vm.custom_data.clone(),
            disk_size_gb: os_disk.map(|disk| disk.gib),
            holds_machine: vm.allocated,
            boots: u32::try_from(vm.boots).ok(),
        })
    }

    fn leftovers(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let matching: Vec<_> = oracle
            .vms
            .iter()
            .filter(|vm| Tags::from_observed(vm.tags.clone()).contains_all(wanted))
            .collect();
        // A resource without a machine was left by one: nothing else creates any here.
        let is_left = |owner: Option<&String>| {
            owner.is_none_or(|id| matching.iter().any(|vm| vm.id.eq_ignore_ascii_case(id)))
        };
        let machines = matching.iter().map(|vm| format!("machine {}", vm.name));
        let nics = oracle
            .nics
            .iter()
            .filter(|nic| is_left(nic.attached_to.as_ref()))
            .map(|nic| format!("interface {}", nic.id));
        let disks = oracle
            .disks
            .iter()
            .filter(|disk| is_left(disk.attached_to.as_ref()))
            .map(|disk| format!("disk {}", disk.id));
        let addresses = oracle
            .public_ips
            .iter()
            .filter(|address| address.attached_to.is_none())
            .map(|address| format!("address {}", address.id));
        machines.chain(nics).chain(disks).chain(addresses).collect()
    }

    fn images(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let ours = oracle.images.iter();
        ours.filter(|image| Tags::from_observed(image.tags.clone()).contains_all(wanted))
            .map(|image| format!("image {}", image.id))
            .collect()
    }

    fn calls(oracle: &Oracle) -> &BTreeMap<String, u64> {
        &oracle.calls
    }

    /// A machine that a list omits is read with a GET.
    fn excused_calls(oracle: &Oracle) -> u64 {
        oracle.omitted
    }

    /// Describing and looking up are one operation. States are in a list of their own.
    fn operations(operation: WireOp, fault: &WireFault) -> Vec<Operation> {
        match operation {
            WireOp::Any => Vec::new(),
            WireOp::Launch => vec![Operation::VirtualMachinesCreateOrUpdate],
            WireOp::Terminate => vec![Operation::VirtualMachinesDelete],
            WireOp::Stop => vec![Operation::VirtualMachinesDeallocate],
            WireOp::Start => vec![Operation::VirtualMachinesStart],
            WireOp::Describe | WireOp::FindLaunch => vec![Operation::VirtualMachinesGet],
            WireOp::List if matches!(fault, WireFault::UnknownState(_) | WireFault::StaleRead) => {
                vec![Operation::VirtualMachinesListAll]
            }
            WireOp::List => vec![Operation::VirtualMachinesList],
            WireOp::UpdateTags => vec![Operation::VirtualMachinesUpdate],
        }
    }

    fn native_errors() -> Vec<NativeError> {
        native_errors::all()
    }

    fn external_launch(tags: &Tags) -> ExternalAction {
        let unique = Uuid::new_v4().simple().to_string();
        let pairs = tags.iter();
        ExternalAction::CreateExternal {
            subscription: Some(SUBSCRIPTION.to_owned()),
            resource_group: Some(GROUP.to_owned()),
            prefix: Some(format!("external-{unique:.8}-")),
            size: None,
            count: 1,
            tags: pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    fn external_stop(id: &InstanceId) -> ExternalAction {
        ExternalAction::Deallocate { id: path_of(id) }
    }

    fn external_termination(id: &InstanceId) -> ExternalAction {
        ExternalAction::Delete { id: path_of(id) }
    }
}

/// Returns the resource id in an instance id.
pub(crate) fn path_of(id: &InstanceId) -> String {
    let text = id.as_str().trim_start_matches("azure://");
    text.split('#').next().unwrap_or_default().to_owned()
}

/// Returns the truth about a machine.
pub(crate) fn find_vm(harness: &AzureHarness, id: &InstanceId) -> Option<OracleVm> {
    let path = path_of(id);
    let vms = harness.emulator().oracle().vms;
    vms.into_iter().find(|vm| vm.id.eq_ignore_ascii_case(&path))
}

fn info(vm: &OracleVm, oracle: &Oracle) -> InstanceInfo {
    let mut info = InstanceInfo::new(AzureGroup::id(vm), state(vm));
    info.tags = Tags::from_observed(vm.tags.clone());
    info.private_ip = vm.private_ip.map(Into::into);
    info.public_ip = vm.public_ip.map(Into::into);
    info.image = Some(parse_name(&vm.image));
    info.instance_type = Some(parse_name(&vm.size));
    info.placement.zone = vm.zone.as_deref().map(parse_name);
    let card = oracle
        .nics
        .iter()
        .find(|nic| vm.nics.first() == Some(&nic.id));
    let subnet = card.and_then(|card| card.subnets.first());
    info.placement.network = subnet.map(|subnet| parse_name(subnet));
    let group = card.and_then(|card| card.security_group.as_deref());
    info.placement.security_groups = group.map(parse_name).into_iter().collect();
    info.placement.market = Some(match vm.market {
        NativeMarket::Spot => Market::Spot,
        NativeMarket::OnDemand => Market::OnDemand,
    });
    info
}

fn state(vm: &OracleVm) -> CloudInstanceState {
    match (vm.provisioning_state.as_str(), vm.power_state.as_deref()) {
        ("Deleting", _) => CloudInstanceState::Terminating,
        ("Creating", _) | (_, Some("starting")) => CloudInstanceState::Pending,
        (_, Some("running")) => CloudInstanceState::Running,
        (_, Some("stopping" | "deallocating")) => CloudInstanceState::Stopping,
        (_, Some("stopped" | "deallocated")) => CloudInstanceState::Stopped,
        ("Failed", None) => CloudInstanceState::Terminating,
        other => panic!("the emulator has no states {other:?}"),
    }
}
