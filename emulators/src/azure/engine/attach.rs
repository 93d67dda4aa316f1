//! The interfaces of a virtual machine: existing ones, and those created with it.
//!
//! All of them are checked before the first one is created, so that a refused creation allocates no
//! address.

use std::collections::BTreeMap;

use super::{
    Engine,
    nic::{NicAddress, NicSpec, nic_in_use, subnet_full},
    plan::NicPlan,
    public_ip::is_static_allocation,
    vm::{Attached, check_not_deleting},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{DeleteOption, IpBody, IpProperties, check_dns_settings, check_ip_version},
            id::{Id, Kind},
            vm_body::{
                NicConfiguration, NicReference, PublicIpConfiguration, VmBody, VmIpConfiguration,
            },
        },
    },
    cloud::index::Seq,
};

impl Engine {
    /// Plans the interfaces of a virtual machine, the primary one first.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for no interfaces, both kinds or a repeated one; 400
    /// `VirtualMachineMustHaveOneNetworkInterfaceAsPrimary` for several without exactly one
    /// primary; the refusals of each interface.
    pub(super) fn nic_plans(
        &self,
        vm: &Id,
        body: &VmBody,
        location: &str,
    ) -> Result<Vec<NicPlan>, Refusal> {
        let profile = body.properties.network_profile.as_ref();
        let profile = profile.ok_or_else(|| Refusal::missing("networkProfile"))?;
        let existing = profile.network_interfaces.as_deref().unwrap_or_default();
        let new = profile.network_interface_configurations.as_deref();
        let new = new.unwrap_or_default();
        if existing.is_empty() == new.is_empty() {
            let message =
                "Either networkInterfaces or networkInterfaceConfigurations must be given.";
            return Err(Refusal::invalid("networkProfile", message));
        }
        if !new.is_empty() && profile.network_api_version.is_none() {
            return Err(Refusal::missing("networkProfile.networkApiVersion"));
        }
        let mut plans: Vec<(bool, NicPlan)> = Vec::new();
        for reference in existing {
            let (seq, delete) = self.nic_to_attach(vm, reference, location)?;
            let primary = reference.properties.primary.unwrap_or(false);
            plans.push((primary, NicPlan::Existing(seq, delete)));
        }
        for configuration in new {
            self.check_configuration(configuration, location)?;
            let primary = configuration.properties.primary.unwrap_or(false);
            plans.push((primary, NicPlan::Create(Box::new(configuration.clone()))));
        }
        let mut ids: Vec<_> = existing
            .iter()
            .map(|nic| nic.id.as_deref().map(str::to_lowercase))
            .collect();
        ids.sort_unstable();
        if ids.windows(2).any(|two| two.first() == two.last()) {
            let message = "A network interface is named more than once.";
            return Err(Refusal::invalid("networkInterfaces", message));
        }
        let primaries = plans.iter().filter(|(primary, _)| *primary).count();
        if plans.len() > 1 && primaries != 1 {
            let message =
                "Virtual machine must have exactly one network interface set as the primary.";
            return Err(Refusal::client(
                "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
                message,
            ));
        }
        plans.sort_by_key(|(primary, _)| !primary);
        Ok(plans.into_iter().map(|(_, plan)| plan).collect())
    }

    /// Checks an existing interface, and returns it with its delete option.
    ///
    /// # Errors
    ///
    /// 400 `InvalidResourceReference` if it does not exist or is in another location, 400
    /// `NicInUse`, 400 `NicReservedForAnotherVm`, 409 `Conflict` while it is being deleted.
    fn nic_to_attach(
        &self,
        vm: &Id,
        reference: &NicReference,
        location: &str,
    ) -> Result<(Seq, DeleteOption), Refusal> {
        let path = reference.id.as_deref();
        let path = path.ok_or_else(|| Refusal::missing("networkInterface.id"))?;
        let id = Id::read(Kind::Nic, path)?;
        let found = self.nics.find(&id);
        let (seq, nic) = found.ok_or_else(|| Refusal::invalid_reference(path))?;
        if nic.location != location {
            return Err(Refusal::invalid_reference(path));
        }
        check_not_deleting(nic.provisioning, &nic.id)?;
        let other = nic.attached.as_ref().filter(|it| it.key() != vm.key());
        if let Some(other) = other {
            return Err(nic_in_use(&nic.id, other));
        }
        self.check_reservation(nic, Some(vm))?;
        let delete = reference.properties.delete_option;
        Ok((seq, delete.unwrap_or_default()))
    }

    /// Checks an interface that is created with its virtual machine: name, addresses, subnets,
    /// security group, and the SKU of public addresses.
    fn check_configuration(
        &self,
        configuration: &NicConfiguration,
        location: &str,
    ) -> Result<(), Refusal> {
        let properties = &configuration.properties;
        if configuration.name.is_none() {
            return Err(Refusal::missing("networkInterfaceConfiguration.name"));
        }
        if properties.ip_configurations.is_empty() {
            return Err(Refusal::missing(
                "networkInterfaceConfiguration.ipConfigurations",
            ));
        }
        self.check_security_group(properties.network_security_group.as_ref())?;
        check_dns_settings(properties.dns_settings.as_ref())?;
        for address in &properties.ip_configurations {
            let subnet = address.properties.subnet.as_ref();
            let subnet = subnet.ok_or_else(|| Refusal::missing("ipConfiguration.subnet"))?;
            self.check_subnet(&subnet.id, location)?;
            check_ip_version(address.properties.private_ip_address_version.as_deref())?;
            if let Some(public) = &address.properties.public_ip_address_configuration {
                let sku = public.sku.as_ref().and_then(|sku| sku.name.as_deref());
                is_static_allocation(public.properties.allocation.as_deref(), sku)?;
                check_ip_version(public.properties.version.as_deref())?;
            }
        }
        Ok(())
    }

