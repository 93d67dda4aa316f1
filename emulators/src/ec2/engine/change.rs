//! Changes attributes of an instance: type, user data, protection.
//!
//! A change takes effect at once. Type, user data and EBS optimization need a stopped instance.

use std::sync::Arc;

use super::{Engine, Mode, launch::ShutdownBehavior, record::State};
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
}

impl Attribute {
    /// Returns whether the change requires a stopped instance.
    const fn needs_stop(&self) -> bool {
        match self {
            Self::InstanceType(_) | Self::UserData(_) | Self::EbsOptimized(_) => true,
            Self::Protected(_) | Self::Shutdown(_) => false,
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
        mode.check_dry_run()?;
        self.revise(seq, |version| match to {
            Attribute::InstanceType(name) => version.instance_type = name,
            Attribute::UserData(data) => version.user_data = data,
            Attribute::Protected(on) => version.protected = on,
            Attribute::Shutdown(behavior) => version.shutdown = behavior,
            Attribute::EbsOptimized(on) => version.ebs_optimized = on,
        });
        Ok(())
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
