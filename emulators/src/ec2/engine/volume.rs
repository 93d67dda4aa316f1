//! What clients do with volumes: create, attach, detach, change, delete.
//!
//! Every change is complete at once.

use super::{
    Engine, Mode, Seq, record::State, record::Tags, storage::Device, storage::Volume,
    tags::volume_not_found,
};
use crate::ec2::error::Refusal;
use uuid::Uuid;

/// A change of a volume. Fields that are not set stay unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeChange {
    /// The size in GiB.
    pub(crate) gib: Option<u32>,
    /// The volume type.
    pub(crate) kind: Option<String>,
    /// The provisioned IOPS.
    pub(crate) iops: Option<u32>,
    /// The provisioned throughput.
    pub(crate) throughput: Option<u32>,
}

impl Engine {
    /// Creates a volume in a zone, or returns the one that its client token created before.
    ///
    /// # Errors
    ///
    /// `InvalidZone.NotFound`, `IdempotentParameterMismatch` for a token of other parameters, or `InvalidVolume.NotFound` for
    /// one whose volume was deleted.
    pub(crate) fn create_volume(
        &mut self,
        zone: &str,
        device: Device,
        tags: &Tags,
        token: Option<(String, Uuid)>,
        mode: Mode,
    ) -> Result<Volume, Refusal> {
        if let Some((token, digest)) = &token {
            if let Some((known, id)) = self.volume_tokens.get(token) {
                if known != digest {
                    let message = "The client token was used before with other parameters.";
                    return Err(Refusal::client("IdempotentParameterMismatch", message));
                }
                let (_, volume) = self.find_volume(id)?;
                return mode.check_dry_run().map(|()| volume.clone());
            }
        }
        if !self.core.knobs.zones.iter().any(|known| known == zone) {
            let message = format!("The zone '{zone}' does not exist.");
            return Err(Refusal::client("InvalidZone.NotFound", message));
        }
        mode.check_dry_run()?;
        let seq = self.add_volume(zone, device, tags, None);
        if let (Some((token, digest)), Some(volume)) = (token, self.volumes.get(&seq)) {
            let known = (digest, volume.id.clone());
            self.volume_tokens.insert(token, known);
        }
        self.volumes
            .get(&seq)
            .cloned()
            .ok_or_else(Refusal::internal)
    }

    /// Deletes a volume.
    ///
    /// # Errors
    ///
    /// `InvalidVolume.NotFound`, or `VolumeInUse` while it is attached.
    pub(crate) fn delete_volume(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        let (seq, volume) = self.find_volume(id)?;
        if let Some(instance) = &volume.attached_to {
            let message = format!("Volume {id} is currently attached to {instance}");
            return Err(Refusal::client("VolumeInUse", message));
        }
        mode.check_dry_run()?;
        self.volumes.remove(&seq);
        self.volume_ids.remove(id);
        Ok(())
    }

