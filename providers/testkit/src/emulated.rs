//! The contract harness of a provider on an emulator: real sockets, real time, fast transitions.
//!
//! Owns everything that is the same for every cloud. A provider's tests implement [`EmulatedAccount`]
//! and use [`EmulatedHarness`] with it. Nothing here reads a provider's code: the truth comes from the
//! emulator's oracle, and ids and tags are built a second time, so that a mistake in the provider
//! cannot hide itself.
#![allow(clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeMap, fmt::Debug, num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Operation, Placement,
    Scope, Tags, Zone, async_trait,
};
use fleetwright_contract_tests::{
    ExternalActor, Faults, Harness, NativeError, Oracle, Truth, WireFault, WireOp,
};
use fleetwright_emulators::{CallRecord, Capacity, Cloud, CommonKnobs as _, Emulator};

use crate::EmulatorFaults;

/// How long reads of [`EmulatedHarness::new`] may be stale.
pub const READ_LAG: Duration = Duration::from_millis(40);

/// The consistency window for providers on an emulator: twice [`READ_LAG`].
pub const CONSISTENCY_WINDOW: Duration = READ_LAG.saturating_mul(2);

/// How often providers on an emulator poll.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long one call or one change of state may take in the contract.
const BUDGET: Duration = Duration::from_secs(20);

/// How many emulators share a long sweep of the contract, which mostly waits.
const SWEEP_ACCOUNTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(5);

/// The true state of an account's cloud.
pub type OracleOf<A> = <<A as EmulatedAccount>::Cloud as Cloud>::Oracle;

/// The knobs of an account's cloud.
pub type KnobsOf<A> = <<A as EmulatedAccount>::Cloud as Cloud>::Knobs;

/// The external actions of an account's cloud.
pub type ExternalActionOf<A> = <<A as EmulatedAccount>::Cloud as Cloud>::ExternalAction;

/// The names that exist, or do not exist, in a new account on an emulator.
#[derive(Clone, Copy, Debug)]
pub struct Fixtures {
    /// The backend's name for reports.
    pub backend: &'static str,
    /// An image.
    pub image: &'static str,
    /// Another image.
    pub other_image: &'static str,
    /// An image that does not exist.
    pub unknown_image: &'static str,
    /// An instance type that does not exist.
    pub unknown_type: &'static str,
    /// An instance type.
    pub instance_type: &'static str,
    /// Another instance type.
    pub other_type: &'static str,
    /// A zone.
    pub zone: &'static str,
    /// A network that reaches [`zone`](Self::zone) and that no launch without a network has, as reads report it. An
    /// account for the contract has it.
    pub network: &'static str,
    /// Security groups, as reads report them. An account for the contract has them.
    pub security_groups: &'static [&'static str],
    /// A well-formed id that no instance has.
    pub unknown_id: &'static str,
    /// A code with which a launch fails after it was accepted.
    pub late_failure_code: &'static str,
    /// The code with which a launch fails for missing capacity after it was accepted.
    pub late_capacity_code: &'static str,
}

