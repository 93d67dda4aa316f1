//! Launching on Azure: the calls behind [`fleetwright_provider_support::launch`].
//!
//! Owns the creation of a machine and its adoption. The first machine of a batch is created alone:
//! it carries the fingerprint of the launch, so that one read of it shows whether the token is
//! used, and for which config. A creation must be tracked by the cleanup before anything else is
//! awaited.
//!
//! 1. With a token, read its machines: they are adopted, or the token is in conflict or spent. Remains of
//!    failed creations are deleted first, so that their names are free.
//! 2. Create each missing machine with one PUT and `If-None-Match: *`. Azure refuses it if the name is
//!    taken; the machine of that name is then read and adopted if its marks match.
//! 3. The cleanup tracks each accepted creation.
//! 4. Wait `launch_wait` for late failures, see [`crate::settle`].

use std::{collections::BTreeMap, num::NonZeroU32};

use fleetwright::{
    Call, InstanceConfig, InstanceId, InstanceInfo, LaunchToken, Operation, ProvisionError, Result,
    RetryAdvice, async_trait,
};
use fleetwright_provider_support::launch::{
    self, Attempt, CreateError, LaunchCalls, LaunchContext, LaunchOutcome, Marks,
};
use fleetwright_provider_support::{ReadInstances as _, poll::poll_delays, read_until};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::{
    AzureProvisioner, address,
    error::{AzureFailure as _, ErrorContext, Failure},
    lookup::ABSENT_READS,
    machine::{Machine, StartedOperation},
    plan::Plan,
    tags,
};

/// One call of `launch_instance` or `launch_instances`.
pub(crate) struct AzureLaunch<'a> {
    /// The provisioner.
    pub(crate) azure: &'a AzureProvisioner,
    /// The config of the caller.
    pub(crate) config: &'a InstanceConfig,
    /// The request that follows from it.
    pub(crate) plan: &'a Plan,
    /// What the shared sequence needs.
    pub(crate) context: LaunchContext<'a>,
    /// The number of machines of the launch.
    pub(crate) count: NonZeroU32,
}

/// A creation that Azure has accepted.
#[derive(Debug)]
pub(crate) struct Creation {
    /// The machine as the response of the PUT describes it.
    pub(crate) machine: Machine,
    /// Its operation.
    pub(crate) operation: StartedOperation,
}

/// The machines of a launch token by name.
pub(crate) type TokenMachines = BTreeMap<String, Machine>;

impl AzureProvisioner {
    /// Launches `count` instances of `config`, or returns those that its token has launched.
    pub(crate) async fn launch_all(
        &self,
        call: &Call,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let refuse = |value| call.invalid(value);
        config.check(&self.capabilities).map_err(refuse)?;
        let plan = Plan::new(&self.launch, config, count).map_err(refuse)?;
        let context = LaunchContext {
            call,
            capabilities: &self.capabilities,
            token: config.launch_token.as_ref(),
            owner: plan.owner.as_deref(),
            fingerprint: plan.fingerprint,
            concurrency: self.concurrency(),
            first_alone: true,
            recent_launches: &self.recent_launches,
            recent_tokens: &self.recent_tokens,
        };
        let calls = AzureLaunch {
            azure: self,
            config,
            plan: &plan,
            context,
            count,
        };
        let (name_of, random) = (address::name_of, address::random_name);
        let names = launch::instance_names(context.token, count, name_of, random);
        launch::launch(&calls, &context, &names).await
    }
}

