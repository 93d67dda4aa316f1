//! What a launch token has launched: the machines with its names, and the names that failed
//! launches hold.
//!
//! Owns the search by token. A machine of the right name belongs to the token only if its tags say
//! so. Only a replay frees the name of a failed creation; `find_launch` changes nothing.
//!
//! A token has up to `count` names. The first machine carries the count, so one read shows whether
//! there are more. Three kinds of machines have a name of the token:
//!
//! - machines with the owner mark and the same fingerprint: they are adopted;
//! - machines with another fingerprint, or without the mark: the launch fails with a conflict;
//! - machines that were never created: they hold the name until they are deleted.

use std::collections::BTreeSet;

use fleetwright::{
    Call, Effect, ErrorKind, InstanceInfo, LaunchRecord, LaunchToken, ProvisionError, Result,
    RetryAdvice,
};
use fleetwright_provider_support::launch::LaunchCalls as _;
use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all, stream};
use tokio::time::sleep;

use crate::{
    AzureProvisioner, address,
    error::{AzureFailure as _, ErrorContext, Failure},
    launch::{AzureLaunch, TokenMachines},
    lookup::ABSENT_READS,
    machine::Machine,
    state, tags,
};

impl AzureLaunch<'_> {
    /// Reads the machines of the token: the first by name, the others of a batch from a list. All
    /// must have been launched by this token and with the same config.
    ///
    /// # Errors
    ///
    /// Those of `check_marks` for any machine with a name of the token.
    pub(crate) async fn read_token_machines(&self, token: &LaunchToken) -> Result<TokenMachines> {
        let mut machines = TokenMachines::new();
        let first = address::name_of(token, 0);
        if let Some(machine) = self.read_by_name(&first).await? {
            self.check_token_marks(token, &machine)?;
            machines.insert(first, machine);
        }
        if self.count.get() > 1 {
            let named = self.azure.list_token_machines(token).await;
            let unread =
                |failure: Failure| failure.into_error(self.context.call, ErrorContext::default());
            for machine in named.map_err(unread)? {
                self.check_token_marks(token, &machine)?;
                machines.insert(machine.name.clone(), machine);
            }
        }
        Ok(machines)
    }

    /// Adds the machines of the token that the lists lack, which may be alive. Called only if all
    /// listed ones are ending.
    pub(crate) async fn read_unlisted(
        &self,
        token: &LaunchToken,
        mut machines: TokenMachines,
    ) -> Result<TokenMachines> {
        let listed: Vec<_> = machines.values().cloned().collect();
        let read = self
            .azure
            .read_unlisted(token, self.count.get(), &listed)
            .await;
        let unread =
            |failure: Failure| failure.into_error(self.context.call, ErrorContext::default());
        for machine in read.map_err(unread)? {
            self.check_token_marks(token, &machine)?;
            machines.insert(machine.name.clone(), machine);
        }
        Ok(machines)
    }

    /// Checks that a machine belongs to this launch. The remains of a failed launch of the same token may
    /// have another config: they are deleted, so they are no conflict.
    fn check_token_marks(&self, token: &LaunchToken, machine: &Machine) -> Result<()> {
        match self.context.check_marks(token, &self.marks(machine)) {
            Err(error) if error.kind() == ErrorKind::TokenConflict && self.is_remains(machine) => {
                Ok(())
            }
            result => result,
        }
    }

    /// Whether a machine was never created, by its state or because this handle deletes it for that. A read of any
    /// age may show it as if it were being created.
    pub(crate) fn is_remains(&self, machine: &Machine) -> bool {
        state::never_created(machine) || self.is_deleted_remains(machine)
    }

    /// Whether this handle deletes a machine because its creation failed. One with power was created after all.
    fn is_deleted_remains(&self, machine: &Machine) -> bool {
        let noted = self.azure.deletions.reason(&machine.vm_id).is_some();
        noted && state::power(machine).is_none()
    }

    /// Waits until the remains that this handle is deleting are gone, for the timeout of one call at
    /// most. Returns the other machines, and what is there in place of remains that are not gone.
    ///
    /// # Errors
    ///
    /// Those of a read, and those of `check_marks` for what has the name then.
    pub(crate) async fn await_deleted_remains(
        &self,
        token: &LaunchToken,
        machines: TokenMachines,
    ) -> Result<TokenMachines> {
        let others = machines.into_iter().map(|(name, machine)| async move {
            // One that still shows its failure after the window has to be deleted again.
            let undeleted = !self.azure.is_ending(&machine) && state::never_created(&machine);
            if !self.is_deleted_remains(&machine) || undeleted {
                return Ok(Some((name, machine)));
            }
            if self.azure.await_gone(&machine).await {
                return Ok(None);
            }
            // The read before the wait is out of date.
            let Some(current) = self.read_by_name(&name).await? else {
                return Ok(None);
            };
            self.check_token_marks(token, &current)?;
            Ok(Some((name, current)))
        });
        let others = join_all(others).await.into_iter();
        let others: Result<Vec<Option<(String, Machine)>>> = others.collect();
        Ok(others?.into_iter().flatten().collect())
    }

    /// Deletes the machines that were never created by an earlier launch, so that their names are
    /// free.
    ///
    /// # Errors
    ///
    /// A conflict if one of them is still being deleted, or if a read still shows one as if it were being
    /// created: the caller should retry. Those of `check_marks` for one that was created after all.
    pub(crate) async fn free_failed_names(
        &self,
        token: &LaunchToken,
        machines: TokenMachines,
    ) -> Result<TokenMachines> {
        let kept: Vec<_> = machines
            .into_iter()
            .map(|(name, machine)| async move {
                let kept = if state::never_created(&machine) {
                    self.free_failed_name(&machine).await?
                } else {
                    Some(machine)
                };
                Ok(kept.map(|machine| (name, machine)))
            })
            .collect();
        let kept = stream::iter(kept).buffered(self.context.concurrency);
        let kept: Vec<Option<(String, Machine)>> = kept.try_collect().await?;
        let kept: TokenMachines = kept.into_iter().flatten().collect();
        for machine in kept.values() {
            if self.is_remains(machine) {
                return Err(self.name_not_free());
            }
            self.context.check_marks(token, &self.marks(machine))?;
        }
        Ok(kept)
    }

    /// Deletes a machine that seems never to have been created. Returns it if it was created after
    /// all.
    async fn free_failed_name(&self, machine: &Machine) -> Result<Option<Machine>> {
        let current = self.azure.reread(self.context.call, machine).await?;
        match current.filter(|current| current.vm_id == machine.vm_id) {
            // Another actor deletes it. As it was never created, its token is not spent.
            Some(current) if self.azure.is_ending(&current) => Err(self.name_not_free()),
            Some(current) if state::never_created(&current) => {
                self.azure.free_name(&current).await;
                Ok(None)
            }
            current => Ok(current),
        }
    }

    /// Why a token whose machines are all ending launches nothing: it is spent, or the remains of
    /// its failed launch are still being deleted.
    pub(crate) fn ending_error<'m>(
        &self,
        token: &LaunchToken,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> ProvisionError {
        if machines.all(|machine| self.is_remains(machine)) {
            return self.name_not_free();
        }
        self.context.call.token_spent(token)
    }

    /// Returns the error of a name that a failed machine holds until its deletion ends.
    fn name_not_free(&self) -> ProvisionError {
        let message = "the remains of a failed launch with this token are still being deleted";
        let retry = RetryAdvice::After(self.azure.capabilities.poll_interval);
        let error = self.context.call.conflict(message, retry);
        error.with_effect(Effect::None)
    }
}

