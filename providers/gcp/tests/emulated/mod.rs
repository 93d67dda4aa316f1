//! An emulated Compute Engine as a harness: real sockets, real time, fast transitions.
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
use fleetwright_emulators::gcp::{
    CallRecord, Capacity, ExternalAction, GcpEmulator, Knobs, Method, OracleInstance, Timing,
};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner,
    fleetwright::{
        CloudInstanceState, ImageId, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner,
        InstanceType, Market, Scope, Tags, Zone, async_trait,
    },
    google_cloud_auth::credentials::anonymous,
};
use fleetwright_provider_testkit::{EmulatorFaults, broken_responses::EmulatedHarness};
use uuid::Uuid;

/// How long the emulator takes for what Compute Engine takes seconds for.
const TRANSITION: Duration = Duration::from_millis(20);

/// For how long its reads may lag.
const WINDOW: Duration = Duration::from_millis(40);

pub(crate) const PROJECT: &str = "fleet-1";
pub(crate) const ZONES: [&str; 2] = ["us-central1-a", "us-central1-b"];
pub(crate) const IMAGE: &str = "projects/debian-cloud/global/images/family/debian-12";

/// One project on an emulator of its own.
pub(crate) struct GcpHarness {
    emulator: Arc<GcpEmulator>,
    name: &'static str,
    launch_wait: Duration,
}

/// A handle of the project at another endpoint.
pub(crate) async fn launching_at(endpoint: &str, options: GcpOptions) -> GcpProvisioner {
    let nobody = anonymous::Builder::new().build();
    let launch = GcpHarness::launch_config();
    let made = GcpProvisioner::new(nobody, Some(endpoint), launch, options).await;
    made.expect("a launch config without a mistake")
}

impl GcpHarness {
    /// A project whose reads lag, and whose launches answer at once.
    pub(crate) fn new() -> Self {
        Self::with(|knobs| {
            knobs.lag.reads = WINDOW;
            knobs.lag.writes = WINDOW;
        })
    }

    /// A project with fast transitions, no lag, and knobs that `turn` has turned.
    pub(crate) fn with(turn: impl FnOnce(&mut Knobs)) -> Self {
        let mut knobs = Knobs::default();
        knobs.timing = Timing::all(TRANSITION);
        knobs.timing.pending = Duration::from_millis(5);
        turn(&mut knobs);
        let emulator = GcpEmulator::start(knobs).expect("a free port");
        Self {
            emulator: Arc::new(emulator),
            name: "gcp",
            launch_wait: Duration::ZERO,
        }
    }

    /// The same project, whose launches wait for their operation as they do unless told otherwise.
    pub(crate) fn patient(mut self) -> Self {
        self.launch_wait = GcpOptions::default().launch_wait;
        self
    }

    pub(crate) fn emulator(&self) -> &GcpEmulator {
        &self.emulator
    }

    pub(crate) fn launch_config() -> GcpLaunchConfig {
        GcpLaunchConfig::new(PROJECT, ZONES.map(name::<Zone>))
    }

    pub(crate) fn options(&self) -> GcpOptions {
        let mut options = GcpOptions::default();
        options.consistency_window = WINDOW * 2;
        options.poll_interval = Duration::from_millis(5);
        options.page_size = std::num::NonZeroUsize::new(5).expect("five");
        options.launch_wait = self.launch_wait;
        options
    }

    /// A handle that launches as `launch` says.
    pub(crate) async fn launching(&self, launch: GcpLaunchConfig) -> GcpProvisioner {
        self.behaving(launch, self.options()).await
    }

    /// A handle that launches as `launch` and behaves as `options` say.
    pub(crate) async fn behaving(
        &self,
        launch: GcpLaunchConfig,
        options: GcpOptions,
    ) -> GcpProvisioner {
        let endpoint = self.emulator.endpoint();
        let nobody = anonymous::Builder::new().build();
        let made = GcpProvisioner::new(nobody, Some(&endpoint), launch, options).await;
        made.expect("a launch config without a mistake")
    }

    /// The latest call of a method, as it came over the wire.
    pub(crate) fn latest(&self, method: &str) -> CallRecord {
        let calls = self.emulator.calls();
        let mut of_it = calls
            .into_iter()
            .rev()
            .filter(|call| call.operation == method);
        of_it.next().expect("a call of it")
    }

    /// How many calls of a method there were.
    pub(crate) fn calls_of(&self, method: &str) -> u64 {
        let calls = self.emulator.oracle().calls;
        calls.get(method).copied().unwrap_or_default()
    }

