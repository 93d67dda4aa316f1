//! Volumes and network interfaces: how they are attached, and what happens to them on termination.
//!
//! Both are created with an instance. On its termination each is deleted, or detached and kept, as
//! its `delete_on_termination` says; a kept interface keeps its private address.

use std::{net::Ipv4Addr, time::Duration};

use super::{
    Engine, Seq,
    launch::{DeviceRequest, LaunchRequest},
    record::{Fixed, Tags},
};

/// The properties of a volume.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// The device name, for example `/dev/xvda`; empty for a volume that was never attached.
    pub(crate) name: String,
    /// The size in GiB.
    pub(crate) gib: u32,
    /// The volume type, for example `gp3`.
    pub(crate) kind: String,
    /// The snapshot that it was created from; only stored.
    pub(crate) snapshot: Option<String>,
    /// The provisioned IOPS; only stored.
    pub(crate) iops: Option<u32>,
    /// The provisioned throughput in MiB per second; only stored.
    pub(crate) throughput: Option<u32>,
    /// Whether it is encrypted; only stored.
    pub(crate) encrypted: bool,
    /// Whether it is deleted with its instance.
    pub(crate) delete_on_termination: bool,
}

impl Device {
    /// Creates a further volume: `gp3`, and by default it outlives its instance.
    pub(super) fn new(name: &str, gib: u32) -> Self {
        Self {
            name: name.to_owned(),
            gib,
            kind: "gp3".to_owned(),
            snapshot: None,
            iops: None,
            throughput: None,
            encrypted: false,
            delete_on_termination: false,
        }
    }

    /// Applies a block device mapping; fields that it does not set stay unchanged.
    pub(super) fn change(&mut self, request: &DeviceRequest) {
        self.gib = request.gib.unwrap_or(self.gib);
        if let Some(kind) = &request.kind {
            self.kind.clone_from(kind);
        }
        self.iops = request.iops.or(self.iops);
        self.throughput = request.throughput.or(self.throughput);
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
    /// The id, which begins with `vol-`.
    pub(crate) id: String,
    /// The zone.
    pub(crate) zone: String,
    /// Its properties.
    pub(crate) device: Device,
    /// When it was created.
    pub(crate) created: Duration,
    /// When it was last attached.
    pub(crate) attached: Duration,
    /// The last change of its size or type, and when it was.
    pub(crate) modified: Option<(Duration, Box<Device>)>,
    /// The tags.
    pub(crate) tags: Tags,
    /// The instance that it is attached to.
    pub(crate) attached_to: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    /// The id, which begins with `eni-`.
    pub(crate) id: String,
    /// The id of the attachment.
    pub(crate) attachment: String,
    /// The hardware address, which never repeats.
    pub(crate) mac: String,
    /// The subnet.
    pub(crate) subnet: String,
    /// The VPC of the subnet.
    pub(crate) vpc: String,
    /// The zone of the subnet.
    pub(crate) zone: String,
    /// The security groups.
    pub(crate) groups: Vec<String>,
    /// Whether it receives only packets for its own addresses; only stored.
    pub(crate) source_dest_check: bool,
    /// The description; empty if there is none.
    pub(crate) description: String,
    /// The private address.
    pub(crate) private_ip: Ipv4Addr,
    /// When it was created and attached.
    pub(crate) created: Duration,
    /// The tags.
    pub(crate) tags: Tags,
    /// Whether it is deleted with its instance. Default true.
    pub(crate) delete_on_termination: bool,
    /// The instance that it is attached to.
    pub(crate) attached_to: Option<String>,
}

impl Engine {
    /// Creates and attaches the volumes of a new instance.
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

    /// Creates a volume, attached to an instance or not.
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
            attached: self.now(),
            modified: None,
            tags: tags.clone(),
            attached_to: instance.map(str::to_owned),
        };
        self.volumes.insert(seq, volume);
        seq
    }

    /// Creates and attaches the network interface of a new instance, with the instance's address.
    pub(super) fn attach_nic(
        &mut self,
        instance: &Fixed,
        groups: &[String],
        request: &LaunchRequest,
    ) -> Seq {
        let (seq, id) = (self.next_seq(), self.ids.next("eni"));
        self.nic_ids.insert(id.clone(), seq);
        let nic = Nic {
            id,
            attachment: self.ids.next("eni-attach"),
            mac: self.ids.mac(),
            subnet: instance.subnet.clone(),
            vpc: instance.vpc.clone(),
            zone: instance.zone.clone(),
            groups: groups.to_vec(),
            source_dest_check: true,
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

    /// Deletes or detaches a volume.
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

    /// Deletes or detaches a network interface. Returns whether its address became free.
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

    /// Frees the private address of an instance, if the knobs still have its subnet.
    fn release_private_ip(&mut self, fixed: &Fixed) {
        if let Some(subnet) = self.network.subnets.get(&fixed.subnet).cloned() {
            self.pool(&subnet).release(fixed.private_ip);
        }
    }

    /// Returns the volumes that are attached to an instance, the root volume first.
    pub(crate) fn volumes_of(&self, instance: &str) -> Vec<(Seq, &Volume)> {
        let attached = self
            .instance(instance)
            .map(|found| found.volumes.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.volumes.get(seq)?)))
            .collect()
    }

    /// Returns the network interfaces that are attached to an instance.
    pub(crate) fn nics_of(&self, instance: &str) -> Vec<(Seq, &Nic)> {
        let attached = self.instance(instance).map(|found| found.nics.as_slice());
        let attached = attached.unwrap_or_default().iter();
        attached
            .filter_map(|seq| Some((*seq, self.nics.get(seq)?)))
            .collect()
    }
}
