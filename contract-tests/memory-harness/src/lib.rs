//! The memory cloud as a harness: the reference that passes every clause.
//!
//! Owns the mapping of the kit's faults and external changes to the memory cloud's own. It is a crate of its own so that
//! the tests of the memory cloud do not compile the zoo, whose backends use it too.

mod native_errors;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Operation, Placement,
    Scope, Tags, Zone,
};
use fleetwright_memory::{
    Capacity, Fault, MemoryCloud, MemoryCloudBuilder, Phase, RefusalReason, Rule, When, WireCall,
};

use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, NativeError, Oracle, Time, Truth, WireFault, WireOp,
};

/// A memory cloud, fresh for each clause, under virtual time. It offers everything that a harness can.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_contract_tests::contract_tests;
/// use fleetwright_memory_harness::MemoryHarness;
///
/// fn slow() -> MemoryHarness {
///     MemoryHarness::with(|cloud| cloud.latency(Duration::from_secs(4)))
/// }
///
/// contract_tests!(slow);
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
pub struct MemoryHarness {
    cloud: MemoryCloud,
    zones: [&'static str; 2],
    /// Whether a native error is injected by a limit of capacity.
    is_short: Arc<AtomicBool>,
    /// Whether the native errors include the shortage of one offering.
    has_shortage: bool,
}

const IMAGES: [&str; 2] = ["contract-image", "contract-image-2"];
const GROUPS: [&str; 2] = ["contract-group", "contract-group-2"];
const TYPES: [&str; 2] = ["contract-small", "contract-large"];

impl MemoryHarness {
    /// Creates a cloud with the default knobs.
    pub fn new() -> Self {
        Self::with(|cloud| cloud)
    }

    /// Creates a cloud whose knobs `turn` sets.
    pub fn with(turn: impl FnOnce(MemoryCloudBuilder) -> MemoryCloudBuilder) -> Self {
        let mut cloud = MemoryCloud::builder()
            .seed(fleetwright_contract_tests::seed_from_env().unwrap_or(1))
            .latency(Duration::from_millis(10))
            .late_failures(Duration::from_secs(2));
        for image in IMAGES {
            cloud = cloud.offer_image(name(image));
        }
        for instance_type in TYPES {
            cloud = cloud.offer_type(name(instance_type));
        }
        Self {
            cloud: turn(cloud).build(),
            zones: ["mem-a", "mem-b"],
            is_short: Arc::default(),
            has_shortage: true,
        }
    }

    /// Creates a cloud whose two zones have other names.
    pub fn in_zones(zones: [&'static str; 2]) -> Self {
        let named = Self::with(|cloud| cloud.zone(name(zones[0])).zone(name(zones[1])));
        Self { zones, ..named }
    }

    /// Leaves the shortage of one offering out of the native errors, for layers that launch another offering instead.
    #[must_use]
    pub fn without_shortage(self) -> Self {
        Self {
            has_shortage: false,
            ..self
        }
    }

    /// Returns the cloud behind the harness.
    pub fn cloud(&self) -> &MemoryCloud {
        &self.cloud
    }

    /// Returns the addresses that are in use and belong to no instance: an instance of the clause had
    /// them, because every clause has a cloud of its own.
    fn addresses_of_nobody(&self) -> impl Iterator<Item = String> {
        let instances = self.cloud.oracle().instances().into_iter();
        let held = instances.flat_map(|truth| [truth.info.private_ip, truth.info.public_ip]);
        let held: BTreeSet<_> = held.flatten().collect();
        let in_use = self.cloud.oracle().leftovers().addresses.into_iter();
        in_use
            .filter(move |address| !held.contains(address))
            .map(|address| format!("address {address} of no instance"))
    }
}

impl Default for MemoryHarness {
    fn default() -> Self {
        Self::new()
    }
}

/// Parses a name that is a constant of this file.
#[expect(clippy::panic, reason = "the names are valid constants")]
fn name<T: for<'a> TryFrom<&'a str>>(text: &str) -> T {
    T::try_from(text).unwrap_or_else(|_| panic!("{text} is not a valid name"))
}

#[async_trait]
impl Harness for MemoryHarness {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.cloud.provisioner())
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(name(IMAGES[0]), name(TYPES[0]))
    }

