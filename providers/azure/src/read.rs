//! Reading: one machine by id, many by one read of everything, and what becomes of those that are not there.
//!
//! Owns what "not there" means. Azure keeps no record of what is gone; an id says when it was given, and what
//! is older than any lag and not there is gone.

use std::{slice, sync::Arc};

use chrono::{DateTime, Utc};
use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, ProvisionError, Result,
};
use fleetwright_provider_support::{read_until, read_until_state};
use futures_util::{
    StreamExt as _,
    future::{BoxFuture, try_join_all},
    stream,
};

use crate::{
    AzureProvisioner,
    address::{self, Address, folded},
    convert,
    error::{AzureFailure as _, ErrorContext, Failure},
    list::{Parts, add_status, has_address},
    machine::{Interface, Machine},
    state,
};

/// Up to how many are asked for one by one; more are found in a list of everything.
pub(crate) const FEW: usize = 3;

/// What a look at an id shows.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    There(Box<Machine>),
    /// Gone, with what is known of its end.
    Gone(String),
    /// Nothing is shown, which proves nothing yet.
    NotShown,
}

/// A look at each of many: none where an id is not ours.
pub(crate) type Looks = Vec<Option<std::result::Result<Look, Failure>>>;

impl AzureProvisioner {
    /// The address in an id of ours: one of another group is nobody's here.
    pub(crate) fn address(&self, id: &InstanceId) -> Option<Address> {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        Address::parse(id).filter(|at| {
            same(&at.subscription, self.client.subscription())
                && same(&at.group, self.client.group())
        })
    }

    pub(crate) fn address_of(&self, machine: &Machine) -> Address {
        convert::address(self.client.subscription(), self.client.group(), machine)
    }

    /// Looks at one id.
    pub(crate) async fn look(&self, at: &Address) -> std::result::Result<Look, Failure> {
        match self.client.get(&at.name).await {
            Ok(machine) => Ok(self.judged(at, machine)),
            Err(failure) if failure.is_not_found() => {
                Ok(self.absent(at, address::moment(failure.server_time)))
            }
            Err(failure) => Err(failure),
        }
    }

    /// A machine of the right name, which need not be the right one.
    fn judged(&self, at: &Address, machine: Machine) -> Look {
        if machine.vm_id == at.vm_id {
            return Look::There(Box::new(machine));
        }
        // A read of the past shows the one before ours.
        let before = self.address_of(&machine).made < at.made;
        let now = self.client.moment(Utc::now());
        if before && at.is_younger(self.capabilities.consistency_window, now) {
            return Look::NotShown;
        }
        Look::Gone(self.end_of(at, "gone: another machine has its name"))
    }

    /// What it means that nothing is shown, at a moment.
    fn absent(&self, at: &Address, now: DateTime<Utc>) -> Look {
        if at.is_younger(self.capabilities.consistency_window, now) {
            return Look::NotShown;
        }
        Look::Gone(self.end_of(at, "gone: no record kept"))
    }

    fn end_of(&self, at: &Address, otherwise: &str) -> String {
        let known = self.deletions.reason(&at.vm_id);
        known.unwrap_or_else(|| otherwise.to_owned())
    }

    /// Looks at many, with calls that do not grow with them. One that cannot be looked at is no matter of the
    /// others.
    pub(crate) async fn looks(
        &self,
        all: &[Option<Address>],
    ) -> std::result::Result<Looks, Failure> {
        let known = all.iter().flatten().count();
        // What was made later need not be in the list.
        let began = Utc::now();
        let listed = if known > FEW {
            Some(self.client.statuses().await?)
        } else {
            None
        };
        let began = self.client.moment(began);
        let each = all.iter().map(|at| {
            let listed = listed.as_ref();
            async move {
                let at = at.as_ref()?;
                let path = address::machine_path(&at.subscription, &at.group, &at.name);
                let look = match listed.map(|listed| listed.get(&folded(&path))) {
                    Some(Some(machine)) if machine.vm_id == at.vm_id => {
                        Ok(Look::There(Box::new(machine.clone())))
                    }
                    Some(None) => Ok(self.absent(at, began)),
                    Some(Some(_)) | None => self.look(at).await,
                };
                Some(look)
            }
        });
        let each: Vec<_> = each.collect();
        Ok(stream::iter(each).buffered(self.width()).collect().await)
    }

