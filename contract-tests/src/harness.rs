//! What the author of a backend gives to the kit.
//!
//! A [`Harness`] is one account, fresh for each clause. Four methods are required. Everything else
//! that a test environment can do (reveal the truth, inject faults, act as somebody else) is optional.
//! A clause that needs a missing part is reported as not run, never as passed.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner, Operation, Placement, Scope,
    Tags, Zone,
};

use crate::{NativeError, NotApplicable, waiver::Peer};

/// One account of a backend. The kit creates a new harness for each clause.
///
/// The account may be shared, as a real one is: everything that the kit launches carries
/// [`SCOPE_TAG`](crate::SCOPE_TAG) with a value of its own, and clauses only touch their own
/// instances.
///
/// # Example
///
/// A harness that also offers what more clauses need. Every part that you add makes more of the
/// contract run:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use fleetwright::{ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Zone, async_trait};
/// use fleetwright_contract_tests::{Harness, OnMissing, Time};
/// use fleetwright_memory::MemoryCloud;
///
/// struct MyHarness(MemoryCloud);
///
/// #[async_trait]
/// impl Harness for MyHarness {
///     fn name(&self) -> String {
///         "my-backend".to_owned()
///     }
///     // A new handle each time, as a process that has just started would open it.
///     async fn open(&self) -> Arc<dyn InstanceProvisioner> {
///         Arc::new(self.0.provisioner())
///     }
///     fn config(&self) -> InstanceConfig {
///         InstanceConfig::builder("image", "small").build().unwrap()
///     }
///     fn unknown_id(&self) -> InstanceId {
///         "i-0000000000000000".parse().unwrap()
///     }
///     // No sockets are involved, so hours can pass in no time.
///     fn time(&self) -> Time {
///         Time::Virtual
///     }
///     fn budget(&self) -> Duration {
///         Duration::from_secs(600)
///     }
///     // For clauses about resizing, and about the same token with another config.
///     fn other_type(&self) -> Option<InstanceType> {
///         "large".parse().ok()
///     }
///     // While the harness is being written: clauses that need more are reported and do not fail.
///     fn on_missing(&self) -> OnMissing {
///         OnMissing::ReportNotRun
///     }
/// }
/// ```
#[async_trait]
pub trait Harness: Send + Sync {
    /// Returns the backend's name for reports.
    fn name(&self) -> String;

    /// Opens a new handle on the account, as a process that has just started would.
    async fn open(&self) -> Arc<dyn InstanceProvisioner>;

