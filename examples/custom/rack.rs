//! A backend in one file: a simulated rack of machines that can be switched on and off.
//!
//! It is small and still fulfils the contract: launch tokens, exact tags, legal states, actionable
//! errors. It has no optional verbs and no placement, and declares that.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv4Addr},
    num::{NonZeroU32, NonZeroUsize},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use fleetwright::{
    Call, Capabilities, CloudInstanceState, Fingerprint, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken,
    Operation, Result, RetryAdvice, TagLimits, async_trait,
};
use tokio::time::Instant;

/// How long it takes to switch a machine on or off.
const SWITCH_TIME: Duration = Duration::from_millis(200);

/// The declared retention of tokens and terminated machines. The rack keeps them forever.
const RETENTION: Duration = Duration::from_secs(3600);

/// A handle on the rack. Clones refer to the same rack.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    capabilities: Arc<Capabilities>,
    machines: Arc<Mutex<Machines>>,
}

#[derive(Debug, Default)]
struct Machines {
    by_number: BTreeMap<u32, Machine>,
    tokens: HashMap<LaunchToken, (Fingerprint, u32)>,
}

#[derive(Debug)]
struct Machine {
    config: InstanceConfig,
    id: InstanceId,
    state: CloudInstanceState,
    since: Instant,
    launched: SystemTime,
    address: Ipv4Addr,
}

impl Machine {
    /// Returns the current state: a transition finishes after `SWITCH_TIME`.
    fn state(&self) -> CloudInstanceState {
        let target = match self.state {
            CloudInstanceState::Pending | CloudInstanceState::Running => {
                CloudInstanceState::Running
            }
            CloudInstanceState::Stopping | CloudInstanceState::Stopped => {
                CloudInstanceState::Stopped
            }
            CloudInstanceState::Terminating | CloudInstanceState::Terminated => {
                CloudInstanceState::Terminated
            }
        };
        if self.since.elapsed() >= SWITCH_TIME {
            target
        } else {
            self.state
        }
    }

    /// Starts the transition to `state`.
    fn start_transition(&mut self, state: CloudInstanceState) {
        self.state = state;
        self.since = Instant::now();
    }

    fn info(&self) -> InstanceInfo {
        let mut info = InstanceInfo::new(self.id.clone(), self.state());
        info.private_ip = (!info.state.is_final()).then_some(IpAddr::V4(self.address));
        info.tags = self.config.tags.clone();
        info.image = Some(self.config.image.clone());
        info.instance_type = Some(self.config.instance_type.clone());
        info.launch_time = Some(self.launched.into());
        info
    }
}

impl Rack {
    pub(crate) fn new() -> Self {
        let mut capabilities = Capabilities::new("rack", TagLimits::new(20, 64, 128), 4096);
        capabilities.token_after_terminate = RETENTION;
        capabilities.terminated_visible = RETENTION;
        capabilities.terminated_listed = true;
        capabilities.page_size = NonZeroUsize::MIN.saturating_add(99);
        capabilities.poll_interval = Duration::from_millis(50);
        Self {
            capabilities: Arc::new(capabilities),
            machines: Arc::default(),
        }
    }

    /// Returns all machines with their configs, past the trait.
    pub(crate) fn snapshot(&self) -> Vec<(InstanceInfo, InstanceConfig)> {
        let machines = self.machines();
        machines
            .by_number
            .values()
            .map(|machine| (machine.info(), machine.config.clone()))
            .collect()
    }

    fn machines(&self) -> MutexGuard<'_, Machines> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the machine `id`, or returns "not found".
    fn with_machine<T>(
        &self,
        operation: Operation,
        id: &InstanceId,
        work: impl FnOnce(&mut Machine, &Call) -> Result<T>,
    ) -> Result<T> {
        let call = Call::new("rack", operation);
        let mut machines = self.machines();
        let machine = machines
            .by_number
            .values_mut()
            .find(|machine| machine.id == *id);
        work(machine.ok_or_else(|| call.not_found(id))?, &call)
    }
}

#[async_trait]
impl InstanceProvisioner for Rack {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = Call::new("rack", Operation::LaunchInstance);
        config
            .check(&self.capabilities)
            .map_err(|value| call.invalid(value))?;
        let mut machines = self.machines();
        let fingerprint = config.fingerprint(NonZeroU32::MIN);
        if let Some(token) = &config.launch_token {
            if let Some((original, number)) = machines.tokens.get(token) {
                if *original != fingerprint {
                    return Err(call.token_conflict(token));
                }
                let machine = machines
                    .by_number
                    .get(number)
                    .filter(|m| !m.state().is_ending());
                return machine
                    .map(Machine::info)
                    .ok_or_else(|| call.token_spent(token));
            }
        }
        let number = machines
            .by_number
            .last_key_value()
            .map_or(0, |(last, _)| last + 1);
        let [_, a, b, c] = number.to_be_bytes();
        let machine = Machine {
            config: config.clone(),
            id: InstanceId::new(format!("machine-{number}"))
                .map_err(|value| call.invalid(value))?,
            state: CloudInstanceState::Pending,
            since: Instant::now(),
            launched: SystemTime::now(),
            address: Ipv4Addr::new(10, a, b, c),
        };
        let info = machine.info();
        machines.by_number.insert(number, machine);
        if let Some(token) = &config.launch_token {
            machines.tokens.insert(token.clone(), (fingerprint, number));
        }
        Ok(info)
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.with_machine(Operation::TerminateInstance, id, |machine, _| {
            if !machine.state().is_ending() {
                machine.start_transition(CloudInstanceState::Terminating);
            }
            Ok(())
        })
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.with_machine(Operation::StopInstance, id, |machine, call| {
            match machine.state() {
                CloudInstanceState::Pending | CloudInstanceState::Running => {
                    machine.start_transition(CloudInstanceState::Stopping);
                    Ok(())
                }
                CloudInstanceState::Stopping | CloudInstanceState::Stopped => Ok(()),
                state @ (CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                    Err(call.wrong_state(id, state, "running or stopped"))
                }
            }
        })
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.with_machine(
            Operation::StartInstance,
            id,
            |machine, call| match machine.state() {
                CloudInstanceState::Stopped => {
                    machine.start_transition(CloudInstanceState::Pending);
                    Ok(machine.info())
                }
                CloudInstanceState::Pending | CloudInstanceState::Running => Ok(machine.info()),
                CloudInstanceState::Stopping => Err(call.conflict(
                    "the machine is still stopping; retry when it is stopped",
                    RetryAdvice::After(SWITCH_TIME),
                )),
                state @ (CloudInstanceState::Terminating | CloudInstanceState::Terminated) => {
                    Err(call.wrong_state(id, state, "stopped"))
                }
            },
        )
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.with_machine(Operation::DescribeInstance, id, |machine, _| {
            Ok(machine.info().into())
        })
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let infos = self.snapshot().into_iter().map(|(info, _)| info);
        Ok(infos.filter(|info| filter.matches(info)).collect())
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let machines = self.machines();
        let number = machines.tokens.get(token).map(|(_, number)| number);
        let machine = number.and_then(|number| machines.by_number.get(number));
        Ok(LaunchRecord::from_instances(
            machine.map(Machine::info).into_iter().collect(),
        ))
    }
}