    /// The instances by id, each as it is or not found.
    pub(crate) async fn described(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.described_once(operation, &ids).await })
        };
        self.fresh
            .retry_not_found(ids, &self.capabilities, once)
            .await
    }

    async fn described_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let all: Vec<_> = ids.iter().map(|id| self.address(id)).collect();
        let told = |failure: Failure| {
            let error = failure.into_error(&call, ErrorContext::default());
            ids.iter().map(|_| Err(error.clone())).collect()
        };
        let looks = match self.looks(&all).await {
            Ok(looks) => looks,
            Err(failure) => return told(failure),
        };
        let there: Vec<_> = looks
            .iter()
            .filter_map(|look| match look {
                Some(Ok(Look::There(machine))) => Some(&**machine),
                Some(Ok(Look::Gone(_) | Look::NotShown) | Err(_)) | None => None,
            })
            .collect();
        let parts = if there.len() > FEW {
            Some(self.parts_of(there.into_iter()).await)
        } else {
            None
        };
        let each = ids.iter().zip(&all).zip(looks).map(|((id, at), look)| {
            let (call, parts) = (&call, parts.as_ref());
            async move { self.shown(call, id, at.as_ref(), look, parts).await }
        });
        let each: Vec<_> = each.collect();
        stream::iter(each).buffered(self.width()).collect().await
    }

    /// What a look shows, with its addresses.
    async fn shown(
        &self,
        call: &Call,
        id: &InstanceId,
        at: Option<&Address>,
        look: Option<std::result::Result<Look, Failure>>,
        parts: Option<&std::result::Result<Arc<Parts>, Failure>>,
    ) -> Result<InstanceInfo> {
        let (Some(at), Some(look)) = (at, look) else {
            return Err(call.not_found(id));
        };
        let told = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let look = look.map_err(told)?;
        let machine = match look {
            Look::There(machine) => machine,
            Look::Gone(reason) => {
                let gone = convert::gone(at, &reason);
                return gone.ok_or_else(|| self.missing(call, id));
            }
            Look::NotShown => return Err(self.missing(call, id)),
        };
        let interface = match parts {
            Some(Ok(parts)) => parts.get(&folded(&machine.path)).cloned(),
            // Who has no address needs none to be read.
            Some(Err(failure)) if has_address(&machine) => return Err(told(failure.clone())),
            Some(Err(_)) => None,
            None => self.interface(call, &machine).await?,
        };
        self.info_at(call, at, &machine, interface.as_ref())
    }

    /// Whether a machine is on its way out, as far as a read or this handle knows.
    pub(crate) fn is_ending(&self, machine: &Machine) -> bool {
        let window = self.capabilities.consistency_window;
        is_deleting(machine) || self.deletions.is_fresh(&machine.vm_id, window)
    }

    /// The interface of one machine. One that is being made or deleted may have none that can be shown.
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

    /// The interfaces of machines, with calls that do not grow with them.
    pub(crate) async fn interfaces(
        &self,
        call: &Call,
        machines: &[&Machine],
    ) -> Result<Vec<Option<Interface>>> {
        if machines.len() <= FEW {
            let each = machines.iter().map(|machine| self.interface(call, machine));
            return try_join_all(each).await;
        }
        let parts = self.parts_of(machines.iter().copied()).await;
        let parts = parts.map_err(|failure| failure.into_error(call, ErrorContext::default()))?;
        let each = machines.iter();
        Ok(each
            .map(|machine| parts.get(&folded(&machine.path)).cloned())
            .collect())
    }

    pub(crate) fn info(
        &self,
        call: &Call,
        machine: &Machine,
        interface: Option<&Interface>,
    ) -> Result<InstanceInfo> {
        self.info_at(call, &self.address_of(machine), machine, interface)
    }

    fn info_at(
        &self,
        call: &Call,
        at: &Address,
        machine: &Machine,
        interface: Option<&Interface>,
    ) -> Result<InstanceInfo> {
        let info = convert::info(at, machine, interface);
        let mut info = info.map_err(|odd| call.unexpected(Effect::Unknown, &odd))?;
        // We have deleted it, and a read of the past shows it as it was.
        if self
            .deletions
            .is_fresh(&at.vm_id, self.capabilities.consistency_window)
        {
            info.state = CloudInstanceState::Terminating;
            info.public_ip = None;
        }
        Ok(info)
    }

    pub(crate) fn missing(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        call.not_found_yet(id, self.capabilities.consistency_window)
    }

    pub(crate) async fn one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        let mut answers = self.described(operation, slice::from_ref(id)).await;
        answers
            .pop()
            .unwrap_or_else(|| Err(self.missing(&self.call(operation), id)))
    }

    /// Reads one until the answer is `enough` or cannot be of the past any more.
    pub(crate) async fn read_until(
        &self,
        operation: Operation,
        id: &InstanceId,
        enough: impl Fn(&InstanceInfo) -> bool + Send + Sync,
    ) -> Result<InstanceInfo> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until(&self.capabilities, read, enough).await
    }

    /// An instance that an optional verb is about, in one of the states that the verb needs.
    pub(crate) async fn in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<(Call, Address)> {
        let call = self.call(operation);
        let at = self.address(id).ok_or_else(|| call.not_found(id))?;
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until_state(&self.capabilities, &call, id, (states, needed), read).await?;
        Ok((call, at))
    }

    /// Every machine of the group with how it is.
    pub(crate) async fn everything(&self) -> std::result::Result<Vec<Machine>, Failure> {
        let statuses = self.client.statuses().await?;
        let (mut all, mut pages) = (Vec::new(), self.client.pages());
        loop {
            match pages.next().await {
                Ok(Some(page)) => all.extend(page),
                Ok(None) => break,
                Err(failure) if failure.is_without_group() => break,
                Err(failure) => return Err(failure),
            }
        }
        for machine in &mut all {
            add_status(machine, &statuses);
        }
        Ok(all)
    }

    /// How many calls of one batch are under way at a time.
    pub(crate) fn width(&self) -> usize {
        self.options.concurrency.get() as usize
    }
}

/// Whether a machine is on its way out, by what Azure is asked for and not by what is left of it.
pub(crate) fn is_deleting(machine: &Machine) -> bool {
    machine.provisioning.eq_ignore_ascii_case("Deleting")
}

/// Whether a machine is still being made.
pub(crate) fn is_creating(machine: &Machine) -> bool {
    machine.provisioning.eq_ignore_ascii_case("Creating") && state::power(machine).is_none()
}