    /// Attaches a volume to an instance.
    ///
    /// # Errors
    ///
    /// `InvalidVolume.NotFound`, `InvalidInstanceID.NotFound`, `VolumeInUse`, `InvalidVolume.ZoneMismatch`, `IncorrectState` for an
    /// instance that neither runs nor is stopped, or `InvalidParameterValue` for a device name that is in use.
    pub(crate) fn attach_volume(
        &mut self,
        id: &str,
        instance: &str,
        device: &str,
        mode: Mode,
    ) -> Result<Volume, Refusal> {
        let (seq, volume) = self.find_volume(id)?;
        let (zone, owner) = (volume.zone.clone(), volume.attached_to.clone());
        let found = self.find(&[instance.to_owned()])?;
        let Some(record) = found.first().and_then(|seq| self.instances.get(seq)) else {
            return Err(Refusal::internal());
        };
        let target = record.seq;
        if let Some(owner) = owner {
            let message = format!("{id} is already attached to an instance: {owner}");
            return Err(Refusal::client("VolumeInUse", message));
        }
        if record.fixed.zone != zone {
            let message = format!(
                "The volume '{id}' is not in the same availability zone as instance '{instance}'"
            );
            return Err(Refusal::client("InvalidVolume.ZoneMismatch", message));
        }
        if !matches!(record.current().state, State::Running | State::Stopped) {
            let message = format!("Instance '{instance}' is not 'running'.");
            return Err(Refusal::client("IncorrectState", message));
        }
        let mut attached = record
            .volumes
            .iter()
            .filter_map(|seq| self.volumes.get(seq));
        if attached.any(|other| other.device.name == device) {
            let message = format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            );
            return Err(Refusal::invalid(message));
        }
        mode.check_dry_run()?;
        let now = self.now();
        if let Some(record) = self.instances.get_mut(&target) {
            record.volumes.push(seq);
        }
        let volume = self.volumes.get_mut(&seq).ok_or_else(Refusal::internal)?;
        device.clone_into(&mut volume.device.name);
        volume.device.delete_on_termination = false;
        volume.attached_to = Some(instance.to_owned());
        volume.attached = now;
        Ok(volume.clone())
    }

    /// Detaches a volume and returns it as it was.
    ///
    /// # Errors
    ///
    /// `InvalidVolume.NotFound`, `IncorrectState` for one that is not attached, `InvalidAttachment.NotFound` for another instance
    /// or device than the volume's, or `OperationNotPermitted` for the root volume of an instance that is not stopped.
    pub(crate) fn detach_volume(
        &mut self,
        id: &str,
        instance: Option<&str>,
        device: Option<&str>,
        mode: Mode,
    ) -> Result<Volume, Refusal> {
        let (seq, volume) = self.find_volume(id)?;
        let volume = volume.clone();
        let Some(owner) = &volume.attached_to else {
            let message = format!("Volume '{id}' is in the 'available' state.");
            return Err(Refusal::client("IncorrectState", message));
        };
        let other = instance.is_some_and(|instance| instance != owner)
            || device.is_some_and(|device| device != volume.device.name);
        if other {
            let message =
                format!("The volume '{id}' is not attached there; it is attached to '{owner}'");
            return Err(Refusal::client("InvalidAttachment.NotFound", message));
        }
        let record = self.instance(owner);
        let is_root = record.is_some_and(|record| {
            record.fixed.root_device == volume.device.name
                && record.current().state != State::Stopped
        });
        if is_root {
            let message = format!("Unable to detach root volume '{id}' from instance '{owner}'");
            return Err(Refusal::client("OperationNotPermitted", message));
        }
        mode.check_dry_run()?;
        let target = self.by_id.get(owner).copied();
        if let Some(record) = target.and_then(|target| self.instances.get_mut(&target)) {
            record.volumes.retain(|other| *other != seq);
        }
        if let Some(stored) = self.volumes.get_mut(&seq) {
            stored.attached_to = None;
            stored.device.name.clear();
        }
        Ok(volume)
    }

    /// Changes the size and the type of a volume and returns it.
    ///
    /// # Errors
    ///
    /// `InvalidVolume.NotFound`, or `InvalidParameterValue` for a smaller size.
    pub(crate) fn modify_volume(
        &mut self,
        id: &str,
        change: &VolumeChange,
        mode: Mode,
    ) -> Result<Volume, Refusal> {
        let (seq, volume) = self.find_volume(id)?;
        if change.gib.is_some_and(|gib| gib < volume.device.gib) {
            let message = format!(
                "New size cannot be smaller than existing size: {} GiB",
                volume.device.gib
            );
            return Err(Refusal::invalid(message));
        }
        mode.check_dry_run()?;
        let now = self.now();
        let volume = self.volumes.get_mut(&seq).ok_or_else(Refusal::internal)?;
        volume.modified = Some((now, Box::new(volume.device.clone())));
        let device = &mut volume.device;
        device.gib = change.gib.unwrap_or(device.gib);
        if let Some(kind) = &change.kind {
            device.kind.clone_from(kind);
        }
        device.iops = change.iops.or(device.iops);
        device.throughput = change.throughput.or(device.throughput);
        Ok(volume.clone())
    }

    /// Returns a volume with its number.
    ///
    /// # Errors
    ///
    /// `InvalidVolumeID.Malformed` or `InvalidVolume.NotFound`.
    fn find_volume(&self, id: &str) -> Result<(Seq, &Volume), Refusal> {
        super::read::check_ids(&[id.to_owned()], "vol", "InvalidVolumeID.Malformed")?;
        let seq = self.volume_ids.get(id).copied();
        let found = seq.and_then(|seq| Some((seq, self.volumes.get(&seq)?)));
        found.ok_or_else(|| volume_not_found(id))
    }
}