    /// Refuses interfaces that a subnet does not have enough addresses for, with 400
    /// `SubnetIsFull`.
    pub(super) fn check_room(&mut self, plans: &[NicPlan]) -> Result<(), Refusal> {
        let mut needed: BTreeMap<String, u64> = BTreeMap::new();
        for plan in plans {
            let NicPlan::Create(configuration) = plan else {
                continue;
            };
            for address in &configuration.properties.ip_configurations {
                let subnet = address.properties.subnet.as_ref();
                let subnet = subnet.map(|subnet| subnet.id.to_ascii_lowercase());
                *needed.entry(subnet.unwrap_or_default()).or_default() += 1;
            }
        }
        for (subnet, count) in needed {
            if self.pool(&subnet)?.free() < count {
                return Err(subnet_full(&subnet));
            }
        }
        Ok(())
    }

    /// Creates or attaches the planned interfaces of a new virtual machine.
    pub(super) fn attach_nics(
        &mut self,
        vm: &Id,
        plans: &[NicPlan],
        location: &str,
    ) -> Result<Vec<Attached>, Refusal> {
        let mut attached = Vec::new();
        for plan in plans {
            let (seq, delete) = match plan {
                NicPlan::Existing(seq, delete) => (*seq, *delete),
                NicPlan::Create(configuration) => {
                    let delete = configuration.properties.delete_option.unwrap_or_default();
                    (
                        self.create_configured_nic(vm, configuration, location)?,
                        delete,
                    )
                }
            };
            let Some(id) = self.nics.get(seq).map(|nic| nic.id.clone()) else {
                continue;
            };
            self.edit_nic(seq, |nic| nic.attached = Some(vm.clone()));
            attached.push(Attached {
                id,
                delete,
                lun: None,
            });
        }
        Ok(attached)
    }

    /// Creates an interface, with its addresses, from the document of a virtual machine.
    fn create_configured_nic(
        &mut self,
        vm: &Id,
        configuration: &NicConfiguration,
        location: &str,
    ) -> Result<Seq, Refusal> {
        let properties = &configuration.properties;
        let name = configuration.name.as_deref().unwrap_or("nic");
        let name = self.unique_name(name);
        let mut addresses = Vec::new();
        for (place, address) in properties.ip_configurations.iter().enumerate() {
            addresses.push(self.create_address(vm, address, place, location)?);
        }
        Ok(self.create_nic(NicSpec {
            id: vm.sibling(Kind::Nic, &name),
            location: location.to_owned(),
            tags: configuration.tags.clone().unwrap_or_default(),
            group: properties.network_security_group.clone(),
            accelerated: properties.enable_accelerated_networking.unwrap_or(false),
            forwarding: properties.enable_ip_forwarding.unwrap_or(false),
            addresses,
        }))
    }

    /// Allocates an address of a new interface, and creates its public address if it has one.
    fn create_address(
        &mut self,
        vm: &Id,
        address: &VmIpConfiguration,
        place: usize,
        location: &str,
    ) -> Result<NicAddress, Refusal> {
        let properties = &address.properties;
        let public = match &properties.public_ip_address_configuration {
            None => None,
            Some(configuration) => Some(self.create_configured_ip(vm, configuration, location)?),
        };
        let subnet = properties.subnet.as_ref().map(|subnet| subnet.id.clone());
        let subnet = subnet.unwrap_or_default();
        Ok(NicAddress {
            name: address
                .name
                .clone()
                .unwrap_or_else(|| format!("ipconfig{}", place + 1)),
            private: self.allocate_private(&subnet)?,
            subnet,
            is_static: false,
            primary: properties.primary.unwrap_or(place == 0),
            public,
        })
    }

    /// Creates a public address from the document of a virtual machine.
    fn create_configured_ip(
        &mut self,
        vm: &Id,
        configuration: &PublicIpConfiguration,
        location: &str,
    ) -> Result<(Id, DeleteOption), Refusal> {
        let name = self.unique_name(configuration.name.as_deref().unwrap_or("ip"));
        let properties = &configuration.properties;
        let body = IpBody {
            location: Some(location.to_owned()),
            tags: configuration.tags.clone(),
            zones: None,
            sku: configuration.sku.clone(),
            properties: Some(IpProperties {
                allocation: properties.allocation.clone(),
                version: properties.version.clone(),
                idle_timeout_in_minutes: properties.idle_timeout_in_minutes,
                delete_option: None,
            }),
        };
        let id = vm.sibling(Kind::PublicIp, &name);
        self.create_ip(&id, &body)?;
        Ok((id, properties.delete_option.unwrap_or_default()))
    }
}