#[async_trait]
impl LaunchCalls for AzureLaunch<'_> {
    type Known = TokenMachines;
    type Existing = Machine;
    type Accepted = Creation;
    type Native = Machine;

    /// Reads the machines of the token, and frees the names of those that were never created.
    async fn find_by_token(&self, token: &LaunchToken) -> Result<TokenMachines> {
        let machines = self.read_token_machines(token).await?;
        let mut machines = self.await_deleted_remains(token, machines).await?;
        if launch::is_spent(&machines, |machine| self.azure.is_ending(machine)) {
            machines = self.read_unlisted(token, machines).await?;
        }
        if launch::is_spent(&machines, |machine| self.azure.is_ending(machine)) {
            return Err(self.ending_error(token, machines.values()));
        }
        self.free_failed_names(token, machines).await
    }

    fn existing(&self, known: &TokenMachines, name: &str) -> Option<Machine> {
        known.get(name).cloned()
    }

    /// Sends the PUT. A conflict is reported as a taken name, because the machine may be this
    /// launch's own.
    async fn create(
        &self,
        name: &str,
        _: &TokenMachines,
    ) -> std::result::Result<Creation, CreateError> {
        match self.put(name).await {
            Ok((machine, operation)) => {
                let machine = self.read_creation_time(machine).await;
                // Tracked at once: the caller may drop this launch before its outcome is known.
                self.azure.cleanup.track(machine.clone());
                Ok(Creation { machine, operation })
            }
            Err(failure) if failure.is_conflict() && self.context.token.is_some() => {
                let parse_refusal = failure.into_error(self.context.call, ErrorContext::default());
                Err(CreateError::NameTaken(parse_refusal))
            }
            Err(failure) if failure.is_name_not_free(name) => {
                let message = "Azure does not accept another machine under the name of a deleted one yet; retry later";
                let retry = RetryAdvice::After(self.azure.capabilities.consistency_window);
                Err(CreateError::Failed(
                    self.context.call.conflict(message, retry),
                ))
            }
            Err(failure) => Err(CreateError::Failed(self.launch_error(failure))),
        }
    }

    /// Describes them: the state of a machine, or this handle's memory of its deletion, has the failure.
    async fn have_failed(&self, ids: &[InstanceId]) -> bool {
        let described = self
            .azure
            .describe_once(Operation::LaunchInstance, ids)
            .await;
        let failed = |info: &InstanceInfo| info.launch_failure.is_some();
        described.iter().all(|info| info.as_ref().is_ok_and(failed))
    }

    async fn read_by_name(&self, name: &str) -> Result<Option<Machine>> {
        match self.azure.client.get(name).await {
            Ok(machine) => Ok(Some(machine)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure.into_error(self.context.call, ErrorContext::default())),
        }
    }

    /// Reads owner and fingerprint from the tags.
    fn marks<'n>(&self, machine: &'n Machine) -> Marks<'n> {
        Marks {
            name: &machine.name,
            id: self.azure.address_of(machine).id(),
            owner: tags::value(&machine.tags, tags::OWNER),
            fingerprint: tags::config_of(&machine.tags).map(|(fingerprint, _)| fingerprint),
        }
    }

    /// Refuses a machine that is being deleted or was never created.
    async fn adopt(&self, token: &LaunchToken, machine: Machine) -> Result<Machine> {
        if self.azure.is_ending(&machine) || self.is_remains(&machine) {
            return Err(self.ending_error(token, std::iter::once(&machine)));
        }
        Ok(machine)
    }

    async fn settle(&self, attempts: Vec<Attempt<Machine, Creation>>) -> LaunchOutcome {
        self.settle_attempts(attempts).await
    }
}

impl AzureLaunch<'_> {
    /// Sends the PUT. With a token, the name may be that of a machine that was just deleted. Azure can
    /// then refuse the PUT with 404 for a while, so it is sent again for up to a consistency window. It
    /// never creates a second machine, because it has the condition `If-None-Match: *`.
    ///
    /// One response that the resource group does not exist proves nothing, because it may come from a region that
    /// does not have the group's data. So [`ABSENT_READS`] in a row must say it.
    ///
    /// Related traps in the README: 48 (a name is not free after a deletion), 51 (a group is not found).
    async fn put(&self, name: &str) -> std::result::Result<(Machine, StartedOperation), Failure> {
        let window = self.azure.capabilities.consistency_window;
        let began = Instant::now();
        let mut delays = poll_delays(self.azure.options.poll_interval);
        let mut without_group = 0;
        loop {
            let last = began.elapsed() >= window;
            let sent = self.azure.client.create(name, &self.plan.spec).await;
            match sent {
                Err(failure) if failure.is_group_missing() => {
                    without_group += 1;
                    if without_group == ABSENT_READS {
                        return Err(failure);
                    }
                }
                Err(failure)
                    if !last && self.context.token.is_some() && failure.is_name_not_free(name) =>
                {
                    without_group = 0;
                }
                sent => return sent,
            }
            sleep(delays.next().unwrap_or(window)).await;
        }
    }

    /// Returns the machine with its creation time, which is part of its id. Azure may leave it out
    /// of the response of a creation.
    async fn read_creation_time(&self, machine: Machine) -> Machine {
        if machine.created.is_some() {
            return machine;
        }
        let read = || -> BoxFuture<'_, Result<Option<Machine>>> {
            Box::pin(async {
                let current = self.read_by_name(&machine.name).await?;
                Ok(current.filter(|current| current.vm_id == machine.vm_id))
            })
        };
        let has_time =
            |read: &Option<Machine>| read.as_ref().is_some_and(|read| read.created.is_some());
        match read_until(&self.azure.capabilities, read, has_time).await {
            Ok(Some(current)) => current,
            Ok(None) | Err(_) => machine,
        }
    }

    /// Turns a failed creation into the error of this launch.
    pub(crate) fn launch_error(&self, failure: Failure) -> ProvisionError {
        let context = ErrorContext {
            config: Some(self.config),
            zone: self.plan.zone.as_ref(),
            network: Some(&self.plan.network),
            ..ErrorContext::default()
        };
        failure.into_error(self.context.call, context)
    }
}
