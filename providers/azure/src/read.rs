//! Describing: the states and addresses of few machines one by one, of many with lists.
//!
//! Owns how the addresses of a machine are found. [`crate::lookup`] finds the machines. A read must
//! never change anything.
//!
//! | read | native calls |
//! | --- | --- |
//! | up to three machines | one GET each, and one of each interface |
//! | more | one list of states; interfaces and addresses from the cache or two lists; a GET of each machine that the list does not show |

use std::sync::Arc;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, async_trait,
};
use fleetwright_provider_support::{ReadInstances, RecentLaunches};
use futures_util::{StreamExt as _, stream};

use crate::{
    AzureProvisioner,
    address::{Address, lowercase},
    convert,
    error::{ErrorContext, Failure},
    interfaces::{InterfacesByMachine, has_address, need_lists},
    lookup::{Lookup, LookupResult},
    machine::{Interface, Machine},
    state,
};

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
        let machines: Vec<_> = lookups
            .iter()
            .filter_map(|lookup| match lookup {
                Some(Ok(Lookup::Found(machine))) => Some(&**machine),
                Some(Ok(Lookup::Gone(_) | Lookup::NotShown | Lookup::Absent) | Err(_)) | None => {
                    None
                }
            })
            .collect();
        let interfaces = if need_lists(&machines) {
            Some(self.interfaces_by_machine(machines.into_iter()).await)
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

    /// Converts a lookup, with the addresses of the machine.
    async fn found_info(
        &self,
        call: &Call,
        id: &InstanceId,
        at: Option<&Address>,
        lookup: Option<LookupResult>,
        interfaces: Option<&std::result::Result<Arc<InterfacesByMachine>, Failure>>,
    ) -> Result<InstanceInfo> {
        let (Some(at), Some(lookup)) = (at, lookup) else {
            return Err(call.not_found(id));
        };
        let to_error = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let lookup = lookup.map_err(to_error)?;
        let machine = match lookup {
            Lookup::Found(machine) => machine,
            Lookup::Gone(gone) => {
                let info = convert::gone_info(at, &gone.reason);
                let info = info.ok_or_else(|| self.not_found_yet(call, id))?;
                return Ok(self.with_failure(info, &at.vm_id));
            }
            Lookup::NotShown | Lookup::Absent => return Err(self.not_found_yet(call, id)),
        };
        let interface = match interfaces {
            Some(Ok(interfaces)) => interfaces.get(&lowercase(&machine.path)).cloned(),
            // A machine without an address does not need the failed list.
            Some(Err(failure)) if has_address(&machine) => return Err(to_error(failure.clone())),
            Some(Err(_)) => None,
            None => self.interface(call, &machine).await?,
        };
        let info = self.info_at(call, at, &machine, interface.as_ref())?;
        Ok(self.with_failure(info, &at.vm_id))
    }

    /// Adds why a launch failed late, if this handle deletes its remains and no read shows it any more.
    fn with_failure(&self, mut info: InstanceInfo, vm_id: &str) -> InstanceInfo {
        if let (None, Some(reason)) = (&info.launch_failure, self.deletions.reason(vm_id)) {
            info.launch_failure = Some(reason.failure);
            info.state_reason.get_or_insert(reason.text);
        }
        info
    }

    /// Whether a machine is being deleted, by the read or by what this handle has deleted.
    pub(crate) fn is_ending(&self, machine: &Machine) -> bool {
        let window = self.capabilities.consistency_window;
        is_deleting(machine) || self.deletions.is_recent(&machine.vm_id, window)
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