    /// The one instance that there is.
    pub(crate) fn only_instance(&self) -> OracleInstance {
        let mut all = self.emulator.oracle().instances;
        assert_eq!(all.len(), 1, "one instance is expected: {all:?}");
        all.remove(0)
    }
}

pub(crate) fn name<T: for<'a> TryFrom<&'a str>>(text: &str) -> T {
    T::try_from(text).unwrap_or_else(|_| panic!("{text} is no name"))
}

#[async_trait]
impl Harness for GcpHarness {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.launching(Self::launch_config()).await)
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(name(IMAGE), name("e2-micro"))
    }

    fn unknown_id(&self) -> InstanceId {
        name("gce://fleet-1/us-central1-a/fw-never-launched/18446744073709551615")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(name("projects/debian-cloud/global/images/debian-0"))
    }

    fn other_image(&self) -> Option<ImageId> {
        Some(name(
            "projects/debian-cloud/global/images/debian-12-bookworm-v20260101",
        ))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(name("e2-small"))
    }

    fn zone(&self) -> Option<Zone> {
        Some(name(ZONES[1]))
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(Project(Arc::clone(&self.emulator))))
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        Some(Arc::new(EmulatorFaults::new(
            Arc::clone(&self.emulator),
            methods,
        )))
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        Some(Arc::new(Project(Arc::clone(&self.emulator))))
    }
}

impl EmulatedHarness for GcpHarness {
    type Cloud = fleetwright_emulators::gcp::Gcp;

    fn emulator(&self) -> &fleetwright_emulators::Emulator<Self::Cloud> {
        &self.emulator
    }
}

/// The emulator past the wire.
struct Project(Arc<GcpEmulator>);

/// The tags that labels and metadata say, read without the provider.
fn tags(labels: &BTreeMap<String, String>, metadata: &BTreeMap<String, String>) -> Tags {
    let originals = metadata.get("fleetwright-tags");
    let odd = originals.map(|text| serde_json::from_str(text).expect("a JSON object"));
    let mut tags: BTreeMap<String, String> = odd.unwrap_or_default();
    let plain = labels.iter().filter(|(key, _)| !key.starts_with("fwx-"));
    tags.extend(plain.map(|(key, value)| (key.clone(), value.clone())));
    Tags::from_observed(tags)
}

/// The label that stands in for a tag that no label can hold, made without the provider.
fn stand_in(key: &str, value: &str) -> (String, String) {
    let slug = |text: &str, most: usize| {
        let words: Vec<_> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        words.join("-").chars().take(most).collect::<String>()
    };
    let both = format!("{}:{key}{value}", key.len());
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, both.as_bytes())
        .simple()
        .to_string();
    let label = format!("fwx-{}-{}", slug(key, 40), &digest[..16]);
    (label, slug(value, 63))
}

fn state(native: &str) -> CloudInstanceState {
    match native {
        "PROVISIONING" | "STAGING" | "REPAIRING" | "PENDING" => CloudInstanceState::Pending,
        "RUNNING" => CloudInstanceState::Running,
        "STOPPING" | "SUSPENDING" => CloudInstanceState::Stopping,
        "TERMINATED" | "SUSPENDED" => CloudInstanceState::Stopped,
        other => panic!("the emulator has no state {other}"),
    }
}

pub(crate) fn id_of(truth: &OracleInstance) -> InstanceId {
    let OracleInstance {
        project,
        zone,
        name: called,
        id,
        ..
    } = truth;
    name(&format!("gce://{project}/{zone}/{called}/{id}"))
}

fn info(truth: &OracleInstance) -> InstanceInfo {
    let mut info = InstanceInfo::new(id_of(truth), state(&truth.status));
    info.tags = tags(&truth.labels, &truth.metadata);
    info.private_ip = truth.internal_ip.map(Into::into);
    info.public_ip = truth.nat_ip.map(Into::into);
    info.image = truth
        .metadata
        .get("fleetwright-image")
        .map(|text| name(text));
    info.instance_type = Some(name(&truth.machine_type));
    info.placement.zone = Some(name(&truth.zone));
    info.placement.market = Some(if truth.spot {
        Market::Spot
    } else {
        Market::OnDemand
    });
    info
}

fn user_data(metadata: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let text = metadata.get("user-data")?;
    Some(
        match metadata.get("user-data-encoding").map(String::as_str) {
            Some("base64") => BASE64_STANDARD.decode(text).expect("base64"),
            Some(other) => panic!("no encoding is called {other}"),
            None => text.clone().into_bytes(),
        },
    )
}

