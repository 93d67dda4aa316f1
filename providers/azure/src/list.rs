//! Listing: the machines of the group, from several lists that each may omit some.
//!
//! Owns the join of those lists. No list proves that it is complete: Azure's lists omit machines that
//! exist. So every machine that one of them names is listed, and what another one lacks is read with a
//! GET. If every list is complete, the number of calls does not depend on the number of machines, except
//! for the pages.
//!
//! | list | has |
//! | --- | --- |
//! | machines of the group | everything but states and addresses |
//! | states of the subscription | names and states |
//! | interfaces and public addresses of the group | addresses, and the names of their machines |
//!
//! All are joined by resource id in lower case, because Azure returns ids in any letter case. Azure
//! cannot filter by tag, so this crate does. Related trap in the README: 47 (reads omit machines that
//! exist).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fleetwright::{BoxStream, Call, InstanceFilter, ListItem, Operation, Result};
use fleetwright_provider_support::poll::poll_delays;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{last_part, lowercase, machine_path},
    client::Pages,
    error::{AzureFailure as _, Cause, ErrorContext, Failure},
    interfaces::InterfacesByMachine,
    lookup::ABSENT_READS,
    machine::Machine,
};

/// The states of machines, by resource id in lower case.
pub(crate) type Statuses = BTreeMap<String, Machine>;

/// A list in progress.
struct Listing {
    /// The pages of machines; `None` after the last one.
    pages: Option<Pages>,
    /// The list of states; `None` without the right to it.
    statuses: Option<Statuses>,
    /// The list of interfaces; empty if only machines are wanted.
    interfaces: Arc<InterfacesByMachine>,
    /// The machines that a page has shown, by resource id in lower case.
    seen: BTreeSet<String>,
}

impl Listing {
    /// Returns the resource ids of machines that other lists name and no page has shown.
    fn unseen(&self, group: &str) -> Vec<String> {
        let named = self.statuses.iter().flat_map(BTreeMap::keys);
        let named = named.chain(self.interfaces.keys());
        let named: BTreeSet<_> = named.filter(|path| !self.seen.contains(*path)).collect();
        let ours = |path: &&String| {
            let name = path.strip_prefix(group);
            name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
        };
        named.into_iter().filter(ours).cloned().collect()
    }
}