/// What differs between the clouds: how to open a handle, and how to read and change the emulator.
#[async_trait]
pub trait EmulatedAccount: Send + Sync + 'static {
    /// The emulated cloud.
    type Cloud: Cloud;
    /// The provider.
    type Provisioner: InstanceProvisioner + 'static;
    /// The provider's launch config.
    type LaunchConfig: Send;
    /// The provider's options.
    type Options: Send;
    /// An instance as the emulator's oracle has it.
    type Instance: Clone + Debug;

    /// The names in a new account.
    const FIXTURES: Fixtures;

    /// Returns knobs with transitions that take milliseconds and reads that are never stale.
    fn fast_knobs() -> KnobsOf<Self>;

    /// Changes the knobs for the contract, apart from the lag of reads and writes. Creates the network and the security groups
    /// of the fixtures.
    fn adjust_for_contract(knobs: &mut KnobsOf<Self>);

    /// Returns the launch config of [`Harness::open`].
    fn launch_config() -> Self::LaunchConfig;

    /// Returns the launch config of [`Harness::open_with_other_options`]: one that places a launch elsewhere, or
    /// sets what [`launch_config`](Self::launch_config) leaves open.
    fn other_launch_config() -> Self::LaunchConfig;

    /// Returns options that suit the emulator's speed. If `wait_for_launch` is false, a launch returns
    /// as soon as the cloud has accepted it; clouds without such an option ignore it.
    fn options(emulator: &Emulator<Self::Cloud>, wait_for_launch: bool) -> Self::Options;

    /// Opens a handle on the account at an endpoint.
    async fn connect(
        endpoint: &str,
        launch: Self::LaunchConfig,
        options: Self::Options,
    ) -> Self::Provisioner;

    /// Returns the keys and tokens that [`connect`](Self::connect) uses. Default: none.
    fn secrets() -> Vec<String> {
        Vec::new()
    }

    /// Returns all instances that the cloud has a record of.
    fn instances(oracle: &OracleOf<Self>) -> &[Self::Instance];

    /// Returns the id that the emulator's external actions and oracle use.
    fn native_id(instance: &Self::Instance) -> &str;

    /// Returns the id that the provider must report, built without the provider's code.
    fn id(instance: &Self::Instance) -> InstanceId;

    /// Returns whether the instance occupies a machine that is paid for.
    fn holds_machine(instance: &Self::Instance) -> bool;

    /// Returns the truth about an instance; `None` if the cloud failed to create it.
    fn truth(instance: &Self::Instance, oracle: &OracleOf<Self>) -> Option<Truth>;

    /// Describes everything that exists of the instances with `tags` and costs money.
    fn leftovers(oracle: &OracleOf<Self>, tags: &Tags) -> Vec<String>;

    /// Describes everything that exists of the images that snapshots created with `tags`.
    fn images(oracle: &OracleOf<Self>, tags: &Tags) -> Vec<String>;

    /// Returns the number of calls by operation.
    fn calls(oracle: &OracleOf<Self>) -> &BTreeMap<String, u64>;

    /// Returns how many of these calls a backend had to make only because the cloud's lists were
    /// incomplete. Default: none.
    fn excused_calls(oracle: &OracleOf<Self>) -> u64 {
        let _ = oracle;
        0
    }

    /// Returns the native operations that a fault affects for an operation of the kit. An empty list
    /// means any operation.
    fn operations(operation: WireOp, fault: &WireFault) -> Vec<<Self::Cloud as Cloud>::Operation>;

    /// Returns the errors that the cloud sends, each with what it means, for launches of the config of the fixtures.
    /// Default: none, so that ERRORS-15 and ERRORS-16 inject the kit's faults.
    fn native_errors() -> Vec<NativeError> {
        Vec::new()
    }

    /// Returns the native operations that fail with a native error of a call. Default: those that a missing permission
    /// affects.
    fn native_operations(operation: Operation) -> Vec<<Self::Cloud as Cloud>::Operation> {
        Self::operations(WireOp::from(operation), &WireFault::Forbidden)
    }

    /// Returns the external action that launches one instance with these tags.
    fn external_launch(tags: &Tags) -> ExternalActionOf<Self>;

    /// Returns the external action that stops an instance.
    fn external_stop(id: &InstanceId) -> ExternalActionOf<Self>;

    /// Returns the external action that terminates an instance.
    fn external_termination(id: &InstanceId) -> ExternalActionOf<Self>;

    /// Makes the part of the cloud with an instance unreachable and returns that part. Default: `None`,
    /// for clouds without parts that fail separately.
    fn disconnect(knobs: &mut KnobsOf<Self>, id: &InstanceId) -> Option<Scope> {
        let _ = (knobs, id);
        None
    }

    /// Makes every part of the cloud reachable again. Default: no change.
    fn reconnect(knobs: &mut KnobsOf<Self>) {
        let _ = knobs;
    }
}

/// One account on its own emulator.
pub struct EmulatedHarness<A: EmulatedAccount> {
    emulator: Arc<Emulator<A::Cloud>>,
    wait_for_launch: bool,
}

impl<A: EmulatedAccount> Debug for EmulatedHarness<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmulatedHarness")
            .field("emulator", &self.emulator)
            .field("wait_for_launch", &self.wait_for_launch)
            .finish()
    }
}

