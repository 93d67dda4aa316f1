//! Listing: page by page, with states and addresses from three lists more, whatever the number of machines.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use fleetwright::{
    BoxStream, Call, CloudInstanceState, InstanceFilter, ListItem, Operation, Result,
};
use futures_util::{StreamExt as _, stream, try_join};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    AzureProvisioner,
    address::folded,
    client::Pages,
    error::{AzureFailure as _, ErrorContext, Failure},
    machine::{Interface, Machine, Public},
    state,
};

/// Where machines are reached, by their resource ids in small letters.
pub(crate) type Parts = BTreeMap<String, Interface>;

/// How machines are, by their resource ids in small letters.
pub(crate) type Statuses = BTreeMap<String, Machine>;

/// What was read of where machines are reached, and when. It changes far more rarely than states do, and may be
/// as old as half of what a read may lag: the other half is Azure's.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    kept: Mutex<Option<(Instant, Arc<Parts>)>>,
}

/// Where a list has got to.
enum At {
    Start,
    Page {
        pages: Pages,
        parts: Arc<Parts>,
        statuses: Statuses,
    },
}

impl AzureProvisioner {
    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let step = move |at: Option<At>| async move {
            let call = self.call(operation);
            match self.next_page(&call, filter, at?).await {
                Ok((seen, next)) => Some((seen, next)),
                // What is in a group that is not there is nothing.
                Err(failure) if failure.is_without_group() => None,
                Err(failure) => {
                    let error = failure.into_error(&call, ErrorContext::default());
                    Some((vec![Err(error)], None))
                }
            }
        };
        stream::unfold(Some(At::Start), step)
            .flat_map(stream::iter)
            .boxed()
    }

    async fn next_page(
        &self,
        call: &Call,
        filter: &InstanceFilter,
        at: At,
    ) -> std::result::Result<(Vec<Result<ListItem>>, Option<At>), Failure> {
        let (mut pages, parts, statuses) = match at {
            At::Start => {
                // One after the other: a call that is refused as one too many is not followed by more.
                let statuses = self.client.statuses().await?;
                let parts = self.parts_of(statuses.values()).await?;
                (self.client.pages(), parts, statuses)
            }
            At::Page {
                pages,
                parts,
                statuses,
            } => (pages, parts, statuses),
        };
        let Some(page) = pages.next().await? else {
            return Ok((Vec::new(), None));
        };
        let seen = page
            .into_iter()
            .map(|machine| self.seen(call, machine, &parts, &statuses))
            .filter(|info| info.as_ref().map_or(true, |info| filter.matches(info)))
            .map(|info| info.map(ListItem::from))
            .collect();
        let next = At::Page {
            pages,
            parts,
            statuses,
        };
        Ok((seen, Some(next)))
    }

    fn seen(
        &self,
        call: &Call,
        mut machine: Machine,
        parts: &Parts,
        statuses: &Statuses,
    ) -> Result<fleetwright::InstanceInfo> {
        add_status(&mut machine, statuses);
        let interface = parts.get(&folded(&machine.path));
        self.info(call, &machine, interface)
    }

    /// Where machines of the group are reached: read anew if it is too old, or if one of `machines` should have
    /// an address and has none.
    pub(crate) async fn parts_of<'m>(
        &self,
        mut machines: impl Iterator<Item = &'m Machine>,
    ) -> std::result::Result<Arc<Parts>, Failure> {
        let kept = self.reached.kept.lock().await.clone();
        let fresh =
            |(at, _): &(Instant, _)| at.elapsed() < self.capabilities.consistency_window / 2;
        if let Some((_, parts)) = kept.filter(fresh) {
            let shown = |machine: &Machine| parts.contains_key(&folded(&machine.path));
            if machines.all(|machine| !has_address(machine) || shown(machine)) {
                return Ok(parts);
            }
        } else if !machines.any(has_address) {
            return Ok(Arc::default());
        }
        let at = Instant::now();
        let (interfaces, public) =
            try_join!(self.client.interfaces(), self.client.public_addresses())?;
        let parts = Arc::new(joined(interfaces, &public));
        *self.reached.kept.lock().await = Some((at, Arc::clone(&parts)));
        Ok(parts)
    }
}

/// Whether a machine can be reached at all.
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

/// The first interface of each machine with its public address, by machine.
fn joined(interfaces: Vec<Interface>, public: &BTreeMap<String, IpAddr>) -> Parts {
    let mut parts = Parts::new();
    for mut interface in interfaces {
        if let Some(Public::At(path)) = &interface.public {
            let address = public.get(&folded(path));
            interface.public = address.map(|address| Public::Address(*address));
        }
        let Some(machine) = interface.machine.as_deref().map(folded) else {
            continue;
        };
        // A machine may have several, in any order.
        if interface.primary || !parts.contains_key(&machine) {
            parts.insert(machine, interface);
        }
    }
    parts
}

/// Adds how a machine is to what it is.
pub(crate) fn add_status(machine: &mut Machine, statuses: &Statuses) {
    let Some(told) = statuses.get(&folded(&machine.path)) else {
        return;
    };
    // A name is used again.
    if told.vm_id.is_empty() || told.vm_id == machine.vm_id {
        machine.statuses.clone_from(&told.statuses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_reached_by_its_first_interface_in_whatever_order_they_come() {
        let one = |primary, mac: &str| Interface {
            machine: Some("/Machines/A".to_owned()),
            primary,
            mac: Some(mac.to_owned()),
            ..Interface::default()
        };
        let (first, second) = (one(true, "1"), one(false, "2"));
        for all in [[first.clone(), second.clone()], [second, first.clone()]] {
            let parts = joined(all.into(), &BTreeMap::new());
            assert_eq!(parts["/machines/a"], first);
        }
    }
}
