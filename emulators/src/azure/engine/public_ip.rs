//! Public addresses: created alone or with a virtual machine, allocated while it runs, deleted.
//!
//! A static address is allocated when the resource is created and kept until it is deleted. A
//! dynamic one is allocated when its virtual machine boots, and released when the machine is
//! deallocated.

use std::net::Ipv4Addr;

use super::{
    Engine,
    task::Work,
    vm::{Attached, Provisioning, check_not_deleting},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{IpBody, Tags, check_ip_version},
            id::{Id, Kind},
        },
    },
    cloud::index::Seq,
};

/// A public address.
#[derive(Clone, Debug)]
pub(crate) struct PublicIp {
    /// The resource id.
    pub(crate) id: Id,
    /// The location.
    pub(crate) location: String,
    /// The availability zones of the document.
    pub(crate) zones: Vec<String>,
    /// The tags.
    pub(crate) tags: Tags,
    /// The GUID, `resourceGuid` in documents and the etag.
    pub(crate) guid: String,
    /// `Basic` or `Standard`.
    pub(crate) sku: String,
    /// Whether it keeps its address while nothing runs behind it.
    pub(crate) is_static: bool,
    /// The idle timeout in minutes. Without effect.
    pub(crate) idle_minutes: u32,
    /// The address, if one is allocated.
    pub(crate) address: Option<Ipv4Addr>,
    /// The resource id of the interface's address that it is attached to.
    pub(crate) attached: Option<String>,
    /// The provisioning state.
    pub(crate) provisioning: Provisioning,
}

impl Engine {
    /// Creates a public address, or changes the tags of an existing one. Returns the operation, and
    /// whether it is new.
    ///
    /// # Errors
    ///
    /// 409 `PropertyChangeNotAllowed` for another SKU, 400 `NotSupported` for another allocation
    /// method or IPv6, 409 `Conflict` while it is being deleted.
    pub(crate) fn put_ip(&mut self, id: &Id, body: &IpBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let location = self.location(body.location.as_deref())?;
        self.check_tags(body.tags.as_ref())?;
        let (seq, new) = match self.ips.seq(id) {
            Some(seq) => {
                let tags = body.tags.clone().unwrap_or_default();
                self.check_unchanged(seq, body)?;
                self.edit_ip(seq, |ip| ip.tags = tags);
                (seq, false)
            }
            None => (self.create_ip(id, body)?, true),
        };
        Ok((
            self.begin_update(id, &location, Work::Put(Kind::PublicIp, seq)),
            new,
        ))
    }

    /// Refuses another SKU or allocation method of an existing public address.
    fn check_unchanged(&self, seq: Seq, body: &IpBody) -> Result<(), Refusal> {
        let Some(ip) = self.ips.get(seq) else {
            return Ok(());
        };
        check_not_deleting(ip.provisioning, &ip.id)?;
        let sku = body.sku.as_ref().and_then(|sku| sku.name.as_deref());
        if sku.is_some_and(|sku| sku != ip.sku) {
            return Err(Refusal::immutable("sku"));
        }
        let properties = body.properties.as_ref();
        let method = properties.and_then(|properties| properties.allocation.as_deref());
        if method.is_some_and(|method| (method == "Static") != ip.is_static) {
            return Err(Refusal::unsupported("publicIPAllocationMethod"));
        }
        Ok(())
    }

