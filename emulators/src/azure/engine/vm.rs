//! A virtual machine: what it is, and the states it can be in.

use std::{sync::Arc, time::Duration};

use crate::{
    azure::{
        error::Refusal,
        knobs::Market,
        wire::{
            body::{DeleteOption, Tags},
            id::Id,
            vm_body::{Eviction, VmBody},
        },
    },
    cloud::{capacity, fault::Failure},
};

/// How far the latest operation on a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Provisioning {
    Creating,
    Updating,
    Succeeded,
    Failed,
    Deleting,
}

impl Provisioning {
    /// As properties have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Deleting => "Deleting",
        }
    }
}

/// Refuses to use what is being deleted.
pub(super) fn check_not_deleting(state: Provisioning, id: &Id) -> Result<(), Refusal> {
    match state {
        Provisioning::Deleting => {
            let message = format!("The resource '{}' is being deleted.", id.path());
            Err(Refusal::conflict(message))
        }
        Provisioning::Creating
        | Provisioning::Updating
        | Provisioning::Succeeded
        | Provisioning::Failed => Ok(()),
    }
}

/// Whether a machine runs, and whether it is there at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Power {
    Starting,
    Running,
    Stopping,
    /// Off, but still allocated and billed.
    Stopped,
    Deallocating,
    Deallocated,
}

impl Power {
    /// As the codes of an instance view have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Deallocating => "deallocating",
            Self::Deallocated => "deallocated",
        }
    }
}

/// Something of a virtual machine's, and what becomes of it in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) id: Id,
    pub(crate) delete: DeleteOption,
    /// The number of a further disk.
    pub(crate) lun: Option<u32>,
}

/// A virtual machine.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the facts are independent of each other"
)]
pub(crate) struct Vm {
    pub(crate) id: Id,
    /// New for each creation, whatever the name.
    pub(crate) vm_id: String,
    pub(crate) location: String,
    pub(crate) zone: Option<String>,
    /// What its creation asked for.
    pub(crate) body: Arc<VmBody>,
    pub(crate) image: Arc<ImageUsed>,
    pub(crate) tags: Arc<Tags>,
    pub(crate) size: String,
    pub(crate) market: Market,
    pub(crate) eviction: Eviction,
    pub(crate) custom_data: Option<Arc<[u8]>>,
    pub(crate) user_data: Option<String>,
    pub(crate) diagnostics: bool,
    /// The system's disk first.
    pub(crate) disks: Vec<Attached>,
    /// Disks that a change takes from it.
    pub(crate) detaching_disks: Vec<Id>,
    /// The primary interface first.
    pub(crate) nics: Vec<Attached>,
    pub(crate) provisioning: Provisioning,
    /// Nothing before it first boots.
    pub(crate) power: Option<Power>,
    /// The power before it began to change, which a failure brings back.
    pub(crate) previous_power: Option<Power>,
    /// Why its latest operation failed.
    pub(crate) failure: Option<Failure>,
    pub(crate) created: Duration,
    pub(crate) changed: Duration,
    pub(crate) version: u64,
    pub(crate) generalized: bool,
    /// Whether it holds a machine, which costs.
    pub(crate) allocated: bool,
    pub(crate) boots: u64,
    pub(crate) console: Arc<Vec<String>>,
    /// The operation that goes on.
    pub(crate) task: Option<u64>,
    /// Created by an external actor.
    pub(crate) external: bool,
}

/// The image that a virtual machine was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageUsed {
    pub(crate) os_type: String,
    pub(crate) gib: u32,
    pub(crate) architecture: String,
    /// The version that `latest` stood for.
    pub(crate) exact_version: Option<String>,
    /// Whether it needs no user, because it is a copy of a machine as it was.
    pub(crate) specialized: bool,
}

impl Vm {
    /// What it takes a machine of.
    pub(crate) fn kind(&self) -> capacity::Kind {
        (
            self.size.clone(),
            self.zone.clone().unwrap_or_default(),
            self.market,
        )
    }

    /// Whether its creation failed, so that it has never run.
    pub(crate) fn creation_failed(&self) -> bool {
        self.failure.is_some() && self.power.is_none()
    }

    /// Is on its way to another power, from where it was settled.
    pub(crate) fn begin_power_change(&mut self, power: Power) {
        if !matches!(
            self.power,
            Some(Power::Starting | Power::Stopping | Power::Deallocating)
        ) {
            self.previous_power = self.power;
        }
        self.power = Some(power);
        self.provisioning = Provisioning::Updating;
    }

    /// The system's disk.
    pub(crate) fn os_disk(&self) -> Option<&Attached> {
        self.disks.iter().find(|disk| disk.lun.is_none())
    }
}