    fn unknown_id(&self) -> InstanceId {
        name("i-0000000000000000")
    }

    fn time(&self) -> Time {
        Time::Virtual
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(name("no-such-image"))
    }

    fn unknown_type(&self) -> Option<InstanceType> {
        Some(name("no-such-type"))
    }

    fn other_image(&self) -> Option<ImageId> {
        Some(name(IMAGES[1]))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(name(TYPES[1]))
    }

    fn zone(&self) -> Option<Zone> {
        Some(name(self.zones[1]))
    }

    fn placement(&self) -> Placement {
        let mut placement = Placement::default();
        placement.zone = self.zone();
        placement.network = Some(name("contract-network"));
        placement.security_groups = GROUPS.into_iter().map(name).collect();
        placement
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(self.clone()))
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        Some(Arc::new(self.clone()))
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        Some(Arc::new(self.clone()))
    }

    // The memory cloud needs no credentials; this is what a broken backend in front of it would show.
    fn secrets(&self) -> Vec<String> {
        vec!["key-of-the-memory-account".to_owned()]
    }
}

#[async_trait]
impl Oracle for MemoryHarness {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let all = self.cloud.oracle().instances().into_iter();
        let ours = all.filter(|truth| truth.info.tags.contains_all(tags));
        ours.map(|truth| Truth {
            info: truth.info,
            user_data: truth.user_data.map(|data| data.as_bytes().to_vec()),
            disk_size_gb: truth.disk.map(|disk| disk.size_gb.get()),
            holds_machine: truth.holds_machine,
            boots: Some(truth.boots),
        })
        .collect()
    }

    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let left = self.cloud.oracle().leftovers_with_tags(tags);
        let instances = left.instances.iter().map(|id| format!("instance {id}"));
        let disks = left.disks.iter().map(|disk| format!("disk {disk}"));
        let cards = left
            .network_cards
            .iter()
            .map(|mac| format!("network card {mac}"));
        let addresses = left
            .addresses
            .iter()
            .map(|address| format!("address {address}"));
        instances
            .chain(disks)
            .chain(cards)
            .chain(addresses)
            .chain(self.addresses_of_nobody())
            .collect()
    }

    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        let all = self.cloud.oracle().images().into_iter();
        let ours = all.filter(|image| image.tags.contains_all(tags));
        Some(ours.map(|image| format!("image {}", image.id)).collect())
    }

    async fn calls(&self) -> u64 {
        self.cloud.oracle().total_calls()
    }
}

#[async_trait]
impl Faults for MemoryHarness {
    fn supports(&self, _: &WireFault) -> bool {
        true
    }

    fn late_capacity_code(&self) -> Option<&str> {
        Some("InsufficientCapacity")
    }

    fn native_errors(&self) -> Vec<NativeError> {
        let mut errors = native_errors::all(&self.config(), self.zones.map(name));
        errors.retain(|error| self.has_shortage || native_errors::fault(error).is_some());
        errors
    }

    async fn inject_native(&self, operation: Operation, error: &NativeError) -> bool {
        match native_errors::fault(error) {
            Some(fault) => self.add_native(WireOp::from(operation), When::Always, fault),
            // The only one that the cloud reports without a fault.
            None => {
                self.is_short.store(true, Ordering::SeqCst);
                let limit = native_errors::shortage(&self.config(), name(self.zones[0]));
                self.cloud.external_actor().set_capacity(vec![limit]);
            }
        }
        true
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        self.add(operation, When::Nth(nth), &fault);
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        self.add(operation, When::Always, &fault);
    }

    async fn all_injected(&self) -> bool {
        self.cloud.faults().unused_rules().is_empty()
    }