impl<A: EmulatedAccount> EmulatedHarness<A> {
    /// Creates an account for the contract: fast transitions, reads that are stale for up to
    /// [`READ_LAG`], and launches that return as soon as the cloud has accepted them.
    #[allow(clippy::new_without_default, reason = "it starts a server")]
    pub fn new() -> Self {
        Self::with_knobs(|knobs| {
            let lag = knobs.lag_mut();
            lag.reads = READ_LAG;
            lag.writes = READ_LAG;
            A::adjust_for_contract(knobs);
        })
    }

    /// Creates an account with fast transitions, without stale reads, and with the knobs that `adjust`
    /// changes.
    pub fn with_knobs(adjust: impl FnOnce(&mut KnobsOf<A>)) -> Self {
        let mut knobs = A::fast_knobs();
        adjust(&mut knobs);
        let emulator = Emulator::start(knobs).expect("a free port");
        Self {
            emulator: Arc::new(emulator),
            wait_for_launch: false,
        }
    }

    /// Lets launches wait for their operation for the provider's default time.
    #[must_use]
    pub fn wait_for_launch(mut self) -> Self {
        self.wait_for_launch = true;
        self
    }

    /// Returns the emulator.
    pub fn emulator(&self) -> &Emulator<A::Cloud> {
        &self.emulator
    }

    /// Returns the default launch config.
    pub fn launch_config() -> A::LaunchConfig {
        A::launch_config()
    }

    /// Returns the options of [`Harness::open`].
    pub fn options(&self) -> A::Options {
        A::options(&self.emulator, self.wait_for_launch)
    }

    /// Opens a handle with a launch config.
    pub async fn open_with(&self, launch: A::LaunchConfig) -> A::Provisioner {
        self.open_with_options(launch, self.options()).await
    }

    /// Opens a handle with a launch config and options.
    pub async fn open_with_options(
        &self,
        launch: A::LaunchConfig,
        options: A::Options,
    ) -> A::Provisioner {
        A::connect(&self.emulator.endpoint(), launch, options).await
    }

    /// Opens a handle on the account at another endpoint.
    pub async fn open_at(endpoint: &str, options: A::Options) -> A::Provisioner {
        A::connect(endpoint, A::launch_config(), options).await
    }

    /// Returns the latest call of an operation, as it came over the wire.
    pub fn latest_call(&self, operation: &str) -> CallRecord {
        let calls = self.emulator.calls();
        let latest = calls
            .into_iter()
            .rev()
            .find(|call| call.operation == operation);
        latest.unwrap_or_else(|| panic!("there was no call of {operation}"))
    }

    /// Returns how many calls of an operation there were.
    pub fn call_count(&self, operation: &str) -> u64 {
        let oracle = self.emulator.oracle();
        A::calls(&oracle)
            .get(operation)
            .copied()
            .unwrap_or_default()
    }

    /// Returns how many calls there were.
    pub fn total_calls(&self) -> u64 {
        A::calls(&self.emulator.oracle()).values().sum()
    }

    /// Returns the truth about the only instance.
    pub fn only_instance(&self) -> A::Instance {
        let oracle = self.emulator.oracle();
        match A::instances(&oracle) {
            [instance] => instance.clone(),
            instances => panic!("one instance is expected: {instances:?}"),
        }
    }
}

