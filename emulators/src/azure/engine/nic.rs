//! Network interfaces: properties, private addresses, reservations, and deletion.
//!
//! An interface is attached to at most one virtual machine. If the creation of that machine fails,
//! the interface is reserved for it for [`nic_reservation`](crate::azure::Timing), three minutes by
//! default: until then no other virtual machine can use it, and it cannot be deleted.

use std::{net::Ipv4Addr, time::Duration};

use super::{Engine, vm::Provisioning};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{DeleteOption, Reference, Tags},
            id::Id,
        },
    },
    cloud::{address_pool::AddressPool, index::Seq},
};

/// How many addresses at the beginning and at the end of a subnet are never given to an interface.
const RESERVED_ADDRESSES: (u32, u32) = (4, 1);

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    /// The resource id.
    pub(crate) id: Id,
    /// The location.
    pub(crate) location: String,
    /// The tags.
    pub(crate) tags: Tags,
    /// The GUID, `resourceGuid` in documents and the etag.
    pub(crate) guid: String,
    /// The MAC address. Its first three bytes are `00-0D-3A`.
    pub(crate) mac: String,
    /// The resource id of its network security group.
    pub(crate) group: Option<String>,
    /// Whether accelerated networking was requested. Without effect.
    pub(crate) accelerated: bool,
    /// Whether IP forwarding was requested. Without effect.
    pub(crate) forwarding: bool,
    /// The addresses, in the order of the document.
    pub(crate) addresses: Vec<NicAddress>,
    /// The virtual machine that it is attached to.
    pub(crate) attached: Option<Id>,
    /// The virtual machine that it is reserved for, and until when.
    pub(crate) reserved: Option<(Id, Duration)>,
    /// The provisioning state.
    pub(crate) provisioning: Provisioning,
}

/// An address of an interface, `ipConfiguration` in documents.
#[derive(Clone, Debug)]
pub(crate) struct NicAddress {
    /// The name, unique in its interface.
    pub(crate) name: String,
    /// The resource id of the subnet.
    pub(crate) subnet: String,
    /// The private address, which it keeps until the interface is deleted.
    pub(crate) private: Ipv4Addr,
    /// Whether the private address is static. The emulator has only dynamic ones.
    pub(crate) is_static: bool,
    /// Whether it is the primary address.
    pub(crate) primary: bool,
    /// The public address, and what happens to it when the interface is deleted.
    pub(crate) public: Option<(Id, DeleteOption)>,
}

impl Nic {
    /// Returns the resource id of one of its addresses.
    pub(crate) fn address_path(&self, name: &str) -> String {
        format!("{}/ipConfigurations/{name}", self.id.path())
    }

    /// Returns its public addresses with their delete options.
    pub(crate) fn publics(&self) -> impl Iterator<Item = &(Id, DeleteOption)> {
        self.addresses.iter().filter_map(|it| it.public.as_ref())
    }
}

/// A new interface, with its addresses already allocated.
pub(super) struct NicSpec {
    /// The resource id.
    pub(super) id: Id,
    /// The location.
    pub(super) location: String,
    /// The tags.
    pub(super) tags: Tags,
    /// The network security group.
    pub(super) group: Option<Reference>,
    /// Whether accelerated networking was requested.
    pub(super) accelerated: bool,
    /// Whether IP forwarding was requested.
    pub(super) forwarding: bool,
    /// The addresses.
    pub(super) addresses: Vec<NicAddress>,
}

impl Engine {
    /// Refuses an interface that is reserved for another virtual machine than `vm`.
    ///
    /// # Errors
    ///
    /// 400 `NicReservedForAnotherVm`.
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

    /// Reserves interfaces for a virtual machine whose creation failed.
    pub(super) fn reserve(&mut self, nics: &[Seq], vm: &Id) {
        let until = self
            .now()
            .saturating_add(self.core.knobs.timing.nic_reservation);
        for seq in nics {
            self.edit_nic(*seq, |nic| nic.reserved = Some((vm.clone(), until)));
        }
    }

    /// Refuses a subnet that does not exist, or is in another location, with 400
    /// `InvalidResourceReference`.
    pub(super) fn check_subnet(&self, id: &str, location: &str) -> Result<(), Refusal> {
        let (_, subnet_location) = self.subnet(id)?;
        if subnet_location == location {
            Ok(())
        } else {
            Err(Refusal::invalid_reference(id))
        }
    }

    /// Refuses a network security group that does not exist, with 400 `InvalidResourceReference`.
    pub(super) fn check_security_group(&self, group: Option<&Reference>) -> Result<(), Refusal> {
        match group {
            None => Ok(()),
            Some(group) => self.check_security_group_id(&group.id),
        }
    }

    /// Creates the record of an interface, and attaches its public addresses.
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

    /// Removes an interface and releases its private addresses. Its public addresses are deleted or
    /// detached, as their delete options say.
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

    /// Changes an interface, and keeps the old version for stale reads.
    pub(super) fn edit_nic(&mut self, seq: Seq, change: impl FnOnce(&mut Nic)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.nics.edit(seq, now, window, change);
    }

    /// Allocates a private address of a subnet.
    ///
    /// # Errors
    ///
    /// 400 `SubnetIsFull`, or 400 `InvalidResourceReference` for an unknown subnet.
    pub(super) fn allocate_private(&mut self, subnet: &str) -> Result<Ipv4Addr, Refusal> {
        let address = self.pool(subnet)?.take();
        address.ok_or_else(|| subnet_full(subnet))
    }

    /// Returns the free addresses of a subnet.
    pub(super) fn pool(&mut self, subnet: &str) -> Result<&mut AddressPool, Refusal> {
        let (cidr, _) = self.subnet(subnet)?;
        let pool = self.pools.entry(subnet.to_ascii_lowercase());
        Ok(pool.or_insert_with(|| AddressPool::subnet(cidr, RESERVED_ADDRESSES)))
    }

    /// Returns a name with a random suffix of eight hex digits.
    pub(super) fn unique_name(&mut self, name: &str) -> String {
        format!("{name}-{:08x}", self.names.number() >> 32)
    }
}

/// Returns 400 `NicInUse`, for an interface that is attached to a virtual machine.
pub(super) fn nic_in_use(nic: &Id, vm: &Id) -> Refusal {
    let message = format!(
        "Network Interface {} is used by existing resource {}. In order to delete the network interface, it must be \
         dissociated from the resource.",
        nic.path(),
        vm.path()
    );
    Refusal::client("NicInUse", message)
}

/// Returns 400 `SubnetIsFull`.
pub(super) fn subnet_full(subnet: &str) -> Refusal {
    let message = format!("Subnet {subnet} does not have enough capacity for 1 IP addresses.");
    Refusal::client("SubnetIsFull", message)
}