    async fn clear(&self) -> bool {
        let all_injected = self.all_injected().await;
        self.cloud.faults().clear();
        if self.is_short.swap(false, Ordering::SeqCst) {
            self.cloud.external_actor().set_capacity(Vec::new());
        }
        all_injected
    }
}

impl MemoryHarness {
    fn add(&self, operation: WireOp, when: When, fault: &WireFault) {
        self.add_native(operation, when, native(fault));
    }

    fn add_native(&self, operation: WireOp, when: When, fault: Fault) {
        let call = match operation {
            WireOp::Any => None,
            WireOp::Launch => Some(WireCall::Launch),
            WireOp::Terminate => Some(WireCall::Terminate),
            WireOp::Stop => Some(WireCall::Stop),
            WireOp::Start => Some(WireCall::Start),
            WireOp::Describe => Some(WireCall::Describe),
            WireOp::List => Some(WireCall::ListPage),
            WireOp::FindLaunch => Some(WireCall::FindLaunch),
            WireOp::UpdateTags => Some(WireCall::UpdateTags),
        };
        let operation = call.map(String::from);
        self.cloud.faults().add(Rule {
            operation,
            when,
            fault,
        });
    }
}

/// Returns the memory cloud's fault for a fault of the kit.
fn native(fault: &WireFault) -> Fault {
    match fault {
        WireFault::Throttled(delay) => Fault::Refused(RefusalReason::Throttled(*delay)),
        WireFault::BadCredentials => Fault::Refused(RefusalReason::BadCredentials),
        WireFault::Forbidden => Fault::Refused(RefusalReason::AccessDenied),
        WireFault::Capacity => Fault::Refused(RefusalReason::Capacity),
        WireFault::Quota => Fault::Refused(RefusalReason::Quota),
        WireFault::RequestLost => Fault::Lost(Phase::Before),
        WireFault::ResponseLost => Fault::Lost(Phase::After),
        WireFault::ServerErrorBefore => Fault::ServerError(Phase::Before),
        WireFault::ServerErrorAfter => Fault::ServerError(Phase::After),
        WireFault::Malformed => Fault::Malformed,
        WireFault::StaleRead => Fault::StaleRead,
        WireFault::UnknownState(word) => Fault::UnknownState(word.clone()),
        WireFault::FailsLate(code) => Fault::FailsLate {
            code: code.clone(),
            message: "as planned".to_owned(),
        },
        WireFault::Hang => Fault::Hang(Phase::Before),
        WireFault::CrashBefore => Fault::Crash(Phase::Before),
        WireFault::CrashAfter => Fault::Crash(Phase::After),
    }
}

#[async_trait]
impl ExternalActor for MemoryHarness {
    #[expect(
        clippy::panic,
        reason = "the reference has no quota, so this is a bug of the harness"
    )]
    async fn launch(&self, tags: Tags) -> InstanceId {
        let mut config = self.config();
        config.tags = tags;
        let launched = self.cloud.external_actor().launch(&config);
        launched
            .unwrap_or_else(|error| panic!("the external actor cannot launch: {error}"))
            .id
    }

    async fn stop(&self, id: &InstanceId) {
        // The clause reads the result itself.
        let _ = self.cloud.external_actor().stop(id);
    }

    async fn terminate(&self, id: &InstanceId) {
        let _ = self.cloud.external_actor().terminate(id);
    }

    async fn disconnect(&self, id: &InstanceId) -> Option<Scope> {
        let zone = self.cloud.oracle().instance(id)?.info.placement.zone?;
        self.cloud.external_actor().disconnect(zone.clone());
        Some(Scope::zone(zone))
    }

    async fn reconnect(&self) {
        for zone in self.zones {
            self.cloud.external_actor().reconnect(name(zone));
        }
        self.cloud.external_actor().set_capacity(Vec::new());
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let instances = self.cloud.oracle().instances().into_iter();
        let taken = instances.filter(|truth| truth.holds_machine).count() as u64;
        let limit = Capacity::of(taken.saturating_add(count));
        self.cloud.external_actor().set_capacity(vec![limit]);
        true
    }
}
