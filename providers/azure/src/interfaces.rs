//! Interfaces and addresses of machines: few with a GET each, many with two lists.
//!
//! Owns the join of interfaces and addresses, and the cache of interfaces. Lists are joined by resource
//! id in lower case, because Azure returns ids in any letter case.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use fleetwright::{Call, CloudInstanceState, Result};
use fleetwright_provider_support::poll::poll_delays;
use futures_util::{future::try_join_all, try_join};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use crate::{
    AzureProvisioner,
    address::lowercase,
    error::{AzureFailure as _, ErrorContext, Failure},
    lookup::{ABSENT_READS, FEW},
    machine::{Interface, Machine, Public},
    state,
};

/// The first interface of each machine, by resource id of the machine in lower case.
pub(crate) type InterfacesByMachine = BTreeMap<String, Interface>;

/// The interfaces that were last read, and when. They change rarely, and may be as old as half of
/// the consistency window; the other half is for Azure's own lag.
#[derive(Debug, Default)]
pub(crate) struct InterfaceCache {
    /// When they were read, and the interfaces.
    kept: Mutex<Option<(Instant, Arc<InterfacesByMachine>)>>,
}

impl AzureProvisioner {
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
        // One 404 proves nothing. A machine that can have an address has an interface.
        let reads = if has_address(machine) {
            ABSENT_READS
        } else {
            1
        };
        let mut delays = poll_delays(self.options.poll_interval);
        for read in 1..=reads {
            match self.client.interface(path).await {
                Ok(interface) => return Ok(Some(interface)),
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure.into_error(call, ErrorContext::default())),
            }
            if let (true, Some(delay)) = (read < reads, delays.next()) {
                sleep(delay).await;
            }
        }
        Ok(None)
    }

    /// Reads the first interfaces of machines, with a number of calls that does not depend on
    /// theirs.
    pub(crate) async fn interfaces(
        &self,
        call: &Call,
        machines: &[&Machine],
    ) -> Result<Vec<Option<Interface>>> {
        if !need_lists(machines) {
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

    /// Returns the interfaces of the group. Reads them again if they are too old, or if one of
    /// `machines` should have an address and has none.
    pub(crate) async fn interfaces_by_machine<'m>(
        &self,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> std::result::Result<Arc<InterfacesByMachine>, Failure> {
        if let Some(kept) = self.kept_interfaces().await {
            if machines.all(|machine| is_shown(machine, &kept)) {
                return Ok(kept);
            }
        } else if !machines.any(has_address) {
            return Ok(Arc::default());
        }
        self.list_interfaces().await
    }

    /// Returns the interfaces of the group for a list, which also finds machines by them. Reads them
    /// again if they are too old, or if one of `machines` should have an address and has none.
    pub(crate) async fn interfaces_of_group<'m>(
        &self,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> std::result::Result<Arc<InterfacesByMachine>, Failure> {
        match self.kept_interfaces().await {
            Some(kept) if machines.all(|machine| is_shown(machine, &kept)) => Ok(kept),
            Some(_) | None => self.list_interfaces().await,
        }
    }

    /// Returns the interfaces that were read last, unless they are too old.
    async fn kept_interfaces(&self) -> Option<Arc<InterfacesByMachine>> {
        let kept = self.interface_cache.kept.lock().await.clone();
        let (at, interfaces) = kept?;
        (at.elapsed() < self.capabilities.consistency_window / 2).then_some(interfaces)
    }

    /// Lists the interfaces and addresses of the group, and keeps them.
    async fn list_interfaces(&self) -> std::result::Result<Arc<InterfacesByMachine>, Failure> {
        let at = Instant::now();
        let (interfaces, public) =
            try_join!(self.client.interfaces(), self.client.public_addresses())?;
        let interfaces = Arc::new(join_addresses(interfaces, &public));
        *self.interface_cache.kept.lock().await = Some((at, Arc::clone(&interfaces)));
        Ok(interfaces)
    }
}

/// Whether the interfaces of machines are read with lists: if they are many, or if one comes from a
/// list of states, which does not say what its interface is.
pub(crate) fn need_lists(machines: &[&Machine]) -> bool {
    let unnamed = |machine: &&Machine| machine.interfaces.is_empty() && has_address(machine);
    machines.len() > FEW || machines.iter().any(unnamed)
}

/// Whether the interface of a machine is among `interfaces`, if it can have an address.
fn is_shown(machine: &Machine, interfaces: &InterfacesByMachine) -> bool {
    !has_address(machine) || interfaces.contains_key(&lowercase(&machine.path))
}

/// Whether a machine in this state can have an address.
pub(crate) fn has_address(machine: &Machine) -> bool {
    match state::normalize(machine) {
        CloudInstanceState::Running
        | CloudInstanceState::Stopping
        | CloudInstanceState::Stopped => true,
        CloudInstanceState::Pending
        | CloudInstanceState::Terminating
        | CloudInstanceState::Terminated => false,
    }
}

/// Returns the first interface of each machine with its public address.
fn join_addresses(
    interfaces: Vec<Interface>,
    public: &BTreeMap<String, IpAddr>,
) -> InterfacesByMachine {
    let mut by_machine = InterfacesByMachine::new();
    for mut interface in interfaces {
        if let Some(Public::At(path)) = &interface.public {
            let address = public.get(&lowercase(path));
            interface.public = address.map(|address| Public::Address(*address));
        }
        let Some(machine) = interface.machine.as_deref().map(lowercase) else {
            continue;
        };
        // A machine may have several interfaces, in any order.
        if interface.primary || !by_machine.contains_key(&machine) {
            by_machine.insert(machine, interface);
        }
    }
    by_machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_interface_is_chosen_in_any_order() {
        let one = |primary, mac: &str| Interface {
            machine: Some("/Machines/A".to_owned()),
            primary,
            mac: Some(mac.to_owned()),
            ..Interface::default()
        };
        let (first, second) = (one(true, "1"), one(false, "2"));
        for all in [[first.clone(), second.clone()], [second, first.clone()]] {
            let interfaces = join_addresses(all.into(), &BTreeMap::new());
            assert_eq!(interfaces["/machines/a"], first);
        }
    }
}
