//! Volumes and network interfaces: how they are attached, and what happens to them on termination.

use std::{net::Ipv4Addr, time::Duration};

use super::{
    Engine, Seq,
    launch::{DeviceRequest, LaunchRequest},
    record::{Fixed, Tags},
};

/// The properties of a new volume.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) gib: u32,
    pub(crate) kind: String,
    pub(crate) snapshot: Option<String>,
    pub(crate) iops: Option<u32>,
    pub(crate) encrypted: bool,
    pub(crate) delete_on_termination: bool,
}

impl Device {
    /// A further volume. By default it outlives its instance.
    pub(super) fn new(name: &str, gib: u32) -> Self {
        Self {
            name: name.to_owned(),
            gib,
            kind: "gp3".to_owned(),
            snapshot: None,
            iops: None,
            encrypted: false,
            delete_on_termination: false,
        }
    }

    /// Applies a block device mapping.
    pub(super) fn change(&mut self, request: &DeviceRequest) {
        self.gib = request.gib.unwrap_or(self.gib);
        if let Some(kind) = &request.kind {
            self.kind.clone_from(kind);
        }
        self.iops = request.iops.or(self.iops);
        self.encrypted |= request.encrypted;
        self.delete_on_termination = request
            .delete_on_termination
            .unwrap_or(self.delete_on_termination);
        if request.snapshot.is_some() {
            self.snapshot.clone_from(&request.snapshot);
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
    pub(crate) delete_on_termination: bool,
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
        let create = |device: &Device| self.add_volume(zone, device.clone(), tags, Some(instance));
        devices.iter().map(create).collect()
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

    pub(super) fn attach_nic(&mut self, instance: &Fixed, request: &LaunchRequest) -> Seq {
        let (seq, id) = (self.next_seq(), self.ids.next("eni"));
        self.nic_ids.insert(id.clone(), seq);
        let nic = Nic {
            id,
            attachment: self.ids.next("eni-attach"),
            mac: self.ids.mac(),
            subnet: instance.subnet.clone(),
            zone: instance.zone.clone(),
            groups: instance.groups.clone(),
            description: request.nic_description.clone(),
            private_ip: instance.private_ip,
            created: self.now(),
            tags: request.nic_tags.clone(),
            delete_on_termination: !request.keep_nic,
            attached_to: Some(instance.id.clone()),
        };
        self.nics.insert(seq, nic);
        seq
    }

    /// Deletes the volumes and interfaces of a terminated instance, or detaches those that outlive
    /// it.
    pub(super) fn release_attachments(&mut self, seq: Seq) {
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
                self.release_private_ip(&fixed);
            }
        }
    }

    fn release_volume(&mut self, seq: Seq) {
        let Some(volume) = self.volumes.get_mut(&seq) else {
            return;
        };
        if volume.device.delete_on_termination {
            let id = volume.id.clone();
            self.volume_ids.remove(&id);
            self.volumes.remove(&seq);
        } else {
            volume.attached_to = None;
        }
    }

    /// Returns whether its address became free.
    fn release_nic(&mut self, seq: Seq) -> bool {
        let Some(nic) = self.nics.get_mut(&seq) else {
            return false;
        };
        if !nic.delete_on_termination {
            nic.attached_to = None;
            return false;
        }
        let id = nic.id.clone();
        self.nic_ids.remove(&id);
        self.nics.remove(&seq);
        true
    }

    fn release_private_ip(&mut self, fixed: &Fixed) {
        let subnets = &self.core.knobs.subnets;
        if let Some(subnet) = subnets
            .iter()
            .find(|subnet| subnet.id == fixed.subnet)
            .cloned()
        {
            self.pool(&subnet).release(fixed.private_ip);
        }
    }

    /// Returns the volumes of an instance.
    pub(crate) fn volumes_of(&self, instance: &str) -> Vec<(Seq, &Volume)> {
        let attached = self
            .instance(instance)
            .map(|found| found.volumes.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.volumes.get(seq)?)))
            .collect()
    }

    /// Returns the network interfaces of an instance.
    pub(crate) fn nics_of(&self, instance: &str) -> Vec<(Seq, &Nic)> {
        let attached = self.instance(instance).map(|found| found.nics.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.nics.get(seq)?)))
            .collect()
    }
}