impl AzureProvisioner {
    /// Lists the instances that `filter` selects.
    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        // The outer option ends the stream, the inner one is empty before the first page.
        let step = move |at: Option<Option<Listing>>| async move {
            let call = self.call(operation);
            match self.next_page(&call, filter, at?).await {
                Ok(Some((items, listing))) => Some((items, Some(Some(listing)))),
                Ok(None) => None,
                Err(failure) => match self.check_group(failure).await {
                    Ok(()) => None,
                    Err(failure) => {
                        let error = failure.into_error(&call, ErrorContext::default());
                        Some((vec![Err(error)], None))
                    }
                },
            }
        };
        stream::unfold(Some(None), step)
            .flat_map(stream::iter)
            .boxed()
    }

    /// Reads the next page. Returns its items and the rest of the list, or `None` at the end.
    async fn next_page(
        &self,
        call: &Call,
        filter: &InstanceFilter,
        listing: Option<Listing>,
    ) -> std::result::Result<Option<(Vec<Result<ListItem>>, Listing)>, Failure> {
        let mut listing = match listing {
            Some(listing) => listing,
            None => {
                // One after the other: if the first is throttled, the others are not sent.
                let statuses = self.client.statuses().await?;
                let shown = statuses.iter().flat_map(BTreeMap::values);
                let interfaces = self.interfaces_of_group(shown).await?;
                self.begin_list(statuses, interfaces)
            }
        };
        let Some(machines) = self.next_machines(&mut listing).await? else {
            return Ok(None);
        };
        let items = machines
            .iter()
            .map(|machine| {
                let interface = listing.interfaces.get(&lowercase(&machine.path));
                self.info(call, machine, interface)
            })
            .filter(|info| info.as_ref().map_or(true, |info| filter.matches(info)))
            .map(|info| info.map(ListItem::from))
            .collect();
        Ok(Some((items, listing)))
    }

    /// Lists every machine of the group with its states, without addresses.
    pub(crate) async fn list_machines(&self) -> std::result::Result<Vec<Machine>, Failure> {
        let statuses = self.client.statuses().await?;
        let mut listing = self.begin_list(statuses, Arc::default());
        let mut all = Vec::new();
        loop {
            match self.next_machines(&mut listing).await {
                Ok(Some(machines)) => all.extend(machines),
                Ok(None) => return Ok(all),
                Err(failure) => return self.check_group(failure).await.map(|()| all),
            }
        }
    }

    /// Succeeds if a list failed because the resource group does not exist: such a group contains nothing. One 404
    /// proves nothing, because it may come from a region that does not have the group's data, so
    /// [`ABSENT_READS`] in a row must say it. Every other failure is returned.
    async fn check_group(&self, failure: Failure) -> std::result::Result<(), Failure> {
        if !failure.is_group_missing() {
            return Err(failure);
        }
        let mut delays = poll_delays(self.options.poll_interval);
        for _ in 1..ABSENT_READS {
            if let Some(delay) = delays.next() {
                sleep(delay).await;
            }
            match self.client.pages().next().await {
                Err(failure) if failure.is_group_missing() => {}
                Err(failure) => return Err(failure),
                Ok(_) => {
                    let message = "Azure did not find the resource group in one read and found it in the next one; retry";
                    return Err(Failure::new(Cause::Responded(503), message));
                }
            }
        }
        Ok(())
    }

    /// Begins the list of machines.
    fn begin_list(
        &self,
        statuses: Option<Statuses>,
        interfaces: Arc<InterfacesByMachine>,
    ) -> Listing {
        Listing {
            pages: Some(self.client.pages()),
            statuses,
            interfaces,
            seen: BTreeSet::new(),
        }
    }

    /// Returns the machines of the next page with their states; after the last page those that only
    /// other lists name, and then `None`.
    async fn next_machines(
        &self,
        listing: &mut Listing,
    ) -> std::result::Result<Option<Vec<Machine>>, Failure> {
        let Some(pages) = &mut listing.pages else {
            return Ok(None);
        };
        let Some(page) = pages.next().await? else {
            listing.pages = None;
            let group = machine_path(self.client.subscription(), self.client.group(), "");
            let unseen = listing.unseen(&lowercase(&group));
            let mut machines = self.read_unseen(&unseen).await?;
            // Like those of other machines, the states are those of the list, if it has them.
            if let Some(statuses) = &listing.statuses {
                for machine in &mut machines {
                    add_status(machine, statuses);
                }
            }
            return Ok(Some(machines));
        };
        let paths = page.iter().map(|machine| lowercase(&machine.path));
        listing.seen.extend(paths);
        let statuses = listing.statuses.as_ref();
        let machines: Vec<_> = page
            .into_iter()
            .map(|machine| self.with_states(machine, statuses))
            .collect();
        let machines = stream::iter(machines).buffered(self.concurrency());
        machines.try_collect().await.map(Some)
    }

    /// Reads the machines that other lists name and no page has shown.
    async fn read_unseen(&self, unseen: &[String]) -> std::result::Result<Vec<Machine>, Failure> {
        let reads: Vec<_> = unseen.iter().map(|path| self.get_named(path)).collect();
        let reads = stream::iter(reads).buffered(self.concurrency());
        let found: Vec<Option<Machine>> = reads.try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Adds its states to a listed machine: those of the list of states, or of a GET.
    async fn with_states(
        &self,
        mut machine: Machine,
        statuses: Option<&Statuses>,
    ) -> std::result::Result<Machine, Failure> {
        if statuses.is_some_and(|statuses| add_status(&mut machine, statuses)) {
            return Ok(machine);
        }
        match self.client.get(&machine.name).await {
            Ok(current) => Ok(current),
            // The list is stale, or the GET is. The machine stays in the list.
            Err(failure) if failure.is_not_found() => Ok(machine),
            Err(failure) => Err(failure),
        }
    }

    /// Reads a machine that a list names, because one 404 proves nothing. Returns `None` if
    /// [`ABSENT_READS`] in a row do not find it: the list is stale.
    async fn get_named(&self, path: &str) -> std::result::Result<Option<Machine>, Failure> {
        let mut delays = poll_delays(self.options.poll_interval);
        for read in 1..=ABSENT_READS {
            match self.client.get(last_part(path)).await {
                Ok(machine) => return Ok(Some(machine)),
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
            if let (true, Some(delay)) = (read < ABSENT_READS, delays.next()) {
                sleep(delay).await;
            }
        }
        Ok(None)
    }
}

/// Adds the listed states to a machine. Returns `false` if the list has none of it.
fn add_status(machine: &mut Machine, statuses: &Statuses) -> bool {
    let status = statuses.get(&lowercase(&machine.path));
    // Another machine may have had the name.
    let ours = |status: &&Machine| status.vm_id.is_empty() || status.vm_id == machine.vm_id;
    let Some(status) = status.filter(ours) else {
        return false;
    };
    machine.statuses.clone_from(&status.statuses);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_only_other_lists_name_are_unseen() {
        let machine = |path: &str| (path.to_owned(), Machine::default());
        let statuses = ["/rg/a", "/rg/b", "/other/c"].map(machine);
        let owners = ["/rg/a", "/rg/d", "/rg/scaleset/e", "/rg/"];
        let interfaces = owners.map(|path| (path.to_owned(), crate::machine::Interface::default()));
        let listing = Listing {
            pages: None,
            statuses: Some(statuses.into()),
            interfaces: Arc::new(interfaces.into()),
            seen: ["/rg/a".to_owned()].into(),
        };
        assert_eq!(listing.unseen("/rg/"), ["/rg/b", "/rg/d"]);
    }
}
