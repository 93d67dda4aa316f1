//! Reading: few machines one by one, many with one list, and the meaning of a machine that is not
//! found.
//!
//! Owns that meaning. Azure keeps no record of deleted machines. An id contains the creation time:
//! a machine that is not found and older than the consistency window is gone, a younger one may not
//! show yet. A read must never change anything.
//!
//! | read | native calls |
//! | --- | --- |
//! | up to three machines | one GET each, and one of each interface |
//! | more | one list of states; interfaces and addresses from the cache or two lists |
//!
//! | not found, by Azure's clock | result |
//! | --- | --- |
//! | created less than a consistency window ago | not found, may be retried |
//! | created earlier, or another machine has the name | terminated |

use std::sync::Arc;

use chrono::{DateTime, Utc};
use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, async_trait,
};
use fleetwright_provider_support::{ReadInstances, RecentLaunches};
use futures_util::{StreamExt as _, future::try_join_all, stream};

use crate::{
    AzureProvisioner,
    address::{self, Address, lowercase},
    convert,
    error::{AzureFailure as _, ErrorContext, Failure},
    list::{InterfacesByMachine, add_status, has_address},
    machine::{Interface, Machine},
    state,
};

/// Up to how many machines are read one by one. More are read with one list.
pub(crate) const FEW: usize = 3;

/// What a read says about an id.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// The machine exists.
    Found(Box<Machine>),
    /// It does not exist any more, with the reason of its end.
    Gone(String),
    /// It is not found, and so young that this proves nothing.
    NotShown,
}

/// One lookup per id; `None` for an id of another group.
pub(crate) type Lookups = Vec<Option<std::result::Result<Lookup, Failure>>>;

#[async_trait]
impl ReadInstances for AzureProvisioner {
    fn recent_launches(&self) -> &RecentLaunches {
        &self.recent_launches
    }

    /// Describes many instances once.
    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let all: Vec<_> = ids.iter().map(|id| self.address(id)).collect();
        let to_error = |failure: Failure| {
            let error = failure.into_error(&call, ErrorContext::default());
            ids.iter().map(|_| Err(error.clone())).collect()
        };
        let lookups = match self.look_up_all(&all).await {
            Ok(lookups) => lookups,
            Err(failure) => return to_error(failure),
        };
        let there: Vec<_> = lookups
            .iter()
            .filter_map(|lookup| match lookup {
                Some(Ok(Lookup::Found(machine))) => Some(&**machine),
                Some(Ok(Lookup::Gone(_) | Lookup::NotShown) | Err(_)) | None => None,
            })
            .collect();
        let interfaces = if there.len() > FEW {
            Some(self.interfaces_by_machine(there.into_iter()).await)
        } else {
            None
        };
        let each = ids.iter().zip(&all).zip(lookups).map(|((id, at), lookup)| {
            let (call, interfaces) = (&call, interfaces.as_ref());
            async move {
                self.found_info(call, id, at.as_ref(), lookup, interfaces)
                    .await
            }
        });
        let each: Vec<_> = each.collect();
        stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await
    }
}

impl AzureProvisioner {
    /// Returns the address in an id of this resource group, or `None` for any other id.
    pub(crate) fn address(&self, id: &InstanceId) -> Option<Address> {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        Address::parse(id).filter(|at| {
            same(&at.subscription, self.client.subscription())
                && same(&at.group, self.client.group())
        })
    }

    /// Returns the address of a machine.
    pub(crate) fn address_of(&self, machine: &Machine) -> Address {
        convert::address(self.client.subscription(), self.client.group(), machine)
    }