    /// Opens a handle whose own launch options differ from those of [`open`](Self::open), as after a new
    /// deployment: another default zone or network, other settings that a config does not have. Default:
    /// as `open`, for backends whose handles have no such options.
    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        self.open().await
    }

    /// Returns a config that can be launched here: an image and a type that exist. The kit adds tags
    /// and launch tokens.
    fn config(&self) -> InstanceConfig;

    /// Returns a well-formed id that no instance has or ever had.
    fn unknown_id(&self) -> InstanceId;

    /// Returns how time passes. Default: [`Time::Real`].
    fn time(&self) -> Time {
        Time::Real
    }

    /// Returns how long one call or one change of state may take. Be generous in virtual time, where
    /// waiting costs nothing, and allow several poll intervals in real time. Default: 10 seconds in
    /// real time, 300 seconds in virtual time.
    fn budget(&self) -> Duration {
        self.time().default_budget()
    }

    /// Returns how many accounts the long sweeps of the contract may use at the same time in real time: CRASH-03,
    /// CRASH-04, VERBS-12 and the family MATRIX. Each account is that of another harness and has a part of the cases. More than one is
    /// for a test environment in which calls mostly wait and accounts are free, such as an emulator in the process.
    /// Default: one.
    fn sweep_accounts(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// Returns what this cloud does not have, so that no test environment can show it: throttling, for
    /// instance. The clauses about it are then reported as not applicable. Default: nothing, which is
    /// right for every cloud with an API of its own.
    fn not_applicable(&self) -> Vec<NotApplicable> {
        Vec::new()
    }

    /// Returns the keys of tags that a policy of the account adds to every instance, in addition to the
    /// caller's. Reads may report them; the kit ignores them. Default: none.
    fn policy_tag_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns an image that does not exist here, if the backend checks images when it launches.
    fn unknown_image(&self) -> Option<fleetwright::ImageId> {
        None
    }

    /// Returns an instance type that does not exist here, if the backend checks types when it launches.
    fn unknown_type(&self) -> Option<fleetwright::InstanceType> {
        None
    }

    /// Returns a second image, for reimaging.
    fn other_image(&self) -> Option<fleetwright::ImageId> {
        None
    }

    /// Returns a second instance type, for resizing and for "same token, other config".
    fn other_type(&self) -> Option<fleetwright::InstanceType> {
        None
    }

    /// Returns a zone that launches can name.
    fn zone(&self) -> Option<Zone> {
        None
    }

    /// Returns zone, network and security groups that launches can name together, as reads report them, and
    /// that differ from those of a launch that names none. What is not set here is not tested; the [oracle](Self::oracle)
    /// must know what is. Default: only the [`zone`](Self::zone).
    fn placement(&self) -> Placement {
        let mut placement = Placement::default();
        placement.zone = self.zone();
        placement
    }

    /// Returns the oracle, which reads the truth past the API.
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        None
    }

    /// Returns the fault injector between the handles and the cloud.
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        None
    }

    /// Returns somebody else with access to the account.
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        None
    }

    /// Returns the secrets that the handles were opened with: keys, tokens, passwords, each at least 8
    /// characters long. The kit looks for them in every error, in debug output, and in spans and events
    /// (ERRORS-14), and shows them nowhere itself. Default: none, so that the clause looks for user data only.
    ///
    /// ```
    /// use fleetwright_contract_tests::Harness as _;
    /// use fleetwright_contract_zoo::MemoryHarness;
    ///
    /// let secrets = MemoryHarness::new().secrets();
    /// assert!(secrets.iter().all(|secret| secret.len() >= 8));
    /// ```
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the name and the version of the emulator or the like that the backend is tested
    /// against, if it is not the real cloud. Waivers refer to it.
    fn peer(&self) -> Option<Peer> {
        None
    }

    /// Returns the text of the waiver file, usually from `include_str!`; see
    /// [`waiver`](crate::waiver). Default: no waivers.
    fn waivers(&self) -> String {
        String::new()
    }

    /// Returns what happens to a clause that needs a part that this harness does not offer. Default:
    /// [`OnMissing::Fail`].
    fn on_missing(&self) -> OnMissing {
        OnMissing::Fail
    }

    /// Returns how a program waits for a state. Override it only to test a broken way of waiting.
    /// Default: the core's [`fleetwright::wait`].
    fn state_waiter(&self) -> Arc<dyn StateWaiter> {
        Arc::new(CoreStateWaiter)
    }
}

/// How time passes under a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Real time and real sockets. Changes of state should be fast; the kit polls every few
    /// milliseconds.
    Real,
    /// Tokio's paused clock: hours pass in no time. Never with sockets.
    Virtual,
}

impl Time {
    /// Returns the [budget](Harness::budget) of a harness that names none: 10 seconds in real time, 300
    /// seconds in virtual time.
    pub const fn default_budget(self) -> Duration {
        match self {
            Self::Real => Duration::from_secs(10),
            Self::Virtual => Duration::from_secs(300),
        }
    }
}

/// What happens to a clause that needs a part that a harness does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// Its test fails and names the missing part: nothing is skipped silently.
    Fail,
    /// It is reported as not run, and the backend as not conformant. For a live account, or while a
    /// harness is being written.
    ReportNotRun,
}

/// The truth about an instance, as the cloud itself knows it.
#[derive(Clone, Debug)]
pub struct Truth {
    /// What a read without lag would return.
    pub info: InstanceInfo,
    /// The user data that the instance was given, to the byte.
    pub user_data: Option<Vec<u8>>,
    /// The size of its root disk in gigabytes, while the disk exists.
    pub disk_size_gb: Option<u32>,
    /// Whether it occupies a machine that is paid for.
    pub holds_machine: bool,
    /// How often it has booted, if the cloud counts that.
    pub boots: Option<u32>,
}

impl Truth {
    /// The truth about an instance of a backend that keeps the config of its launch. It holds a machine
    /// unless it is stopped or terminated, and boots are not counted.
    ///
    /// ```
    /// use fleetwright::{CloudInstanceState, InstanceConfig, InstanceId, InstanceInfo};
    /// use fleetwright_contract_tests::Truth;
    ///
    /// let config = InstanceConfig::builder("image", "small").build().unwrap();
    /// let info = InstanceInfo::new(InstanceId::new("i-1").unwrap(), CloudInstanceState::Stopped);
    /// assert!(!Truth::of(info, &config).holds_machine);
    /// ```
    pub fn of(info: InstanceInfo, config: &InstanceConfig) -> Self {
        let stopped = info.state == fleetwright::CloudInstanceState::Stopped;
        let data = config.user_data.as_ref();
        Self {
            holds_machine: !stopped && !info.state.is_final(),
            user_data: data.map(|data| data.as_bytes().to_vec()),
            disk_size_gb: config.disk_size_gb.map(Into::into),
            boots: None,
            info,
        }
    }
}

