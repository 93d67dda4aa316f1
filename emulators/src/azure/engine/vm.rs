//! A virtual machine: its properties, and the states that it can be in.
//!
//! Owns the record and the names of its states. Transitions are in `power` and `completion`.
//!
//! ```text
//! provisioning: Creating ─► Succeeded ─► Updating ─► Succeeded    any operation can end in Failed
//!                                    └─► Deleting ─► (removed)
//! power:        (none) ─► running ─► stopping ─► stopped ─► starting ─► running
//!                               └─► deallocating ─► deallocated ─► starting ─► running
//! ```

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

/// The provisioning state: how far the latest operation on a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Provisioning {
    /// The resource is being created.
    Creating,
    /// The resource is being changed, which includes every change of power.
    Updating,
    /// The latest operation succeeded.
    Succeeded,
    /// The latest operation failed. The resource stays, and its name stays taken.
    Failed,
    /// The resource is being deleted. It can still be read.
    Deleting,
}

impl Provisioning {
    /// Returns the state as `provisioningState` contains it.
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

/// Refuses to use a resource that is being deleted, with 409 `Conflict`.
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

/// The power state of a virtual machine. It has none before its first boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Power {
    /// Boots. The machine is allocated, unless the start fails for capacity.
    Starting,
    /// Runs.
    Running,
    /// Shuts down and keeps the machine.
    Stopping,
    /// Off, but still allocated and billed.
    Stopped,
    /// Shuts down, and releases the machine at the end.
    Deallocating,
    /// Off, without a machine and without a dynamic public address.
    Deallocated,
}

impl Power {
    /// Returns the state as the codes of an instance view contain it, without `PowerState/`.
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

/// A disk or an interface of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// The id of the disk or interface.
    pub(crate) id: Id,
    /// What happens to it when the virtual machine is deleted.
    pub(crate) delete: DeleteOption,
    /// The logical unit number of a data disk; `None` for the OS disk and for interfaces.
    pub(crate) lun: Option<u32>,
}

/// A virtual machine.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the facts are independent of each other"
)]
pub(crate) struct Vm {
    /// The resource id, in the case of its creation.
    pub(crate) id: Id,
    /// The GUID, new for each creation, even under the same name.
    pub(crate) vm_id: String,
    /// The normalized location, for example `eastus`.
    pub(crate) location: String,
    /// The availability zone.
    pub(crate) zone: Option<String>,
    /// The document of the creation, without the administrator's password.
    pub(crate) body: Arc<VmBody>,
    /// What the engine needs to know about the image.
    pub(crate) image: Arc<ImageUsed>,
    /// The tags.
    pub(crate) tags: Arc<Tags>,
    /// The name of the size, as the catalog spells it.
    pub(crate) size: String,
    /// Regular or spot.
    pub(crate) market: Market,
    /// What an eviction does. Only spot machines are evicted.
    pub(crate) eviction: Eviction,
    /// The decoded custom data.
    pub(crate) custom_data: Option<Arc<[u8]>>,
    /// The user data in Base64.
    pub(crate) user_data: Option<String>,
    /// Whether the serial console can be retrieved.
    pub(crate) diagnostics: bool,
    /// The attached disks, the OS disk first.
    pub(crate) disks: Vec<Attached>,
    /// Disks that the update in progress detaches. They are free when it ends.
    pub(crate) detaching_disks: Vec<Id>,
    /// The attached interfaces, the primary one first.
    pub(crate) nics: Vec<Attached>,
    /// The provisioning state.
    pub(crate) provisioning: Provisioning,
    /// The power state; `None` before the first boot.
    pub(crate) power: Option<Power>,
    /// The power state before the change in progress. A failed change restores it.
    pub(crate) previous_power: Option<Power>,
    /// Why the latest operation failed.
    pub(crate) failure: Option<Failure>,
    /// When it was created.
    pub(crate) created: Duration,
    /// When it last changed.
    pub(crate) changed: Duration,
    /// The version number, which is the etag. Every change increments it.
    pub(crate) version: u64,
    /// Whether it is generalized. It can never start again then.
    pub(crate) generalized: bool,
    /// Whether it has a machine, which is what capacity counts.
    pub(crate) allocated: bool,
    /// How often it has booted.
    pub(crate) boots: u64,
    /// The lines of the serial console.
    pub(crate) console: Arc<Vec<String>>,
    /// The operation in progress.
    pub(crate) task: Option<u64>,
    /// Whether an external actor created it.
    pub(crate) external: bool,
}

/// What the engine needs to know about the image of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageUsed {
    /// `Linux` or `Windows`.
    pub(crate) os_type: String,
    /// The size of the image in GiB, which is the minimum size of the OS disk.
    pub(crate) gib: u32,
    /// `x64` or `Arm64`. The size must have the same.
    pub(crate) architecture: String,
    /// The version that `latest` stood for, of a marketplace image.
    pub(crate) exact_version: Option<String>,
    /// Whether the image is a copy of a machine with its users, so that it needs no `osProfile`.
    pub(crate) specialized: bool,
}

impl Vm {
    /// Returns size, zone and market, which capacity and quota count by.
    pub(crate) fn kind(&self) -> capacity::Kind {
        (
            self.size.clone(),
            self.zone.clone().unwrap_or_default(),
            self.market,
        )
    }

    /// Whether the creation failed, so that the virtual machine has never run.
    pub(crate) fn creation_failed(&self) -> bool {
        self.failure.is_some() && self.power.is_none()
    }

    /// Whether the OS disk is ephemeral. Such a machine cannot be deallocated or captured.
    pub(crate) fn is_ephemeral(&self) -> bool {
        let storage = self.body.properties.storage_profile.as_ref();
        let disk = storage.and_then(|storage| storage.os_disk.as_ref());
        disk.is_some_and(|disk| disk.diff_disk_settings.is_some())
    }

    /// Sets a transitional power state, and remembers the last stable one for a failure.
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

    /// Returns the OS disk.
    pub(crate) fn os_disk(&self) -> Option<&Attached> {
        self.disks.iter().find(|disk| disk.lun.is_none())
    }
}
