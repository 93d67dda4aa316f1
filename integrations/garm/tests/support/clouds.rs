//! The emulated clouds, read without the provider's code.

use std::{collections::BTreeMap, time::Duration};

use fleetwright_emulators::{Fault, FaultRule, Phase as FaultPhase, azure, ec2, gcp};

/// How long a transition takes.
const TRANSITION: Duration = Duration::from_millis(20);
/// How long reads may be stale. The config of the tests has a window of 200 ms.
const LAG: Duration = Duration::from_millis(40);

const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright fleet";

/// Whether a process is killed before or after its request has had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Before,
    After,
}

impl Phase {
    pub(crate) const BOTH: [Self; 2] = [Self::Before, Self::After];

    fn hang(self) -> Fault {
        let phase = match self {
            Self::Before => FaultPhase::Before,
            Self::After => FaultPhase::After,
        };
        Fault::Hang { phase }
    }
}

/// An emulated cloud and its truth.
pub(crate) trait Cloud {
    /// The table of the config file.
    fn config(&self) -> String;
    fn environment(&self) -> Vec<(&'static str, &'static str)>;
    fn image_and_flavor(&self) -> (&'static str, &'static str);
    /// How many requests there were.
    fn calls(&self) -> u64;
    /// Lets the nth request from now on hang.
    fn hang(&self, nth: u64, phase: Phase);
    /// Adds a fault to the nth request from now on, or to every one.
    fn fault(&self, nth: Option<u64>, fault: Fault);
    fn clear_faults(&self);
    /// The ids of the machines with a name that are not ending, as the cloud has them.
    fn live(&self, name: &str) -> Vec<String>;
    /// Everything that exists and costs money.
    fn leftovers(&self) -> Vec<String>;
    /// The tags of the volumes that exist, if the cloud tags them.
    fn volume_tags(&self) -> Vec<BTreeMap<String, String>>;
    /// Launches a machine that this program has not launched, and returns its `provider_id`.
    fn launch_foreign(&self, tags: &[(&str, &str)]) -> String;
    /// The user data of the only machine.
    fn user_data(&self) -> Vec<u8>;
    fn limit_capacity(&self, machine_type: Option<&str>, machines: u64);
    /// Lets calls that name an instance find it only after a random part of this time.
    fn hide_new_instances(&self, time: Duration);
}

/// Returns every cloud with stale reads.
pub(crate) fn each_cloud() -> Vec<Box<dyn Cloud>> {
    vec![
        Box::new(Ec2Cloud::new()),
        Box::new(GcpCloud::new()),
        Box::new(AzureCloud::new()),
    ]
}

/// Returns a fault of the nth call, or of every one.
macro_rules! rule {
    ($nth:expr, $fault:expr) => {
        match $nth {
            Some(nth) => FaultRule::nth_of_any(nth, $fault),
            None => FaultRule::always_any($fault),
        }
    };
}

fn is_named(tags: &BTreeMap<String, String>, name: &str) -> bool {
    tags.get("garm-name").map(String::as_str) == Some(name)
}

pub(crate) struct Ec2Cloud(pub(crate) ec2::Ec2Emulator);

impl Ec2Cloud {
    pub(crate) fn new() -> Self {
        let mut knobs = ec2::Knobs::default();
        knobs.timing.boot = TRANSITION;
        knobs.timing.stop = TRANSITION;
        knobs.timing.terminate = TRANSITION;
        knobs.lag.reads = LAG;
        knobs.lag.writes = LAG;
        Self(ec2::Ec2Emulator::start(knobs).expect("a port"))
    }
}

impl Cloud for Ec2Cloud {
    fn config(&self) -> String {
        let endpoint = self.0.endpoint();
        format!("[ec2]\nregion = \"us-east-1\"\nendpoint = \"{endpoint}\"\n")
    }
    fn environment(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "s3cr3t-key"),
        ]
    }
    fn image_and_flavor(&self) -> (&'static str, &'static str) {
        ("ami-00000000000000001", "t3.micro")
    }
    fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
    fn hang(&self, nth: u64, phase: Phase) {
        self.0.add_fault(FaultRule::nth_of_any(nth, phase.hang()));
    }
    fn fault(&self, nth: Option<u64>, fault: Fault) {
        self.0.add_fault(rule!(nth, fault));
    }
    fn clear_faults(&self) {
        self.0.clear_faults();
    }
    fn live(&self, name: &str) -> Vec<String> {
        let all = self.0.oracle().instances.into_iter();
        let ended = ["shutting-down", "terminated"];
        all.filter(|it| is_named(&it.tags, name) && !ended.contains(&it.state.as_str()))
            .map(|it| it.id)
            .collect()
    }
    fn leftovers(&self) -> Vec<String> {
        let oracle = self.0.oracle();
        let instances = oracle.instances.iter();
        let instances = instances.filter(|it| it.state != "terminated" && !it.external);
        let instances = instances.map(|it| format!("instance {} is {}", it.id, it.state));
        let volumes = oracle.volumes.iter();
        let volumes = volumes.filter(|it| it.tags.contains_key("garm-name"));
        let volumes = volumes.map(|it| format!("volume {}", it.id));
        let cards = oracle.network_interfaces.iter();
        let cards = cards.filter(|it| it.tags.contains_key("garm-name"));
        let cards = cards.map(|it| format!("interface {}", it.id));
        instances.chain(volumes).chain(cards).collect()
    }
    fn volume_tags(&self) -> Vec<BTreeMap<String, String>> {
        self.0
            .oracle()
            .volumes
            .into_iter()
            .map(|it| it.tags)
            .collect()
    }
    fn launch_foreign(&self, tags: &[(&str, &str)]) -> String {
        let action = ec2::ExternalAction::LaunchExternal {
            image: None,
            instance_type: None,
            zone: None,
            count: 1,
            tags: owned(tags),
        };
        self.0.perform_external(action).expect("a launch").remove(0)
    }
    fn user_data(&self) -> Vec<u8> {
        let all = self.0.oracle().instances;
        all.into_iter()
            .find_map(|it| it.user_data)
            .expect("user data")
    }
    fn limit_capacity(&self, machine_type: Option<&str>, machines: u64) {
        let mut knobs = self.0.knobs();
        knobs.capacity = vec![capacity(machine_type, machines)];
        self.0.set_knobs(knobs);
    }
    fn hide_new_instances(&self, time: Duration) {
        let mut knobs = self.0.knobs();
        knobs.lag.writes = time;
        self.0.set_knobs(knobs);
    }
}