    /// Creates the record of a public address. A static one gets its address immediately.
    pub(super) fn create_ip(&mut self, id: &Id, body: &IpBody) -> Result<Seq, Refusal> {
        let properties = body.properties.clone().unwrap_or_default();
        let sku = body.sku.clone().and_then(|sku| sku.name);
        let is_static = is_static_allocation(properties.allocation.as_deref(), sku.as_deref())?;
        check_ip_version(properties.version.as_deref())?;
        let (seq, now) = (self.next_seq(), self.now());
        let address = if is_static {
            self.core.public_ips.take()
        } else {
            None
        };
        let ip = PublicIp {
            id: id.clone(),
            location: body.location.clone().unwrap_or_default(),
            zones: body.zones.clone().unwrap_or_default(),
            tags: body.tags.clone().unwrap_or_default(),
            guid: self.names.request(),
            sku: sku.unwrap_or_else(|| "Basic".to_owned()),
            is_static,
            idle_minutes: properties.idle_timeout_in_minutes.unwrap_or(4),
            address,
            attached: None,
            provisioning: Provisioning::Succeeded,
        };
        self.ips.insert(seq, id, now, ip);
        Ok(seq)
    }

    /// Begins to delete a public address; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// 400 `PublicIPAddressCannotBeDeleted` while it is attached, 404 `ResourceGroupNotFound`.
    pub(crate) fn delete_ip(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        let Some((seq, ip)) = self.ips.find(id) else {
            return Ok(None);
        };
        if let Some(user) = &ip.attached {
            let message = format!(
                "Public IP address {} can not be deleted since it is still allocated to resource {user}.",
                ip.id.path()
            );
            return Err(Refusal::client("PublicIPAddressCannotBeDeleted", message));
        }
        let location = ip.location.clone();
        self.edit_ip(seq, |ip| ip.provisioning = Provisioning::Deleting);
        Ok(Some(self.begin_update(
            id,
            &location,
            Work::Remove(Kind::PublicIp, seq),
        )))
    }

    /// Removes a public address and releases its address.
    pub(super) fn remove_ip(&mut self, seq: Seq) {
        if let Some(address) = self.ips.get(seq).and_then(|ip| ip.address) {
            self.core.public_ips.release(address);
        }
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.ips.remove(seq, now, window);
    }

    /// Allocates missing public addresses of a virtual machine that boots (`on`), or releases the
    /// dynamic ones of a machine that was deallocated or deleted.
    pub(super) fn update_public_addresses(&mut self, nics: &[Attached], on: bool) {
        let nics = nics.iter().filter_map(|nic| self.nics.find(&nic.id));
        let ids: Vec<Id> = nics
            .flat_map(|(_, nic)| nic.publics())
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            let Some((seq, ip)) = self.ips.find(&id) else {
                continue;
            };
            let (current, is_static) = (ip.address, ip.is_static);
            let address = match (on, current) {
                (true, None) => self.core.public_ips.take(),
                (false, Some(address)) if !is_static => {
                    self.core.public_ips.release(address);
                    None
                }
                (_, current) => current,
            };
            if address != current {
                self.edit_ip(seq, |ip| ip.address = address);
            }
        }
    }

    /// Changes a public address, and keeps the old version for stale reads.
    pub(super) fn edit_ip(&mut self, seq: Seq, change: impl FnOnce(&mut PublicIp)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.ips.edit(seq, now, window, change);
    }
}

/// Whether a public address is static. The default is static for the SKU `Standard`, otherwise
/// dynamic.
///
/// # Errors
///
/// 400 `PublicIPAndSkuAllocationMethodMismatch` for a dynamic address of the SKU `Standard`; 400
/// `InvalidParameter` for an unknown method.
pub(super) fn is_static_allocation(
    allocation: Option<&str>,
    sku: Option<&str>,
) -> Result<bool, Refusal> {
    match (allocation, sku) {
        (Some("Static"), _) | (None, Some("Standard")) => Ok(true),
        (Some("Dynamic"), Some("Standard")) => {
            let message = "Standard sku publicIp must have AllocationMethod set to Static.";
            Err(Refusal::client(
                "PublicIPAndSkuAllocationMethodMismatch",
                message,
            ))
        }
        (Some("Dynamic") | None, _) => Ok(false),
        (Some(other), _) => {
            let message = format!(
                "The value '{other}' of parameter 'publicIPAllocationMethod' is not allowed."
            );
            Err(Refusal::invalid("publicIPAllocationMethod", message))
        }
    }
}
