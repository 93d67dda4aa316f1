//! The backend: the seven calls as transactions on the file.

use std::{io, num::NonZeroU32, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use fleetwright::{
    Call, Capabilities,
    CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated, Terminating},
    Effect, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InvalidValue, LaunchRecord, LaunchToken, Operation, Problem, ProvisionError,
    Result, RetryAdvice, TagLimits, async_trait,
};

use crate::{
    Machine, Records,
    records::{RETENTION, SWITCH_TIME},
};

/// The images that machines can be launched with.
const IMAGES: [&str; 2] = ["debian", "alpine"];

/// The types of machines on the shelf.
const TYPES: [&str; 1] = ["blade"];

/// What happens around each transaction: nothing in a program, faults in a test.
#[async_trait]
pub trait Steps: Send + Sync {
    /// Called before a transaction. After an error it is not carried out.
    async fn before(&self, operation: Operation) -> io::Result<()>;
    /// Called after a transaction. An error hides its result.
    async fn after(&self, operation: Operation) -> io::Result<()>;
    /// Called for each record that a read returns: a newer version of the program may have written it.
    fn read(&self, operation: Operation, machine: Machine) -> Machine;
}

/// The steps of a program.
#[derive(Clone, Copy, Debug)]
pub struct NoFaults;

#[async_trait]
impl Steps for NoFaults {
    async fn before(&self, _: Operation) -> io::Result<()> {
        Ok(())
    }
    async fn after(&self, _: Operation) -> io::Result<()> {
        Ok(())
    }
    fn read(&self, _: Operation, machine: Machine) -> Machine {
        machine
    }
}

/// A handle on the shelf whose file is in a folder. Other handles may be in other processes.
pub struct Shelf {
    folder: PathBuf,
    steps: Arc<dyn Steps>,
    capabilities: Capabilities,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shelf({})", self.folder.display())
    }
}

impl Shelf {
    /// Opens the shelf in an existing folder.
    pub fn open(folder: impl Into<PathBuf>, steps: Arc<dyn Steps>) -> Self {
        let retention = RETENTION.to_std().unwrap_or_default();
        let mut declared = Capabilities::new("shelf", TagLimits::new(20, 64, 128), 4096);
        declared.token_after_terminate = retention;
        declared.terminated_visible = retention;
        declared.terminated_listed = true;
        declared.poll_interval = Duration::from_millis(5);
        // A list is one read of the file.
        declared.page_size = NonZeroUsize::MAX;
        Self {
            folder: folder.into(),
            steps,
            capabilities: declared,
        }
    }

    /// Runs a transaction, on a thread that may block.
    async fn transaction<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut Records, &Call) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let call = Call::new("shelf", operation);
        let failed = |error: io::Error| native_error(&call, &error);
        self.steps.before(operation).await.map_err(failed)?;
        let (folder, its_call) = (self.folder.clone(), call.clone());
        let done = tokio::task::spawn_blocking(move || {
            Records::transaction(&folder, |records| work(records, &its_call))
        });
        let done = done.await.map_err(io::Error::other).and_then(|done| done);
        let result = done.map_err(failed)?;
        self.steps.after(operation).await.map_err(failed)?;
        result
    }

    /// Runs a transaction on one machine, or returns "not found".
    async fn on_machine<T: Send + 'static>(
        &self,
        operation: Operation,
        id: &InstanceId,
        work: impl FnOnce(&mut Machine, &Call) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let id = id.clone();
        self.transaction(operation, move |records, call| {
            let machine = records.machines.iter_mut().find(|one| one.id == id);
            work(machine.ok_or_else(|| call.not_found(&id))?, call)
        })
        .await
    }

    /// Reads the machines that `wanted` selects.
    async fn read(
        &self,
        operation: Operation,
        wanted: impl Fn(&Machine) -> bool + Send + 'static,
    ) -> Result<Vec<InstanceInfo>> {
        let machines = self.transaction(operation, move |records, _| {
            let machines = records.machines.iter().filter(|one| wanted(one));
            Ok(machines.cloned().collect::<Vec<_>>())
        });
        let machines = machines.await?.into_iter();
        Ok(machines
            .map(|one| self.steps.read(operation, one).info())
            .collect())
    }
}

