//! Network interfaces: properties, addresses, reservations, and deletion.

use std::{net::Ipv4Addr, time::Duration};

use super::{Engine, vm::Provisioning};
use crate::{
    azure::{
        catalog::{VirtualNetwork, same},
        error::Refusal,
        wire::{
            body::{DeleteOption, Reference, Tags},
            id::Id,
        },
    },
    cloud::{address_pool::AddressPool, index::Seq},
};

/// The first and the last addresses of a subnet that Azure keeps.
const RESERVED_ADDRESSES: (u32, u32) = (4, 1);

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) id: Id,
    pub(crate) location: String,
    pub(crate) tags: Tags,
    pub(crate) guid: String,
    pub(crate) mac: String,
    pub(crate) group: Option<String>,
    pub(crate) accelerated: bool,
    pub(crate) forwarding: bool,
    pub(crate) addresses: Vec<NicAddress>,
    pub(crate) attached: Option<Id>,
    /// Only this virtual machine may have it until then, because its creation failed.
    pub(crate) reserved: Option<(Id, Duration)>,
    pub(crate) provisioning: Provisioning,
}

/// An address of an interface.
#[derive(Clone, Debug)]
pub(crate) struct NicAddress {
    pub(crate) name: String,
    pub(crate) subnet: String,
    pub(crate) private: Ipv4Addr,
    pub(crate) is_static: bool,
    pub(crate) primary: bool,
    pub(crate) public: Option<(Id, DeleteOption)>,
}

impl Nic {
    /// The id of one of its addresses.
    pub(crate) fn address_path(&self, name: &str) -> String {
        format!("{}/ipConfigurations/{name}", self.id.path())
    }

    /// Its public addresses.
    pub(crate) fn publics(&self) -> impl Iterator<Item = &(Id, DeleteOption)> {
        self.addresses.iter().filter_map(|it| it.public.as_ref())
    }
}

/// An interface that is asked for, alone or with a virtual machine.
pub(super) struct NicSpec {
    pub(super) id: Id,
    pub(super) location: String,
    pub(super) tags: Tags,
    pub(super) group: Option<Reference>,
    pub(super) accelerated: bool,
    pub(super) forwarding: bool,
    pub(super) addresses: Vec<NicAddress>,
}