/// Reads the truth past the API. It never lags, and reading changes nothing.
///
/// An emulator usually has an endpoint for it; a simulated cloud in the process reads its own memory.
/// Without an oracle, clauses about user data, disks, machines, leftovers and the number of calls are not
/// run, and the others have only the list to count instances with.
///
/// ```
/// use fleetwright::{InstanceProvisioner as _, Tags};
/// use fleetwright_contract_tests::Harness as _;
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let harness = MemoryHarness::new();
/// let oracle = harness.oracle().expect("the memory cloud has one");
/// harness.open().await.launch_instance(&harness.config()).await.unwrap();
/// let instances = oracle.instances(&Tags::new()).await;
/// assert!(instances[0].holds_machine, "without waiting for a consistent read");
/// assert!(!oracle.leftovers(&Tags::new()).await.is_empty(), "the instance costs money");
/// # }
/// ```
#[async_trait]
pub trait Oracle: Send + Sync {
    /// Returns every instance with `tags` that the cloud has a record of, terminated ones included.
    async fn instances(&self, tags: &Tags) -> Vec<Truth>;

    /// Describes everything that exists of the instances with `tags` and costs money: instances that
    /// are not terminated, disks, network interfaces, addresses. One entry each.
    async fn leftovers(&self, tags: &Tags) -> Vec<String>;

    /// Describes everything that exists of the images that snapshots created with `tags`: the images, and the
    /// data that they are made of. One entry each. `None` if it cannot tell, which is the default.
    async fn images(&self, _tags: &Tags) -> Option<Vec<String>> {
        None
    }

    /// Returns how many calls the cloud has received.
    async fn calls(&self) -> u64;
}

/// Into which calls on the wire a fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireOp {
    /// Every call.
    Any,
    /// The call that creates an instance.
    Launch,
    /// The call that destroys an instance.
    Terminate,
    /// The call that stops an instance.
    Stop,
    /// The call that starts an instance.
    Start,
    /// The call that describes instances by id.
    Describe,
    /// One page of a list.
    List,
    /// The lookup of a launch by its token.
    FindLaunch,
    /// The change of tags.
    UpdateTags,
}

/// A fault of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// Refused: too many calls; retry after this time.
    Throttled(Duration),
    /// Refused: the credentials have expired.
    BadCredentials,
    /// Refused: the credentials do not allow the call.
    Forbidden,
    /// Refused: the cloud has no capacity.
    Capacity,
    /// Refused: the account's quota is reached.
    Quota,
    /// The request never arrives.
    RequestLost,
    /// The call is carried out, and its response never arrives.
    ResponseLost,
    /// An internal error, and the call was not carried out.
    ServerErrorBefore,
    /// An internal error, although the call was carried out.
    ServerErrorAfter,
    /// The call is carried out, and its response cannot be parsed.
    Malformed,
    /// A read returns the oldest data that the consistency window allows.
    StaleRead,
    /// The response contains this native state, which is not documented.
    UnknownState(String),
    /// A launch is accepted and fails later, with this code in its reason.
    FailsLate(String),
    /// The call never returns and has no effect.
    Hang,
    /// The calling process dies before the call has its effect: no call of the handle returns.
    CrashBefore,
    /// The calling process dies after the call had its effect.
    CrashAfter,
}

impl WireFault {
    /// The faults after which the caller does not know whether the call was carried out, for sweeps.
    pub const AMBIGUOUS: [Self; 5] = [
        Self::RequestLost,
        Self::ResponseLost,
        Self::ServerErrorBefore,
        Self::ServerErrorAfter,
        Self::Malformed,
    ];
}

/// Injects faults between every handle of the account and the cloud.
///
/// Faults act on native calls, of which one call of a handle may need several, and on every handle of
/// the account. With an emulator that has fault rules, each method is one request to it. A fault that an
/// environment cannot inject is left out in [`supports`](Self::supports); the clauses that need it
/// are then not run.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{ErrorKind, InstanceProvisioner as _};
/// use fleetwright_contract_tests::{Harness as _, WireFault, WireOp};
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let harness = MemoryHarness::new();
/// let faults = harness.faults().expect("the memory cloud injects them");
/// let throttled = WireFault::Throttled(Duration::from_secs(1));
/// faults.inject(WireOp::Launch, 1, throttled).await;
///
/// let error = harness.open().await.launch_instance(&harness.config()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Throttled);
/// assert!(faults.clear().await, "the fault was injected");
/// # }
/// ```
#[async_trait]
pub trait Faults: Send + Sync {
    /// Returns whether this fault can be injected here.
    fn supports(&self, fault: &WireFault) -> bool;