    /// Reads the machine of one id.
    pub(crate) async fn look_up(&self, at: &Address) -> std::result::Result<Lookup, Failure> {
        match self.client.get(&at.name).await {
            Ok(machine) => Ok(self.check_vm_id(at, machine)),
            Err(failure) if failure.is_not_found() => {
                Ok(self.absent(at, address::azure_time(failure.server_time)))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Compares the VM id of a machine that has the right name.
    fn check_vm_id(&self, at: &Address, machine: Machine) -> Lookup {
        if machine.vm_id == at.vm_id {
            return Lookup::Found(Box::new(machine));
        }
        // A stale read can show the previous machine of that name.
        let before = self.address_of(&machine).created < at.created;
        let now = self.client.azure_time(Utc::now());
        if before && at.is_recent(self.capabilities.consistency_window, now) {
            return Lookup::NotShown;
        }
        Lookup::Gone(self.end_reason(at, "gone: another machine has its name"))
    }

    /// Returns what it means that a machine is not found at `now`.
    fn absent(&self, at: &Address, now: DateTime<Utc>) -> Lookup {
        if at.is_recent(self.capabilities.consistency_window, now) {
            return Lookup::NotShown;
        }
        Lookup::Gone(self.end_reason(at, "gone: no record kept"))
    }

    /// Returns why a machine ended, if this handle knows it.
    fn end_reason(&self, at: &Address, otherwise: &str) -> String {
        let known = self.deletions.reason(&at.vm_id);
        known.unwrap_or_else(|| otherwise.to_owned())
    }

    /// Reads the machines of many ids, with a number of calls that does not depend on theirs. A
    /// failure of one read does not affect the others.
    pub(crate) async fn look_up_all(
        &self,
        all: &[Option<Address>],
    ) -> std::result::Result<Lookups, Failure> {
        let known = all.iter().flatten().count();
        // A machine that was created later may not be in the list.
        let began = Utc::now();
        let listed = if known > FEW {
            Some(self.client.statuses().await?)
        } else {
            None
        };
        let began = self.client.azure_time(began);
        let each = all.iter().map(|at| {
            let listed = listed.as_ref();
            async move {
                let at = at.as_ref()?;
                let path = address::machine_path(&at.subscription, &at.group, &at.name);
                let lookup = match listed.map(|listed| listed.get(&lowercase(&path))) {
                    Some(Some(machine)) if machine.vm_id == at.vm_id => {
                        Ok(Lookup::Found(Box::new(machine.clone())))
                    }
                    Some(None) => Ok(self.absent(at, began)),
                    Some(Some(_)) | None => self.look_up(at).await,
                };
                Some(lookup)
            }
        });
        let each: Vec<_> = each.collect();
        Ok(stream::iter(each)
            .buffered(self.concurrency())
            .collect()
            .await)
    }

    /// Converts a lookup, with the addresses of the machine.
    async fn found_info(
        &self,
        call: &Call,
        id: &InstanceId,
        at: Option<&Address>,
        lookup: Option<std::result::Result<Lookup, Failure>>,
        interfaces: Option<&std::result::Result<Arc<InterfacesByMachine>, Failure>>,
    ) -> Result<InstanceInfo> {
        let (Some(at), Some(lookup)) = (at, lookup) else {
            return Err(call.not_found(id));
        };
        let to_error = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let lookup = lookup.map_err(to_error)?;
        let machine = match lookup {
            Lookup::Found(machine) => machine,
            Lookup::Gone(reason) => {
                let gone = convert::gone_info(at, &reason);
                return gone.ok_or_else(|| self.not_found_yet(call, id));
            }
            Lookup::NotShown => return Err(self.not_found_yet(call, id)),
        };
        let interface = match interfaces {
            Some(Ok(interfaces)) => interfaces.get(&lowercase(&machine.path)).cloned(),
            // A machine without an address does not need the failed list.
            Some(Err(failure)) if has_address(&machine) => return Err(to_error(failure.clone())),
            Some(Err(_)) => None,
            None => self.interface(call, &machine).await?,
        };
        self.info_at(call, at, &machine, interface.as_ref())
    }

    /// Whether a machine is being deleted, by the read or by what this handle has deleted.
    pub(crate) fn is_ending(&self, machine: &Machine) -> bool {
        let window = self.capabilities.consistency_window;
        is_deleting(machine) || self.deletions.is_recent(&machine.vm_id, window)
    }

    /// Reads the first interface of a machine. A machine that is being created or deleted may have
    /// none.
    pub(crate) async fn interface(
        &self,
        call: &Call,
        machine: &Machine,
    ) -> Result<Option<Interface>> {
        let Some(path) = machine.interfaces.first() else {
            return Ok(None);
        };
        match self.client.interface(path).await {
            Ok(interface) => Ok(Some(interface)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure.into_error(call, ErrorContext::default())),
        }
    }

    /// Reads the first interfaces of machines, with a number of calls that does not depend on
    /// theirs.
    pub(crate) async fn interfaces(
        &self,
        call: &Call,
        machines: &[&Machine],
    ) -> Result<Vec<Option<Interface>>> {
        if machines.len() <= FEW {
            let each = machines.iter().map(|machine| self.interface(call, machine));
            return try_join_all(each).await;
        }
        let interfaces = self.interfaces_by_machine(machines.iter().copied()).await;
        let interfaces =
            interfaces.map_err(|failure| failure.into_error(call, ErrorContext::default()))?;
        let each = machines.iter();
        Ok(each
            .map(|machine| interfaces.get(&lowercase(&machine.path)).cloned())
            .collect())
    }

    /// Converts a machine.
    pub(crate) fn info(
        &self,
        call: &Call,
        machine: &Machine,
        interface: Option<&Interface>,
    ) -> Result<InstanceInfo> {
        self.info_at(call, &self.address_of(machine), machine, interface)
    }

    /// Converts a machine at a known address.
    fn info_at(
        &self,
        call: &Call,
        at: &Address,
        machine: &Machine,
        interface: Option<&Interface>,
    ) -> Result<InstanceInfo> {
        let info = convert::info(at, machine, interface);
        let mut info = info.map_err(|problem| call.unexpected(Effect::Unknown, &problem))?;
        // This handle has deleted it, and the read is stale.
        if self
            .deletions
            .is_recent(&at.vm_id, self.capabilities.consistency_window)
        {
            info.state = CloudInstanceState::Terminating;
            info.public_ip = None;
        }
        Ok(info)
    }

    /// Reads the instance of an optional verb until it is in one of the states that the verb needs.
    pub(crate) async fn in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<(Call, Address)> {
        let call = self.call(operation);
        let at = self.address(id).ok_or_else(|| call.not_found(id))?;
        self.describe_in_state(operation, id, states, needed)
            .await?;
        Ok((call, at))
    }

    /// Lists every machine of the group with its states.
    pub(crate) async fn list_machines(&self) -> std::result::Result<Vec<Machine>, Failure> {
        let statuses = self.client.statuses().await?;
        let (mut all, mut pages) = (Vec::new(), self.client.pages());
        loop {
            match pages.next().await {
                Ok(Some(page)) => all.extend(page),
                Ok(None) => break,
                Err(failure) if failure.is_group_missing() => break,
                Err(failure) => return Err(failure),
            }
        }
        for machine in &mut all {
            add_status(machine, &statuses);
        }
        Ok(all)
    }

    /// How many calls of one batch are sent at the same time.
    pub(crate) fn concurrency(&self) -> usize {
        self.options.concurrency.get() as usize
    }
}

/// Whether Azure is deleting a machine.
pub(crate) fn is_deleting(machine: &Machine) -> bool {
    machine.provisioning.eq_ignore_ascii_case("Deleting")
}

/// Whether Azure is creating a machine.
pub(crate) fn is_creating(machine: &Machine) -> bool {
    machine.provisioning.eq_ignore_ascii_case("Creating") && state::power(machine).is_none()
}