pub(crate) struct GcpCloud(pub(crate) gcp::GcpEmulator);

impl GcpCloud {
    pub(crate) fn new() -> Self {
        let mut knobs = gcp::Knobs::default();
        knobs.timing = gcp::Timing::all(TRANSITION);
        knobs.lag.reads = LAG;
        knobs.lag.writes = LAG;
        Self(gcp::GcpEmulator::start(knobs).expect("a port"))
    }

    fn tags(it: &gcp::OracleInstance) -> BTreeMap<String, String> {
        let kept = it.metadata.get("fleetwright-tags");
        let kept = kept.map(|text| serde_json::from_str(text).expect("a JSON object"));
        let mut tags: BTreeMap<String, String> = kept.unwrap_or_default();
        tags.extend(it.labels.clone());
        tags
    }
}

impl Cloud for GcpCloud {
    fn config(&self) -> String {
        let endpoint = self.0.endpoint();
        format!(
            "[gcp]\nproject = \"fleet-1\"\nzones = [\"us-central1-a\", \"us-central1-b\"]\nendpoint = \"{endpoint}\"\n\
             credentials = \"anonymous\"\n"
        )
    }
    fn environment(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    fn image_and_flavor(&self) -> (&'static str, &'static str) {
        (
            "projects/debian-cloud/global/images/family/debian-12",
            "e2-micro",
        )
    }
    fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
    fn hang(&self, nth: u64, phase: Phase) {
        self.0.add_fault(FaultRule::nth_of_any(nth, phase.hang()));
    }
    fn fault(&self, nth: Option<u64>, fault: Fault) {
        self.0.add_fault(rule!(nth, fault));
    }
    fn clear_faults(&self) {
        self.0.clear_faults();
    }
    fn live(&self, name: &str) -> Vec<String> {
        let all = self.0.oracle().instances.into_iter();
        all.filter(|it| is_named(&Self::tags(it), name) && it.status != "STOPPING")
            .map(|it| it.id)
            .collect()
    }
    fn leftovers(&self) -> Vec<String> {
        let oracle = self.0.oracle();
        let instances = oracle.instances.iter();
        let instances = instances.filter(|it| it.name.starts_with("fw-"));
        let instances = instances.map(|it| format!("instance {} is {}", it.name, it.status));
        let disks = oracle.disks.iter().filter(|it| it.name.starts_with("fw-"));
        let disks = disks.map(|it| format!("disk {}", it.name));
        instances.chain(disks).collect()
    }
    fn volume_tags(&self) -> Vec<BTreeMap<String, String>> {
        self.0
            .oracle()
            .disks
            .into_iter()
            .map(|it| it.labels)
            .collect()
    }
    fn launch_foreign(&self, tags: &[(&str, &str)]) -> String {
        let action = gcp::ExternalAction::LaunchExternal {
            project: "fleet-1".to_owned(),
            zone: Some("us-central1-a".to_owned()),
            name: Some("somebody-elses".to_owned()),
            machine_type: None,
            count: 1,
            labels: owned(tags),
            metadata: BTreeMap::new(),
        };
        let id = self.0.perform_external(action).expect("a launch").remove(0);
        format!("gce://fleet-1/us-central1-a/somebody-elses/{id}")
    }
    fn user_data(&self) -> Vec<u8> {
        let all = self.0.oracle().instances;
        let mut data = all.iter().filter_map(|it| it.metadata.get("user-data"));
        data.next().expect("user data").clone().into_bytes()
    }
    fn limit_capacity(&self, machine_type: Option<&str>, machines: u64) {
        let mut knobs = self.0.knobs();
        knobs.capacity = vec![capacity(machine_type, machines)];
        self.0.set_knobs(knobs);
    }
    fn hide_new_instances(&self, time: Duration) {
        let mut knobs = self.0.knobs();
        knobs.lag.writes = time;
        self.0.set_knobs(knobs);
    }
}

pub(crate) struct AzureCloud(pub(crate) azure::AzureEmulator);

impl AzureCloud {
    pub(crate) fn new() -> Self {
        let mut knobs = azure::Knobs::default();
        knobs.timing = azure::Timing::all(TRANSITION);
        knobs.timing.update = Duration::ZERO;
        knobs.timing.deleted_retention = TRANSITION;
        knobs.lag.reads = LAG;
        knobs.lag.writes = LAG;
        Self(azure::AzureEmulator::start(knobs).expect("a port"))
    }
}

impl Cloud for AzureCloud {
    fn config(&self) -> String {
        let endpoint = self.0.endpoint();
        format!(
            "[azure]\nsubscription = \"{SUBSCRIPTION}\"\nresource_group = \"rg\"\nlocation = \"eastus\"\nsubnet = \"vnet/default\"\n\
             ssh_public_key = \"{SSH_KEY}\"\nendpoint = \"{endpoint}\"\naccess_token_variable = \"AZURE_TOKEN\"\n"
        )
    }
    fn environment(&self) -> Vec<(&'static str, &'static str)> {
        vec![("AZURE_TOKEN", "s3cr3t-azure-token")]
    }
    fn image_and_flavor(&self) -> (&'static str, &'static str) {
        (
            "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest",
            "Standard_B1s",
        )
    }
    fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
    fn hang(&self, nth: u64, phase: Phase) {
        self.0.add_fault(FaultRule::nth_of_any(nth, phase.hang()));
    }
    fn fault(&self, nth: Option<u64>, fault: Fault) {
        self.0.add_fault(rule!(nth, fault));
    }
    fn clear_faults(&self) {
        self.0.clear_faults();
    }
    fn live(&self, name: &str) -> Vec<String> {
        let all = self.0.oracle().vms.into_iter();
        all.filter(|it| is_named(&it.tags, name) && it.provisioning_state != "Deleting")
            .map(|it| it.id)
            .collect()
    }
    fn leftovers(&self) -> Vec<String> {
        let oracle = self.0.oracle();
        let ours: Vec<_> = oracle
            .vms
            .iter()
            .filter(|it| it.name.starts_with("fw-"))
            .collect();
        let machines = ours
            .iter()
            .map(|it| format!("machine {} is {}", it.name, it.provisioning_state));
        let of_ours = |owner: Option<&String>| {
            owner.is_none_or(|id| ours.iter().any(|it| it.id.eq_ignore_ascii_case(id)))
        };
        let cards = oracle
            .nics
            .iter()
            .filter(|it| of_ours(it.attached_to.as_ref()));
        let cards = cards.map(|it| format!("interface {}", it.id));
        let disks = oracle
            .disks
            .iter()
            .filter(|it| of_ours(it.attached_to.as_ref()));
        let disks = disks.map(|it| format!("disk {}", it.id));
        let addresses = oracle
            .public_ips
            .iter()
            .filter(|it| it.attached_to.is_none());
        let addresses = addresses.map(|it| format!("address {}", it.id));
        machines
            .chain(cards)
            .chain(disks)
            .chain(addresses)
            .collect()
    }
    fn volume_tags(&self) -> Vec<BTreeMap<String, String>> {
        Vec::new()
    }
    fn launch_foreign(&self, tags: &[(&str, &str)]) -> String {
        let action = azure::ExternalAction::CreateExternal {
            subscription: Some(SUBSCRIPTION.to_owned()),
            resource_group: Some("rg".to_owned()),
            prefix: Some("somebody-".to_owned()),
            size: None,
            count: 1,
            tags: owned(tags),
        };
        let id = self.0.perform_external(action).expect("a launch").remove(0);
        let vms = self.0.oracle().vms;
        let vm = vms.iter().find(|vm| vm.id == id).expect("the machine");
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/{}",
            vm.name
        );
        let text = format!("azure://{path}#{}.{}", vm.vm_id, vm.created_millis);
        let check = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, text.as_bytes());
        format!("{text}.{}", &check.simple().to_string()[..8])
    }
    fn user_data(&self) -> Vec<u8> {
        let all = self.0.oracle().vms;
        all.into_iter()
            .find_map(|it| it.custom_data)
            .expect("user data")
    }
    fn limit_capacity(&self, machine_type: Option<&str>, machines: u64) {
        let mut knobs = self.0.knobs();
        knobs.capacity = vec![capacity(machine_type, machines)];
        self.0.set_knobs(knobs);
    }
    fn hide_new_instances(&self, time: Duration) {
        let mut knobs = self.0.knobs();
        knobs.lag.writes = time;
        self.0.set_knobs(knobs);
    }
}

fn owned(tags: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = tags.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn capacity(machine_type: Option<&str>, machines: u64) -> fleetwright_emulators::Capacity {
    let mut capacity = fleetwright_emulators::Capacity::of(machines);
    capacity.instance_type = machine_type.map(str::to_owned);
    capacity
}