    /// Returns the code of [`WireFault::FailsLate`] that clauses inject. Override it if the cloud reports a launch that
    /// failed with certain codes only.
    fn late_failure_code(&self) -> &str {
        "ContractFailsLate"
    }

    /// Returns the code with which this cloud reports that an accepted launch failed for missing capacity, for
    /// STATE-08. Default: none, so that the clause is not run.
    fn late_capacity_code(&self) -> Option<&str> {
        None
    }

    /// Returns the errors that the cloud sends, several for each fault of the kit, with what each means. ERRORS-15 and
    /// ERRORS-16 inject one after the other and judge what the backend makes of them. Default: none; the two clauses then
    /// inject the faults that are [supported](Self::supports).
    fn native_errors(&self) -> Vec<NativeError> {
        Vec::new()
    }

    /// Lets every native call that `operation` mainly consists of fail with one of
    /// [`native_errors`](Self::native_errors), without having an effect, until [`clear`](Self::clear). Returns `false` if that is not possible
    /// here, which is the default.
    async fn inject_native(&self, _operation: Operation, _error: &NativeError) -> bool {
        false
    }

    /// Injects a fault into call number `nth` of `operation`, counted from 1 and from now.
    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault);

    /// Injects a fault into every call of `operation` from now on.
    async fn inject_always(&self, operation: WireOp, fault: WireFault);

    /// Returns whether each fault was injected at least once.
    async fn all_injected(&self) -> bool;

    /// Removes all faults. Returns `true` if each of them was injected at least once.
    async fn clear(&self) -> bool;
}

/// Somebody else with access to the account: another person, another program, or the cloud itself.
/// Its changes bypass every handle.
///
/// ```
/// use fleetwright::{InstanceProvisioner as _, Tags};
/// use fleetwright_contract_tests::Harness as _;
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let harness = MemoryHarness::new();
/// let handle = harness.open().await;
/// let launched = handle.launch_instance(&harness.config()).await.unwrap();
///
/// // Somebody terminates the instance in the cloud's console.
/// let actor = harness.external_actor().expect("the memory cloud has one");
/// actor.terminate(&launched.id).await;
/// # }
/// ```
#[async_trait]
pub trait ExternalActor: Send + Sync {
    /// Launches an instance with these tags that no handle knows of.
    async fn launch(&self, tags: Tags) -> InstanceId;

    /// Stops an instance. The cloud has accepted the stop when this returns, because clauses read the state
    /// right after it.
    async fn stop(&self, id: &InstanceId);

    /// Terminates an instance. The cloud has accepted the termination when this returns.
    async fn terminate(&self, id: &InstanceId);

    /// Makes the part of the cloud with the instance `id` unreachable and returns it, as a list's
    /// gaps name it. Returns `None` if the cloud has no parts that fail separately.
    async fn disconnect(&self, id: &InstanceId) -> Option<Scope>;

    /// Makes every part reachable again, and undoes [`limit_capacity`](Self::limit_capacity).
    async fn reconnect(&self);

    /// Leaves capacity for only `count` more instances. Returns `false` if that is not possible
    /// here, which is the default.
    async fn limit_capacity(&self, _count: u64) -> bool {
        false
    }
}

/// Waits for a state, as a program that uses the backend does.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{CloudInstanceState, InstanceProvisioner as _, wait::WaitPolicy};
/// use fleetwright_contract_tests::Harness as _;
/// use fleetwright_contract_zoo::MemoryHarness;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let harness = MemoryHarness::new();
/// let handle = harness.open().await;
/// let launched = handle.launch_instance(&harness.config()).await.unwrap();
/// let policy = WaitPolicy::within(Duration::from_secs(60));
/// let waiter = harness.state_waiter(); // by default the core's
/// waiter.for_state(&*handle, &[launched.id], CloudInstanceState::Running, &policy).await.unwrap();
/// # }
/// ```
#[async_trait]
pub trait StateWaiter: Send + Sync {
    /// See [`fleetwright::wait::for_state`].
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: fleetwright::CloudInstanceState,
        policy: &fleetwright::wait::WaitPolicy,
    ) -> Result<Vec<fleetwright::InstanceStatus>, fleetwright::wait::WaitError>;
}

/// Waits with [`fleetwright::wait::for_state`].
#[derive(Clone, Copy, Debug)]
pub struct CoreStateWaiter;

#[async_trait]
impl StateWaiter for CoreStateWaiter {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: fleetwright::CloudInstanceState,
        policy: &fleetwright::wait::WaitPolicy,
    ) -> Result<Vec<fleetwright::InstanceStatus>, fleetwright::wait::WaitError> {
        fleetwright::wait::for_state(provisioner, ids, goal, policy).await
    }
}