impl AzureProvisioner {
    /// Lists every machine that has a name of the token, with its states.
    async fn list_token_machines(
        &self,
        token: &LaunchToken,
    ) -> std::result::Result<Vec<Machine>, Failure> {
        let stem = address::stem_of(token);
        let is_item = |name: &str| {
            name.strip_prefix(&stem)
                .is_some_and(|item| item.parse::<u32>().is_ok())
        };
        let mut machines = self.list_machines().await?;
        machines.retain(|machine| is_item(&machine.name));
        Ok(machines)
    }

    /// Returns what a token has launched, as far as reads show it.
    pub(crate) async fn find_launch_record(
        &self,
        call: &Call,
        token: &LaunchToken,
    ) -> Result<LaunchRecord> {
        let machines = self.find_owned(token).await;
        let machines =
            machines.map_err(|failure| failure.into_error(call, ErrorContext::default()))?;
        let interfaces = self
            .interfaces(call, &machines.iter().collect::<Vec<_>>())
            .await?;
        let infos: Result<Vec<InstanceInfo>> = machines
            .iter()
            .zip(interfaces)
            .map(|(machine, interface)| self.info(call, machine, interface.as_ref()))
            .collect();
        Ok(LaunchRecord::from_instances(infos?))
    }

    /// Finds the machines that carry the token's owner mark: with one read if the first one was
    /// launched alone, else with lists and reads of the names that the lists lack. Nothing is found
    /// only if several reads, over a consistency window, say so.
    async fn find_owned(&self, token: &LaunchToken) -> std::result::Result<Vec<Machine>, Failure> {
        let owner = tags::owner(token);
        let owned = |machine: &Machine| tags::value(&machine.tags, tags::OWNER) == Some(&*owner);
        for read in 1..=ABSENT_READS {
            let mut machines = Vec::new();
            match self.client.get(&address::name_of(token, 0)).await {
                Ok(machine) => machines.push(machine),
                Err(failure) if !failure.is_not_found() => return Err(failure),
                Err(_) => {}
            }
            machines.retain(owned);
            if machines.iter().any(|one| launched_count(one) == Some(1)) {
                return Ok(machines);
            }
            let listed = self.list_token_machines(token).await?;
            let known: Vec<_> = machines.iter().map(|one| one.name.clone()).collect();
            let listed = listed.into_iter();
            machines.extend(listed.filter(|one| owned(one) && !known.contains(&one.name)));
            if let Some(count) = machines.iter().filter_map(launched_count).max() {
                machines.extend(self.read_unlisted(token, count, &machines).await?);
                machines.retain(owned);
                return Ok(machines);
            }
            if !machines.is_empty() {
                return Ok(machines);
            }
            if read < ABSENT_READS {
                sleep(self.absence_spread()).await;
            }
        }
        Ok(Vec::new())
    }

    /// Reads the machines of a launch of `count` that are not in `listed`, by their names.
    async fn read_unlisted(
        &self,
        token: &LaunchToken,
        count: u32,
        listed: &[Machine],
    ) -> std::result::Result<Vec<Machine>, Failure> {
        let listed: BTreeSet<_> = listed.iter().map(|machine| &machine.name).collect();
        let names = (0..count).map(|item| address::name_of(token, item));
        let names: Vec<_> = names.filter(|name| !listed.contains(name)).collect();
        let read = self.client.get_all(&names, self.concurrency()).await?;
        Ok(read.into_values().collect())
    }
}

/// Returns how many machines the launch of a machine had, by its tags.
fn launched_count(machine: &Machine) -> Option<u32> {
    tags::config_of(&machine.tags).map(|(_, count)| count)
}