impl Engine {
    /// Refuses an interface that another virtual machine failed with lately.
    pub(super) fn check_reservation(&self, nic: &Nic, vm: Option<&Id>) -> Result<(), Refusal> {
        match &nic.reserved {
            Some((owner, until))
                if self.now() < *until && vm.is_none_or(|vm| vm.key() != owner.key()) =>
            {
                let seconds = self.core.knobs.timing.nic_reservation.as_secs();
                let message = format!(
                    "Nic(s) in request is reserved for another Virtual Machine for {seconds} seconds. Please provide \
                     another nic(s) or retry after {seconds} seconds. Reserved VM: {}",
                    owner.path()
                );
                Err(Refusal::client("NicReservedForAnotherVm", message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reserves interfaces for a virtual machine that failed.
    pub(super) fn reserve(&mut self, nics: &[Seq], vm: &Id) {
        let until = self
            .now()
            .saturating_add(self.core.knobs.timing.nic_reservation);
        for seq in nics {
            self.edit_nic(*seq, |nic| nic.reserved = Some((vm.clone(), until)));
        }
    }

    pub(super) fn check_subnet(&self, id: &str, location: &str) -> Result<(), Refusal> {
        let (_, subnet_location) = self.subnet(id)?;
        if subnet_location == location {
            Ok(())
        } else {
            Err(Refusal::invalid_reference(id))
        }
    }

    pub(super) fn check_security_group(&self, group: Option<&Reference>) -> Result<(), Refusal> {
        let Some(Reference { id }) = group else {
            return Ok(());
        };
        let names_group = |path: &str, name: &str| {
            let tail = format!("/{path}/providers/Microsoft.Network/networkSecurityGroups/{name}");
            id.to_ascii_lowercase()
                .ends_with(&tail.to_ascii_lowercase())
        };
        let groups = &self.core.knobs.network_security_groups;
        if groups
            .iter()
            .any(|it| names_group(&it.resource_group, &it.name))
        {
            return Ok(());
        }
        Err(Refusal::invalid_reference(id))
    }

    pub(super) fn create_nic(&mut self, spec: NicSpec) -> Seq {
        let (seq, now) = (self.next_seq(), self.now());
        let bits = self.names.number().to_be_bytes();
        let nic = Nic {
            id: spec.id.clone(),
            location: spec.location,
            tags: spec.tags,
            guid: self.names.request(),
            mac: format!("00-0D-3A-{:02X}-{:02X}-{:02X}", bits[0], bits[1], bits[2]),
            group: spec.group.map(|group| group.id),
            accelerated: spec.accelerated,
            forwarding: spec.forwarding,
            addresses: spec.addresses,
            attached: None,
            reserved: None,
            provisioning: Provisioning::Succeeded,
        };
        for address in &nic.addresses {
            let Some((id, _)) = &address.public else {
                continue;
            };
            if let Some(ip) = self.ips.seq(id) {
                let path = nic.address_path(&address.name);
                self.edit_ip(ip, |ip| ip.attached = Some(path));
            }
        }
        self.nics.insert(seq, &spec.id, now, nic);
        seq
    }

    /// An interface is gone, with its addresses; its public ones go or are left behind, as asked.
    pub(super) fn remove_nic(&mut self, seq: Seq) {
        let Some(nic) = self.nics.get(seq).cloned() else {
            return;
        };
        for address in &nic.addresses {
            if let Ok(pool) = self.pool(&address.subnet) {
                pool.release(address.private);
            }
            let Some((id, delete)) = &address.public else {
                continue;
            };
            let Some(ip) = self.ips.seq(id) else { continue };
            match delete {
                DeleteOption::Delete => self.remove_ip(ip),
                DeleteOption::Detach => self.edit_ip(ip, |ip| ip.attached = None),
            }
        }
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.nics.remove(seq, now, window);
    }

    pub(super) fn edit_nic(&mut self, seq: Seq, change: impl FnOnce(&mut Nic)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.nics.edit(seq, now, window, change);
    }

    pub(super) fn allocate_private(&mut self, subnet: &str) -> Result<Ipv4Addr, Refusal> {
        let address = self.pool(subnet)?.take();
        address.ok_or_else(|| subnet_full(subnet))
    }

    pub(super) fn pool(&mut self, subnet: &str) -> Result<&mut AddressPool, Refusal> {
        let (known, _) = self.subnet(subnet)?;
        let cidr = known.cidr;
        let pool = self.pools.entry(subnet.to_ascii_lowercase());
        Ok(pool.or_insert_with(|| AddressPool::subnet(cidr, RESERVED_ADDRESSES)))
    }

    /// A name that nothing else has.
    pub(super) fn unique_name(&mut self, name: &str) -> String {
        format!("{name}-{:08x}", self.names.number() >> 32)
    }

    /// A virtual network by its name.
    pub(crate) fn network(&self, group: &str, name: &str) -> Option<&VirtualNetwork> {
        let mut known = self.core.knobs.virtual_networks.iter();
        known.find(|it| same(&it.resource_group, group) && same(&it.name, name))
    }
}

pub(super) fn nic_in_use(nic: &Id, vm: &Id) -> Refusal {
    let message = format!(
        "Network Interface {} is used by existing resource {}. In order to delete the network interface, it must be \
         dissociated from the resource.",
        nic.path(),
        vm.path()
    );
    Refusal::client("NicInUse", message)
}

/// A subnet has no address left.
pub(super) fn subnet_full(subnet: &str) -> Refusal {
    let message = format!("Subnet {subnet} does not have enough capacity for 1 IP addresses.");
    Refusal::client("SubnetIsFull", message)
}
