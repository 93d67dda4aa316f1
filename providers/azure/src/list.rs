//! Listing: page by page, with states and addresses from three other lists.
//!
//! Owns the join of those lists, and the cache of interfaces. The number of calls does not depend
//! on the number of machines, except for the pages.
//!
//! A list of the group has no states, and the list of states is one of the whole subscription.
//! Interfaces and public addresses are two more lists. All are joined by resource id in lower case,
//! because Azure returns ids in any letter case. Azure cannot filter by tag, so this crate does.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use fleetwright::{
    BoxStream, Call, CloudInstanceState, InstanceFilter, ListItem, Operation, Result,
};
use futures_util::{StreamExt as _, stream, try_join};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    AzureProvisioner,
    address::lowercase,
    client::Pages,
    error::{AzureFailure as _, ErrorContext, Failure},
    machine::{Interface, Machine, Public},
    state,
};

/// The first interface of each machine, by resource id of the machine in lower case.
pub(crate) type InterfacesByMachine = BTreeMap<String, Interface>;

/// The states of machines, by resource id in lower case.
pub(crate) type Statuses = BTreeMap<String, Machine>;

/// The interfaces that were last read, and when. They change rarely, and may be as old as half of
/// the consistency window; the other half is for Azure's own lag.
#[derive(Debug, Default)]
pub(crate) struct InterfaceCache {
    /// When they were read, and the interfaces.
    kept: Mutex<Option<(Instant, Arc<InterfacesByMachine>)>>,
}

/// The position of a list.
enum Cursor {
    /// Nothing is read yet.
    Start,
    /// The next page of machines, with what the other lists returned.
    Page {
        pages: Pages,
        interfaces: Arc<InterfacesByMachine>,
        statuses: Statuses,
    },
}

impl AzureProvisioner {
    /// Lists the instances that `filter` selects.
    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let step = move |at: Option<Cursor>| async move {
            let call = self.call(operation);
            match self.next_page(&call, filter, at?).await {
                Ok((items, next)) => Some((items, next)),
                // A group that does not exist contains nothing.
                Err(failure) if failure.is_group_missing() => None,
                Err(failure) => {
                    let error = failure.into_error(&call, ErrorContext::default());
                    Some((vec![Err(error)], None))
                }
            }
        };
        stream::unfold(Some(Cursor::Start), step)
            .flat_map(stream::iter)
            .boxed()
    }

    /// Reads the page at a cursor. Returns its items, and the next cursor.
    async fn next_page(
        &self,
        call: &Call,
        filter: &InstanceFilter,
        at: Cursor,
    ) -> std::result::Result<(Vec<Result<ListItem>>, Option<Cursor>), Failure> {
        let (mut pages, interfaces, statuses) = match at {
            Cursor::Start => {
                // One after the other: if the first is throttled, the others are not sent.
                let statuses = self.client.statuses().await?;
                let interfaces = self.interfaces_by_machine(statuses.values()).await?;
                (self.client.pages(), interfaces, statuses)
            }
            Cursor::Page {
                pages,
                interfaces,
                statuses,
            } => (pages, interfaces, statuses),
        };
        let Some(page) = pages.next().await? else {
            return Ok((Vec::new(), None));
        };
        let items = page
            .into_iter()
            .map(|machine| self.listed_info(call, machine, &interfaces, &statuses))
            .filter(|info| info.as_ref().map_or(true, |info| filter.matches(info)))
            .map(|info| info.map(ListItem::from))
            .collect();
        let next = Cursor::Page {
            pages,
            interfaces,
            statuses,
        };
        Ok((items, Some(next)))
    }

    /// Converts a listed machine.
    fn listed_info(
        &self,
        call: &Call,
        mut machine: Machine,
        interfaces: &InterfacesByMachine,
        statuses: &Statuses,
    ) -> Result<fleetwright::InstanceInfo> {
        add_status(&mut machine, statuses);
        let interface = interfaces.get(&lowercase(&machine.path));
        self.info(call, &machine, interface)
    }

    /// Returns the interfaces of the group. Reads them again if they are too old, or if one of
    /// `machines` should have an address and has none.
    pub(crate) async fn interfaces_by_machine<'m>(
        &self,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> std::result::Result<Arc<InterfacesByMachine>, Failure> {
        let kept = self.interface_cache.kept.lock().await.clone();
        let is_recent =
            |(at, _): &(Instant, _)| at.elapsed() < self.capabilities.consistency_window / 2;
        if let Some((_, interfaces)) = kept.filter(is_recent) {
            let shown = |machine: &Machine| interfaces.contains_key(&lowercase(&machine.path));
            if machines.all(|machine| !has_address(machine) || shown(machine)) {
                return Ok(interfaces);
            }
        } else if !machines.any(has_address) {
            return Ok(Arc::default());
        }
        let at = Instant::now();
        let (interfaces, public) =
            try_join!(self.client.interfaces(), self.client.public_addresses())?;
        let interfaces = Arc::new(join_addresses(interfaces, &public));
        *self.interface_cache.kept.lock().await = Some((at, Arc::clone(&interfaces)));
        Ok(interfaces)
    }
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

/// Adds the listed states to a machine.
pub(crate) fn add_status(machine: &mut Machine, statuses: &Statuses) {
    let Some(status) = statuses.get(&lowercase(&machine.path)) else {
        return;
    };
    // Another machine may have had the name.
    if status.vm_id.is_empty() || status.vm_id == machine.vm_id {
        machine.statuses.clone_from(&status.statuses);
    }
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
