//! Public addresses: created alone or with a virtual machine, allocated while it runs, deleted.

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
    pub(crate) id: Id,
    pub(crate) location: String,
    pub(crate) zones: Vec<String>,
    pub(crate) tags: Tags,
    pub(crate) guid: String,
    pub(crate) sku: String,
    /// Whether it keeps its address while nothing runs behind it.
    pub(crate) is_static: bool,
    pub(crate) idle_minutes: u32,
    pub(crate) address: Option<Ipv4Addr>,
    /// The interface configuration that it is attached to.
    pub(crate) attached: Option<String>,
    pub(crate) provisioning: Provisioning,
}

impl Engine {
    /// Creates or changes a separate public address, and returns the operation.
    pub(crate) fn put_ip(&mut self, id: &Id, body: &IpBody) -> Result<(u64, bool), Refusal> {
        self.check_group(&id.group)?;
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

    /// Refuses to make another kind of an address that is there.
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
    pub(crate) fn delete_ip(&mut self, id: &Id) -> Result<Option<u64>, Refusal> {
        self.check_group(&id.group)?;
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

    /// A public address is gone.
    pub(super) fn remove_ip(&mut self, seq: Seq) {
        if let Some(address) = self.ips.get(seq).and_then(|ip| ip.address) {
            self.core.public_ips.release(address);
        }
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.ips.remove(seq, now, window);
    }

    /// Gives the public addresses of a machine that runs what they lack, or takes from those of one
    /// that is gone what they keep only while it runs.
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

    pub(super) fn edit_ip(&mut self, seq: Seq, change: impl FnOnce(&mut PublicIp)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.ips.edit(seq, now, window, change);
    }
}

/// Whether a public address keeps its address.
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
