//! Elastic addresses: allocated to the account, and associated with instances.
//!
//! An instance with one has it whenever it runs, instead of a public address of its own.

use std::net::Ipv4Addr;

use super::{
    Engine, Mode, Seq,
    record::{State, Tags},
    table::impl_resource,
};
use crate::ec2::error::Refusal;

/// An elastic address.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The allocation id.
    pub(crate) id: String,
    /// The address.
    pub(crate) ip: Ipv4Addr,
    /// The id of its association, and the instance.
    pub(crate) association: Option<(String, String)>,
    /// The tags.
    pub(crate) tags: Tags,
}

impl_resource!(Address);

impl Engine {
    /// Allocates an address.
    ///
    /// # Errors
    ///
    /// `AddressLimitExceeded` if none is free.
    pub(crate) fn allocate_address(&mut self, tags: Tags, mode: Mode) -> Result<Address, Refusal> {
        mode.check_dry_run()?;
        let ip = self.core.public_ips.take().ok_or_else(|| {
            let message = "The maximum number of addresses has been reached.";
            Refusal::client("AddressLimitExceeded", message)
        })?;
        let address = Address {
            id: self.ids.next("eipalloc"),
            ip,
            association: None,
            tags,
        };
        let seq = self.next_seq();
        self.addresses.put(seq, address.clone());
        Ok(address)
    }

    /// Releases an address.
    ///
    /// # Errors
    ///
    /// `InvalidAllocationID.NotFound`, or `InvalidIPAddress.InUse` while it is associated.
    pub(crate) fn release_address(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        let address = self.address(id)?;
        if address.association.is_some() {
            let message = format!("Address {} is in use.", address.ip);
            return Err(Refusal::client("InvalidIPAddress.InUse", message));
        }
        mode.check_dry_run()?;
        if let Some(address) = self.addresses.remove(id) {
            self.core.public_ips.release(address.ip);
        }
        Ok(())
    }

    /// Associates an address with an instance and returns the id of the association.
    ///
    /// # Errors
    ///
    /// `InvalidAllocationID.NotFound`, `InvalidInstanceID.NotFound`, `InvalidInstanceID` for an instance that is pending or
    /// terminating, or `Resource.AlreadyAssociated` unless `again` allows to move the address.
    pub(crate) fn associate_address(
        &mut self,
        id: &str,
        instance: &str,
        again: bool,
        mode: Mode,
    ) -> Result<String, Refusal> {
        let address = self.address(id)?.clone();
        let found = self.find(&[instance.to_owned()])?;
        let seq = found.first().copied().unwrap_or_default();
        let state = self.state(seq).unwrap_or(State::Terminated);
        if matches!(
            state,
            State::Pending | State::ShuttingDown | State::Terminated
        ) {
            let message = format!(
                "The {} instance '{instance}' is not in a valid state for this operation.",
                state.name()
            );
            return Err(Refusal::client("InvalidInstanceID", message));
        }
        if let Some((association, other)) = &address.association {
            if other == instance {
                return mode.check_dry_run().map(|()| association.clone());
            }
            if !again {
                let message =
                    format!("resource {id} is already associated with associate-id {association}");
                return Err(Refusal::client("Resource.AlreadyAssociated", message));
            }
        }
        let other = |other: &Address| other.id != id && other.is_of(instance);
        let taken = self.addresses.iter().any(other);
        if taken && !again {
            let message = format!("resource {instance} is already associated with an address");
            return Err(Refusal::client("Resource.AlreadyAssociated", message));
        }
        mode.check_dry_run()?;
        if let Some((association, _)) = &address.association {
            self.end_association(association);
        }
        self.end_associations_of(instance);
        let association = self.ids.next("eipassoc");
        if state == State::Running {
            self.release_public_ip(seq);
            self.revise(seq, |version| version.public_ip = Some(address.ip));
        }
        if let Some(address) = self.addresses.get_mut(id) {
            address.association = Some((association.clone(), instance.to_owned()));
        }
        Ok(association)
    }

    /// Ends an association. The instance gets a public address of its own, if it is to have one.
    ///
    /// # Errors
    ///
    /// `InvalidAssociationID.NotFound`
    pub(crate) fn disassociate_address(
        &mut self,
        association: &str,
        mode: Mode,
    ) -> Result<(), Refusal> {
        let known = |address: &Address| {
            address
                .association
                .as_ref()
                .is_some_and(|(id, _)| id == association)
        };
        if !self.addresses.iter().any(known) {
            let message = format!("The association ID '{association}' does not exist");
            return Err(Refusal::client("InvalidAssociationID.NotFound", message));
        }
        mode.check_dry_run()?;
        self.end_association(association);
        Ok(())
    }

    /// Ends an association, if it exists.
    fn end_association(&mut self, association: &str) {
        let mut instance = None;
        for address in self.addresses.iter_mut() {
            if address
                .association
                .as_ref()
                .is_some_and(|(id, _)| id == association)
            {
                instance = address.association.take().map(|(_, instance)| instance);
            }
        }
        let seq = instance.and_then(|id| self.by_id.get(&id).copied());
        let Some(seq) = seq.filter(|seq| self.state(*seq) == Some(State::Running)) else {
            return;
        };
        let own = self
            .instances
            .get(&seq)
            .is_some_and(|instance| instance.fixed.public_address);
        let own = if own {
            self.core.public_ips.take()
        } else {
            None
        };
        self.revise(seq, |version| version.public_ip = own);
    }

    /// Ends all associations of an instance.
    pub(super) fn end_associations_of(&mut self, instance: &str) {
        let associations: Vec<String> = self
            .addresses
            .iter()
            .filter(|address| address.is_of(instance))
            .filter_map(|address| address.association.as_ref().map(|(id, _)| id.clone()))
            .collect();
        for association in associations {
            self.end_association(&association);
        }
    }

    /// Returns the elastic address of an instance.
    pub(super) fn elastic_address(&self, seq: Seq) -> Option<Ipv4Addr> {
        let instance = self.instances.get(&seq)?;
        let mut addresses = self.addresses.iter();
        let own = addresses.find(|address| address.is_of(&instance.fixed.id));
        own.map(|address| address.ip)
    }

    /// Returns an address by its allocation id.
    ///
    /// # Errors
    ///
    /// `InvalidAllocationID.NotFound`
    pub(crate) fn address(&self, id: &str) -> Result<&Address, Refusal> {
        let missing = || Refusal::not_found("InvalidAllocationID.NotFound", "allocation", &[id]);
        self.addresses.get(id).ok_or_else(missing)
    }
}

impl Address {
    /// Whether the address is associated with an instance.
    fn is_of(&self, instance: &str) -> bool {
        self.association
            .as_ref()
            .is_some_and(|(_, id)| id == instance)
    }
}
