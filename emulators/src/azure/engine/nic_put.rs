//! Separate network interfaces: create, change and delete.
//!
//! Only tags and the network security group of an existing interface can change; other addresses
//! are refused with 400 `NotSupported`.

use std::collections::BTreeMap;

use super::{
    Engine,
    nic::{Nic, NicAddress, NicSpec, nic_in_use, subnet_full},
    task::Work,
    vm::{Provisioning, check_not_deleting},
};
use crate::azure::{
    catalog::same,
    error::Refusal,
    wire::{
        body::{
            DeleteOption, IpConfiguration, NicBody, NicProperties, check_dns_settings,
            check_ip_version,
        },
        id::{Id, Kind},
    },
};

impl Engine {
    /// Creates or changes an interface. Returns the operation, and whether the interface is new.
    ///
    /// # Errors
    ///
    /// 400 `InvalidResourceReference` for a subnet, security group or public address that does not
    /// exist, 400 `SubnetIsFull`, 400 `PublicIPAddressInUse`, 400 `NotSupported`, 409 `Conflict`
    /// while it is being deleted. A refused call allocates no address.
    pub(crate) fn put_nic(&mut self, id: &Id, body: &NicBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let location = self.location(body.location.as_deref())?;
        self.check_tags(body.tags.as_ref())?;
        let properties = body.properties.clone().unwrap_or_default();
        self.check_security_group(properties.network_security_group.as_ref())?;
        check_dns_settings(properties.dns_settings.as_ref())?;
        let tags = body.tags.clone().unwrap_or_default();
        let (seq, new) = match self.nics.find(id) {
            Some((seq, nic)) => {
                check_not_deleting(nic.provisioning, id)?;
                check_addresses(nic, &properties.ip_configurations)?;
                let group = properties.network_security_group.map(|group| group.id);
                self.edit_nic(seq, |nic| {
                    nic.tags = tags;
                    nic.group = group;
                    nic.provisioning = Provisioning::Updating;
                });
                (seq, false)
            }
            None => {
                let addresses = self.create_addresses(&properties, &location)?;
                let spec = NicSpec {
                    id: id.clone(),
                    location: location.clone(),
                    tags,
                    group: properties.network_security_group,
                    accelerated: properties.enable_accelerated_networking.unwrap_or(false),
                    forwarding: properties.enable_ip_forwarding.unwrap_or(false),
                    addresses,
                };
                (self.create_nic(spec), true)
            }
        };
        let task = self.begin_update(id, &location, Work::Put(Kind::Nic, seq));
        Ok((task, new))
    }

    /// Checks the addresses of a new interface, and allocates all of them or none.
    fn create_addresses(
        &mut self,
        properties: &NicProperties,
        location: &str,
    ) -> Result<Vec<NicAddress>, Refusal> {
        if properties.ip_configurations.is_empty() {
            return Err(Refusal::missing("ipConfigurations"));
        }
        let mut needed: BTreeMap<String, u64> = BTreeMap::new();
        let mut publics: Vec<Option<Id>> = Vec::new();
        for address in &properties.ip_configurations {
            let public = self.check_address(address, location)?;
            if public.is_some() && publics.contains(&public) {
                return Err(Refusal::invalid(
                    "publicIPAddress",
                    "A public address is named twice.",
                ));
            }
            publics.push(public);
            *needed.entry(subnet_of(address).to_owned()).or_default() += 1;
        }
        for (subnet, count) in needed {
            if self.pool(&subnet)?.free() < count {
                return Err(subnet_full(&subnet));
            }
        }
        let mut addresses = Vec::new();
        for (place, (address, public)) in
            properties.ip_configurations.iter().zip(publics).enumerate()
        {
            let (name, subnet) = (address.name.clone(), subnet_of(address));
            addresses.push(NicAddress {
                name: name.unwrap_or_else(|| format!("ipconfig{}", place + 1)),
                private: self.allocate_private(subnet)?,
                subnet: subnet.to_owned(),
                is_static: false,
                primary: address.properties.primary.unwrap_or(place == 0),
                public: public.map(|id| (id, DeleteOption::Detach)),
            });
        }
        Ok(addresses)
    }

    /// Checks an address of a new interface, and returns the id of its public address.
    ///
    /// # Errors
    ///
    /// See [`Self::put_nic`].
    fn check_address(
        &self,
        address: &IpConfiguration,
        location: &str,
    ) -> Result<Option<Id>, Refusal> {
        let properties = &address.properties;
        if properties.subnet.is_none() {
            return Err(Refusal::missing("ipConfiguration.subnet"));
        }
        self.check_subnet(subnet_of(address), location)?;
        check_ip_version(properties.private_ip_address_version.as_deref())?;
        let method = properties.private_ip_allocation_method.as_deref();
        if method.is_some_and(|method| !same(method, "Dynamic")) {
            return Err(Refusal::unsupported("privateIPAllocationMethod"));
        }
        let Some(reference) = &properties.public_ip_address else {
            return Ok(None);
        };
        let id = Id::read(Kind::PublicIp, &reference.id)?;
        let found = self.ips.find(&id);
        let (_, ip) = found.ok_or_else(|| Refusal::invalid_reference(&reference.id))?;
        check_not_deleting(ip.provisioning, &id)?;
        if let Some(other) = &ip.attached {
            let message = format!("Resource {} is already attached to {other}.", id.path());
            return Err(Refusal::client("PublicIPAddressInUse", message));
        }
        Ok(Some(ip.id.clone()))
    }

    /// Begins to delete an interface; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// 400 `NicInUse` while it is attached, 400 `NicReservedForAnotherVm` while it is reserved, 404
    /// `ResourceGroupNotFound`.
    pub(crate) fn delete_nic(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let Some((seq, nic)) = self.nics.find(id) else {
            return Ok(None);
        };
        if let Some(vm) = &nic.attached {
            return Err(nic_in_use(&nic.id, vm));
        }
        self.check_reservation(nic, None)?;
        let location = nic.location.clone();
        self.edit_nic(seq, |nic| nic.provisioning = Provisioning::Deleting);
        Ok(Some(self.begin_update(
            id,
            &location,
            Work::Remove(Kind::Nic, seq),
        )))
    }
}

/// Returns the resource id of an address's subnet, or an empty text.
fn subnet_of(address: &IpConfiguration) -> &str {
    let subnet = address.properties.subnet.as_ref();
    subnet.map_or("", |subnet| subnet.id.as_str())
}

/// Refuses other subnets or public addresses than the interface has, with 400 `NotSupported`. A
/// document without addresses is no change.
fn check_addresses(nic: &Nic, requested: &[IpConfiguration]) -> Result<(), Refusal> {
    let matches = |(own, requested): (&NicAddress, &IpConfiguration)| {
        let public = requested.properties.public_ip_address.as_ref();
        let own_public = own.public.as_ref().map(|(id, _)| id.path());
        same(&own.subnet, subnet_of(requested))
            && match (own_public, public) {
                (None, None) => true,
                (Some(own), Some(requested)) => same(&own, &requested.id),
                (Some(_), None) | (None, Some(_)) => false,
            }
    };
    let all =
        nic.addresses.len() == requested.len() && nic.addresses.iter().zip(requested).all(matches);
    if requested.is_empty() || all {
        Ok(())
    } else {
        Err(Refusal::unsupported("ipConfigurations"))
    }
}