/// Returns the error of a call that the file system refused. Where the outcome is not known, it says so.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the operating system has many other kinds"
)]
fn native_error(call: &Call, error: &io::Error) -> ProvisionError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => call.forbidden("the folder does not allow it"),
        io::ErrorKind::TimedOut => call.timeout(Effect::Unknown),
        io::ErrorKind::InvalidData => {
            call.unexpected(Effect::Unknown, "the file is not one of this program")
        }
        _ => call.unavailable(Effect::Unknown, &error.to_string()),
    }
}

#[async_trait]
impl InstanceProvisioner for Shelf {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = Call::new("shelf", Operation::LaunchInstance);
        let checked = config.check(&self.capabilities);
        checked.map_err(|value| call.invalid(value))?;
        let (image, kind) = (config.image.as_str(), config.instance_type.as_str());
        for (field, wanted, offered) in [
            ("image", image, &IMAGES[..]),
            ("instance_type", kind, &TYPES),
        ] {
            if !offered.contains(&wanted) {
                let instead = offered.join(", ");
                let value = InvalidValue::new(field, Problem::NotOffered { instead });
                return Err(call.invalid(value));
            }
        }
        let config = config.clone();
        self.transaction(Operation::LaunchInstance, move |records, call| {
            if let Some(token) = &config.launch_token {
                let mut machines = records.machines.iter();
                let known = machines.find(|one| one.config.launch_token.as_ref() == Some(token));
                if let Some(machine) = known {
                    let fingerprint = |config: &InstanceConfig| config.fingerprint(NonZeroU32::MIN);
                    return if fingerprint(&machine.config) != fingerprint(&config) {
                        Err(call.token_conflict(token))
                    } else if machine.state().is_ending() {
                        Err(call.token_spent(token))
                    } else {
                        Ok(machine.info())
                    };
                }
            }
            let id = InstanceId::new(format!("machine-{}", records.next_number()));
            let id = id.map_err(|value| call.invalid(value))?;
            Ok(records.add(id, config).info())
        })
        .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.on_machine(Operation::TerminateInstance, id, |machine, _| {
            if !machine.state().is_ending() {
                machine.switch("removed");
            }
            Ok(())
        })
        .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.on_machine(Operation::StopInstance, id, |machine, call| {
            match machine.state() {
                Pending | Running => machine.switch("off"),
                Stopping | Stopped => {}
                state @ (Terminating | Terminated) => {
                    return Err(call.wrong_state(&machine.id, state, "running or stopped"));
                }
            }
            Ok(())
        })
        .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.on_machine(Operation::StartInstance, id, |machine, call| {
            match machine.state() {
                Stopped => machine.switch("on"),
                Pending | Running => {}
                Stopping => {
                    let later = RetryAdvice::After(SWITCH_TIME.to_std().unwrap_or_default());
                    return Err(call.conflict("the machine is still stopping", later));
                }
                state @ (Terminating | Terminated) => {
                    return Err(call.wrong_state(&machine.id, state, "stopped"));
                }
            }
            Ok(machine.info())
        })
        .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let (operation, wanted) = (Operation::DescribeInstance, id.clone());
        let mut found = self.read(operation, move |one| one.id == wanted).await?;
        let missing = || Call::new("shelf", operation).not_found(id);
        found.pop().map(Into::into).ok_or_else(missing)
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let mut list = self.read(Operation::ListInstances, |_| true).await?;
        list.retain(|info| filter.matches(info));
        Ok(list)
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let token = token.clone();
        let launched = move |one: &Machine| one.config.launch_token.as_ref() == Some(&token);
        let found = self.read(Operation::FindLaunch, launched).await?;
        Ok(LaunchRecord::from_instances(found))
    }
}
