//! What is attached to instances: volumes and network interfaces, and what becomes of them.

use std::{net::Ipv4Addr, time::Duration};

use super::{
    Engine, Seq,
    launch::{DeviceOrder, Order},
    record::{Fixed, Tags},
};

/// A volume to make.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) gib: u32,
    pub(crate) kind: String,
    pub(crate) snapshot: Option<String>,
    pub(crate) iops: Option<u32>,
    pub(crate) encrypted: bool,
    pub(crate) goes_with_instance: bool,
}

impl Device {
    /// A further volume: it outlives its instance unless asked otherwise.
    pub(super) fn new(name: &str, gib: u32) -> Self {
        Self {
            name: name.to_owned(),
            gib,
            kind: "gp3".to_owned(),
            snapshot: None,
            iops: None,
            encrypted: false,
            goes_with_instance: false,
        }
    }

    /// Takes over what a mapping says.
    pub(super) fn change(&mut self, order: &DeviceOrder) {
        self.gib = order.gib.unwrap_or(self.gib);
        if let Some(kind) = &order.kind {
            self.kind.clone_from(kind);
        }
        self.iops = order.iops.or(self.iops);
        self.encrypted |= order.encrypted;
        self.goes_with_instance = order.goes_with_instance.unwrap_or(self.goes_with_instance);
        if order.snapshot.is_some() {
            self.snapshot.clone_from(&order.snapshot);
        }
    }
}

/// An EBS volume.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) zone: String,
    pub(crate) device: Device,
    pub(crate) created: Duration,
    pub(crate) tags: Tags,
    pub(crate) attached_to: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) id: String,
    pub(crate) attachment: String,
    pub(crate) mac: String,
    pub(crate) subnet: String,
    pub(crate) zone: String,
    pub(crate) groups: Vec<String>,
    pub(crate) description: String,
    pub(crate) private_ip: Ipv4Addr,
    pub(crate) created: Duration,
    pub(crate) tags: Tags,
    pub(crate) goes_with_instance: bool,
    pub(crate) attached_to: Option<String>,
}

impl Engine {
    pub(super) fn attach_volumes(
        &mut self,
        instance: &str,
        zone: &str,
        devices: &[Device],
        tags: &Tags,
    ) -> Vec<Seq> {
        let make = |device: &Device| self.add_volume(zone, device.clone(), tags, Some(instance));
        devices.iter().map(make).collect()
    }

    pub(super) fn add_volume(
        &mut self,
        zone: &str,
        device: Device,
        tags: &Tags,
        instance: Option<&str>,
    ) -> Seq {
        let (seq, id) = (self.next_seq(), self.ids.next("vol"));
        self.volume_ids.insert(id.clone(), seq);
        let volume = Volume {
            id,
            zone: zone.to_owned(),
            device,
            created: self.now(),
            tags: tags.clone(),
            attached_to: instance.map(str::to_owned),
        };
        self.volumes.insert(seq, volume);
        seq
    }

    pub(super) fn attach_nic(&mut self, instance: &Fixed, order: &Order) -> Seq {
        let (seq, id) = (self.next_seq(), self.ids.next("eni"));
        self.nic_ids.insert(id.clone(), seq);
        let nic = Nic {
            id,
            attachment: self.ids.next("eni-attach"),
            mac: self.ids.mac(),
            subnet: instance.subnet.clone(),
            zone: instance.zone.clone(),
            groups: instance.groups.clone(),
            description: order.nic_description.clone(),
            private_ip: instance.private_ip,
            created: self.now(),
            tags: order.nic_tags.clone(),
            goes_with_instance: !order.nic_stays,
            attached_to: Some(instance.id.clone()),
        };
        self.nics.insert(seq, nic);
        seq
    }

    /// An instance is terminated: what goes with it goes, the rest is left behind, unattached.
    pub(super) fn cascade(&mut self, seq: Seq) {
        let Some(instance) = self.instances.get_mut(&seq) else {
            return;
        };
        let (volumes, nics) = (
            std::mem::take(&mut instance.volumes),
            std::mem::take(&mut instance.nics),
        );
        let fixed = std::sync::Arc::clone(&instance.fixed);
        for volume in volumes {
            self.release_volume(volume);
        }
        for nic in nics {
            if self.release_nic(nic) {
                self.give_back_private(&fixed);
            }
        }
    }

    fn release_volume(&mut self, seq: Seq) {
        let Some(volume) = self.volumes.get_mut(&seq) else {
            return;
        };
        if volume.device.goes_with_instance {
            let id = volume.id.clone();
            self.volume_ids.remove(&id);
            self.volumes.remove(&seq);
        } else {
            volume.attached_to = None;
        }
    }

    /// Whether its address is free again.
    fn release_nic(&mut self, seq: Seq) -> bool {
        let Some(nic) = self.nics.get_mut(&seq) else {
            return false;
        };
        if !nic.goes_with_instance {
            nic.attached_to = None;
            return false;
        }
        let id = nic.id.clone();
        self.nic_ids.remove(&id);
        self.nics.remove(&seq);
        true
    }

    fn give_back_private(&mut self, fixed: &Fixed) {
        let subnets = &self.core.knobs.subnets;
        if let Some(subnet) = subnets
            .iter()
            .find(|subnet| subnet.id == fixed.subnet)
            .cloned()
        {
            self.pool(&subnet).release(fixed.private_ip);
        }
    }

    /// The volumes of an instance.
    pub(crate) fn volumes_of(&self, instance: &str) -> Vec<(Seq, &Volume)> {
        let attached = self
            .instance(instance)
            .map(|found| found.volumes.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.volumes.get(seq)?)))
            .collect()
    }

    /// The network interfaces of an instance.
    pub(crate) fn nics_of(&self, instance: &str) -> Vec<(Seq, &Nic)> {
        let attached = self.instance(instance).map(|found| found.nics.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.nics.get(seq)?)))
            .collect()
    }
}
