//! Changes attributes of an instance: type, user data, protection.
//!
//! A change takes effect at once. Type, user data and EBS optimization need a stopped instance.

use std::sync::Arc;

use super::{
    Engine, Mode, Seq,
    launch::{Credits, MetadataOptions, ShutdownBehavior},
    record::State,
};
use crate::ec2::error::Refusal;

/// An attribute with its new value.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    /// The instance type; it must have the architecture of the image and be offered in the zone.
    InstanceType(String),
    /// The user data; `None` removes it.
    UserData(Option<Arc<[u8]>>),
    /// Whether TerminateInstances is refused.
    Protected(bool),
    /// What happens when the guest shuts down.
    Shutdown(ShutdownBehavior),
    /// Whether it is EBS optimized; only stored.
    EbsOptimized(bool),
    /// Whether StopInstances is refused.
    StopProtected(bool),
    /// Whether it receives only packets for its own addresses; only stored.
    SourceDestCheck(bool),
    /// The security groups of its network interface.
    Groups(Vec<String>),
    /// Devices, and whether each is deleted with the instance.
    DeleteOnTermination(Vec<(String, bool)>),
    /// How it spends CPU credits.
    Credits(Credits),
    /// Whether it has detailed monitoring; only stored.
    Monitoring(bool),
    /// The options of its metadata service.
    Metadata(MetadataOptions),
}

impl Attribute {
    /// Returns whether the change requires a stopped instance.
    const fn needs_stop(&self) -> bool {
        match self {
            Self::InstanceType(_) | Self::UserData(_) | Self::EbsOptimized(_) => true,
            Self::Protected(_)
            | Self::Shutdown(_)
            | Self::StopProtected(_)
            | Self::SourceDestCheck(_)
            | Self::Groups(_)
            | Self::DeleteOnTermination(_)
            | Self::Credits(_)
            | Self::Monitoring(_)
            | Self::Metadata(_) => false,
        }
    }
}

impl Engine {
    /// Changes an attribute.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceID.NotFound`, `IncorrectInstanceState` for an instance that must be stopped
    /// or is terminating, `InvalidInstanceAttributeValue` or `Unsupported` for an instance type
    /// that does not fit.
    pub(crate) fn modify(&mut self, id: &str, to: Attribute, mode: Mode) -> Result<(), Refusal> {
        let found = self.find(&[id.to_owned()])?;
        let Some(instance) = found.first().and_then(|seq| self.instances.get(seq)) else {
            return Ok(());
        };
        let (seq, state) = (instance.seq, instance.current().state);
        if state.is_ending() || (to.needs_stop() && state != State::Stopped) {
            let message = format!("The instance '{id}' is not in the 'stopped' state.");
            return Err(Refusal::wrong_state(message));
        }
        if let Attribute::InstanceType(name) = &to {
            self.check_new_type(&instance.fixed.architecture, &instance.fixed.zone, name)?;
        }
        if let Attribute::Groups(groups) = &to {
            let vpc = instance.fixed.vpc.clone();
            self.groups(groups, &vpc)?;
        }
        let volumes = if let Attribute::DeleteOnTermination(devices) = &to {
            self.named_volumes(id, devices)?
        } else {
            Vec::new()
        };
        mode.check_dry_run()?;
        for (volume, delete) in volumes {
            if let Some(volume) = self.volumes.get_mut(&volume) {
                volume.device.delete_on_termination = delete;
            }
        }
        self.change_nics(seq, &to);
        self.revise(seq, |version| match to {
            Attribute::InstanceType(name) => {
                let credits = version.credits;
                version.credits = Credits::of_type(&name).map(|default| credits.unwrap_or(default));
                version.instance_type = name;
            }
            Attribute::UserData(data) => version.user_data = data,
            Attribute::Protected(on) => version.protected = on,
            Attribute::Shutdown(behavior) => version.shutdown = behavior,
            Attribute::EbsOptimized(on) => version.ebs_optimized = on,
            Attribute::StopProtected(on) => version.stop_protected = on,
            Attribute::SourceDestCheck(on) => version.source_dest_check = on,
            Attribute::Groups(groups) => version.groups = Arc::new(groups),
            Attribute::DeleteOnTermination(_) => {}
            Attribute::Credits(credits) => version.credits = Some(credits),
            Attribute::Monitoring(on) => version.monitoring = on,
            Attribute::Metadata(options) => version.metadata = options,
        });
        Ok(())
    }

    /// Returns the volumes of an instance by their device names.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceAttributeValue` for a device that it does not have.
    fn named_volumes(
        &self,
        id: &str,
        devices: &[(String, bool)],
    ) -> Result<Vec<(Seq, bool)>, Refusal> {
        let volumes = self.volumes_of(id);
        let find = |(name, delete): &(String, bool)| {
            let found = volumes
                .iter()
                .find(|(_, volume)| volume.device.name == *name);
            let message = || format!("No device is currently mapped at {name}");
            found
                .map(|(seq, _)| (*seq, *delete))
                .ok_or_else(|| Refusal::client("InvalidInstanceAttributeValue", message()))
        };
        devices.iter().map(find).collect()
    }

    /// Applies a change that concerns the network interfaces of an instance to them.
    fn change_nics(&mut self, seq: Seq, to: &Attribute) {
        let nics = self
            .instances
            .get(&seq)
            .map(|instance| instance.nics.clone());
        for nic in nics.unwrap_or_default() {
            let Some(nic) = self.nics.get_mut(&nic) else {
                continue;
            };
            if let Attribute::Groups(groups) = to {
                nic.groups.clone_from(groups);
            }
            if let Attribute::SourceDestCheck(on) = to {
                nic.source_dest_check = *on;
            }
        }
    }

    /// Refuses an instance type that the instance cannot have.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceAttributeValue` for an unknown type or another architecture, `Unsupported`
    /// for a type that the zone does not offer.
    fn check_new_type(&self, architecture: &str, zone: &str, name: &str) -> Result<(), Refusal> {
        let spec = self.spec(name).map_err(|_unknown| {
            let message = format!("The instance type '{name}' is not valid");
            Refusal::client("InvalidInstanceAttributeValue", message)
        })?;
        if spec.architecture != architecture {
            let message = format!(
                "The architecture '{architecture}' of the image does not fit the instance type '{name}'"
            );
            return Err(Refusal::client("InvalidInstanceAttributeValue", message));
        }
        if !spec.is_in(zone) {
            let message =
                format!("The requested instance type ({name}) is not supported in the zone {zone}");
            return Err(Refusal::client("Unsupported", message));
        }
        Ok(())
    }
}