#[async_trait]
impl<A: EmulatedAccount> Harness for EmulatedHarness<A> {
    fn name(&self) -> String {
        A::FIXTURES.backend.to_owned()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.open_with(A::launch_config()).await)
    }

    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.open_with(A::other_launch_config()).await)
    }

    fn config(&self) -> InstanceConfig {
        InstanceConfig::new(
            parse_name(A::FIXTURES.image),
            parse_name(A::FIXTURES.instance_type),
        )
    }

    fn unknown_id(&self) -> InstanceId {
        parse_name(A::FIXTURES.unknown_id)
    }

    fn budget(&self) -> Duration {
        BUDGET
    }

    fn sweep_accounts(&self) -> NonZeroUsize {
        SWEEP_ACCOUNTS
    }

    fn unknown_image(&self) -> Option<ImageId> {
        Some(parse_name(A::FIXTURES.unknown_image))
    }

    fn unknown_type(&self) -> Option<InstanceType> {
        Some(parse_name(A::FIXTURES.unknown_type))
    }

    fn other_image(&self) -> Option<ImageId> {
        Some(parse_name(A::FIXTURES.other_image))
    }

    fn other_type(&self) -> Option<InstanceType> {
        Some(parse_name(A::FIXTURES.other_type))
    }

    fn zone(&self) -> Option<Zone> {
        Some(parse_name(A::FIXTURES.zone))
    }

    fn placement(&self) -> Placement {
        let mut placement = Placement::default();
        placement.zone = self.zone();
        placement.network = Some(parse_name(A::FIXTURES.network));
        let groups = A::FIXTURES.security_groups.iter();
        placement.security_groups = groups.map(|group| parse_name(group)).collect();
        placement
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        Some(Arc::new(EmulatorAccess::<A>(Arc::clone(&self.emulator))))
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        let emulator = Arc::clone(&self.emulator);
        let fixtures = A::FIXTURES;
        let codes = [fixtures.late_failure_code, fixtures.late_capacity_code];
        let faults = EmulatorFaults::new(emulator, A::operations, codes);
        let faults = faults.with_native_errors(A::native_errors(), A::native_operations);
        Some(Arc::new(faults))
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        Some(Arc::new(EmulatorAccess::<A>(Arc::clone(&self.emulator))))
    }

    fn secrets(&self) -> Vec<String> {
        A::secrets()
    }
}

/// Parses a name that the tests know to be valid.
pub fn parse_name<T: for<'a> TryFrom<&'a str>>(text: &str) -> T {
    T::try_from(text).unwrap_or_else(|_| panic!("{text} is not a valid name"))
}

/// Reads and changes the emulator past its API.
struct EmulatorAccess<A: EmulatedAccount>(Arc<Emulator<A::Cloud>>);

impl<A: EmulatedAccount> EmulatorAccess<A> {
    fn adjust_knobs<T>(&self, adjust: impl FnOnce(&mut KnobsOf<A>) -> T) -> T {
        let mut knobs = self.0.knobs();
        let result = adjust(&mut knobs);
        self.0.set_knobs(knobs);
        result
    }
}

#[async_trait]
impl<A: EmulatedAccount> Oracle for EmulatorAccess<A> {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let oracle = self.0.oracle();
        A::instances(&oracle)
            .iter()
            .filter_map(|instance| A::truth(instance, &oracle))
            .filter(|truth| truth.info.tags.contains_all(tags))
            .collect()
    }

    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        A::leftovers(&self.0.oracle(), tags)
    }

    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        Some(A::images(&self.0.oracle(), tags))
    }

    async fn calls(&self) -> u64 {
        let oracle = self.0.oracle();
        let calls: u64 = A::calls(&oracle).values().sum();
        calls.saturating_sub(A::excused_calls(&oracle))
    }
}

#[async_trait]
impl<A: EmulatedAccount> ExternalActor for EmulatorAccess<A> {
    async fn launch(&self, tags: Tags) -> InstanceId {
        let launched = self.0.perform_external(A::external_launch(&tags));
        let launched = launched.expect("an external launch");
        let oracle = self.0.oracle();
        let mut instances = A::instances(&oracle).iter();
        let instance = instances.find(|instance| A::native_id(instance) == launched[0]);
        A::id(instance.expect("the instance that was just launched"))
    }

    async fn stop(&self, id: &InstanceId) {
        // The cloud may refuse it in the current state, as it would refuse any client.
        let _ = self.0.perform_external(A::external_stop(id));
    }

    async fn terminate(&self, id: &InstanceId) {
        // As above.
        let _ = self.0.perform_external(A::external_termination(id));
    }

    async fn disconnect(&self, id: &InstanceId) -> Option<Scope> {
        self.adjust_knobs(|knobs| A::disconnect(knobs, id))
    }

    async fn reconnect(&self) {
        self.adjust_knobs(|knobs| {
            knobs.capacity_mut().clear();
            A::reconnect(knobs);
        });
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let oracle = self.0.oracle();
        let instances = A::instances(&oracle).iter();
        let held = instances
            .filter(|instance| A::holds_machine(instance))
            .count() as u64;
        self.adjust_knobs(|knobs| *knobs.capacity_mut() = vec![Capacity::of(held + count)]);
        true
    }
}