#[async_trait]
impl Oracle for Project {
    async fn instances(&self, wanted: &Tags) -> Vec<Truth> {
        let oracle = self.0.oracle();
        let ours = oracle
            .instances
            .iter()
            .filter(|truth| tags(&truth.labels, &truth.metadata).contains_all(wanted));
        ours.map(|truth| Truth {
            info: info(truth),
            user_data: user_data(&truth.metadata),
            disk_size_gb: truth.boot_disk_gib,
            holds_machine: truth.holds_machine,
            boots: u32::try_from(truth.boots).ok(),
        })
        .collect()
    }

    async fn leftovers(&self, wanted: &Tags) -> Vec<String> {
        let oracle = self.0.oracle();
        let none = BTreeMap::new();
        let instances = oracle
            .instances
            .iter()
            .filter(|truth| tags(&truth.labels, &truth.metadata).contains_all(wanted))
            .map(|truth| format!("instance {}", truth.name));
        let disks = oracle
            .disks
            .iter()
            .filter(|disk| tags(&disk.labels, &none).contains_all(wanted))
            .map(|disk| format!("disk {}", disk.name));
        instances.chain(disks).collect()
    }

    async fn calls(&self) -> u64 {
        self.0.oracle().calls.values().sum()
    }
}

/// What a call of the kit's is to Compute Engine. Listing and looking up are one method; one of all zones that
/// breaks down is made again zone by zone, which must break down too.
fn methods(operation: WireOp, fault: &WireFault) -> Vec<Method> {
    let breaks = matches!(
        fault,
        WireFault::ServerErrorBefore | WireFault::ServerErrorAfter
    );
    match operation {
        WireOp::Any => Vec::new(),
        WireOp::Launch => vec![Method::InstancesInsert],
        WireOp::Terminate => vec![Method::InstancesDelete],
        WireOp::Stop => vec![Method::InstancesStop],
        WireOp::Start => vec![Method::InstancesStart],
        WireOp::Describe => vec![Method::InstancesGet],
        WireOp::List | WireOp::FindLaunch if breaks => {
            vec![Method::InstancesAggregatedList, Method::InstancesList]
        }
        WireOp::List | WireOp::FindLaunch => vec![Method::InstancesAggregatedList],
        WireOp::UpdateTags => vec![Method::InstancesSetLabels],
    }
}

impl Project {
    fn path(id: &InstanceId) -> String {
        let parts: Vec<_> = id
            .as_str()
            .trim_start_matches("gce://")
            .split('/')
            .collect();
        format!(
            "projects/{}/zones/{}/instances/{}",
            parts[0], parts[1], parts[2]
        )
    }
}

#[async_trait]
impl ExternalActor for Project {
    async fn launch(&self, tags: Tags) -> InstanceId {
        // What a label cannot hold, other people keep as we do.
        let fits = |text: &str| {
            let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
            text.len() <= 63 && text.chars().all(inside)
        };
        let pairs = tags
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let (mut labels, odd): (BTreeMap<_, _>, BTreeMap<_, _>) =
            pairs.partition(|(key, value)| fits(key) && fits(value));
        labels.extend(odd.iter().map(|(key, value)| stand_in(key, value)));
        let metadata = (!odd.is_empty()).then(|| {
            let text = serde_json::to_string(&odd).expect("a map of texts");
            ("fleetwright-tags".to_owned(), text)
        });
        let launch = ExternalAction::LaunchExternal {
            project: PROJECT.to_owned(),
            zone: None,
            name: Some(format!("external-{}", Uuid::new_v4().simple())),
            machine_type: None,
            count: 1,
            labels,
            metadata: metadata.into_iter().collect(),
        };
        let made = self.0.perform_external(launch).expect("an external launch");
        let oracle = self.0.oracle();
        let truth = oracle.instances.iter().find(|truth| truth.id == made[0]);
        id_of(truth.expect("what was just launched"))
    }

    async fn stop(&self, id: &InstanceId) {
        let instance = Self::path(id);
        // Other people are refused what the state does not allow, like everybody.
        let _ = self.0.perform_external(ExternalAction::Stop { instance });
    }

    async fn terminate(&self, id: &InstanceId) {
        let instance = Self::path(id);
        let _ = self.0.perform_external(ExternalAction::Delete { instance });
    }

    async fn cut_off(&self, id: &InstanceId) -> Option<Scope> {
        let zone = id.as_str().split('/').nth(3)?.to_owned();
        let mut knobs = self.0.knobs();
        knobs.unreachable_zones.insert(zone.clone());
        self.0.set_knobs(knobs);
        Some(Scope::zone(name(&zone)))
    }

    async fn reconnect(&self) {
        let mut knobs = self.0.knobs();
        knobs.capacity.clear();
        knobs.unreachable_zones.clear();
        self.0.set_knobs(knobs);
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let oracle = self.0.oracle();
        let held = oracle
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
