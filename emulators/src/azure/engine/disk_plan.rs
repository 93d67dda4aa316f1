//! The disks of a virtual machine, looked up and checked before any is created.

use std::collections::BTreeSet;

use super::{
    Engine, body_checks,
    vm::{ImageUsed, check_not_deleting},
};
use crate::{
    azure::{
        catalog::{SizeSpec, same},
        error::Refusal,
        wire::{
            body::{DeleteOption, DiskBody},
            id::{Id, Kind},
            vm_body::VmDisk,
        },
    },
    cloud::index::Seq,
};

/// The maximum size of a disk in GiB.
const MAX_GIB: u32 = 65_536;

/// A disk to create or to attach.
#[derive(Clone, Debug)]
pub(super) struct DiskPlan {
    /// The id of the disk.
    pub(super) id: Id,
    /// The disk to attach; `None` creates a disk.
    pub(super) existing: Option<Seq>,
    /// The logical unit number of a data disk.
    pub(super) lun: Option<u32>,
    /// The size in GiB.
    pub(super) gib: u32,
    /// The SKU.
    pub(super) sku: String,
    /// The operating system, of an OS disk.
    pub(super) os_type: Option<String>,
    /// What happens to the disk when its virtual machine is deleted.
    pub(super) delete: DeleteOption,
}

impl Engine {
    /// Plans the OS disk. The default name is the machine's name, `_OsDisk_1_` and 32 random hex
    /// digits; the default size is the image's.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for another create option than `FromImage`, or a size below the
    /// image's; 409 `ConflictingUserInput` if a disk with the name exists; those of
    /// [`check_ephemeral`].
    pub(super) fn os_disk(
        &mut self,
        vm: &Id,
        disk: Option<&VmDisk>,
        image: &ImageUsed,
        size: &SizeSpec,
    ) -> Result<DiskPlan, Refusal> {
        let given = disk.cloned().unwrap_or_default();
        if let Some(option) = given.create_option.filter(|it| !same(it, "FromImage")) {
            let message =
                format!("The value '{option}' of parameter 'osDisk.createOption' is not allowed.");
            return Err(Refusal::invalid("osDisk.createOption", message));
        }
        let gib = given.disk_size_gb.unwrap_or(image.gib);
        if gib < image.gib {
            let message = format!(
                "The specified disk size {gib} GB is smaller than the size of the corresponding disk in the VM image: \
                 {} GB.",
                image.gib
            );
            return Err(Refusal::invalid("osDisk.diskSizeGB", message));
        }
        if let Some(disk) = disk {
            check_ephemeral(disk, gib, size)?;
        }
        let name = given.name.unwrap_or_else(|| {
            let number = u128::from(self.names.number()) << 64 | u128::from(self.names.number());
            format!("{}_OsDisk_1_{number:032x}", vm.name)
        });
        let plan = DiskPlan {
            id: vm.sibling(Kind::Disk, &name),
            existing: None,
            lun: None,
            gib,
            sku: sku(given
                .managed_disk
                .and_then(|disk| disk.storage_account_type))?,
            os_type: Some(image.os_type.clone()),
            delete: given.delete_option.unwrap_or_default(),
        };
        self.check_new_disk(&plan)?;
        Ok(plan)
    }

    /// Plans a data disk: a new one (`Empty`) or an existing one (`Attach`).
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` without a lun below 64, a size or a known create option; the refusals
    /// of a new or an attached disk.
    pub(super) fn data_disk(&self, vm: &Id, disk: &VmDisk) -> Result<DiskPlan, Refusal> {
        if disk.diff_disk_settings.is_some() {
            let message = "Only an OS disk can be ephemeral.";
            return Err(Refusal::invalid("dataDisk.diffDiskSettings", message));
        }
        let lun = disk.lun.filter(|lun| *lun < 64);
        let lun = lun.ok_or_else(|| Refusal::missing("dataDisk.lun"))?;
        let delete = disk.delete_option.unwrap_or_default();
        let managed = disk.managed_disk.clone().unwrap_or_default();
        let option = disk.create_option.as_deref().unwrap_or_default();
        if same(option, "Attach") {
            let path = managed
                .id
                .ok_or_else(|| Refusal::missing("dataDisk.managedDisk.id"))?;
            return self.disk_to_attach(vm, &Id::read(Kind::Disk, &path)?, lun, delete);
        }
        if !same(option, "Empty") {
            let message = "The value of parameter 'dataDisk.createOption' is not allowed.";
            return Err(Refusal::invalid("dataDisk.createOption", message));
        }
        let gib = disk.disk_size_gb;
        let name = disk.name.clone();
        let name = name.unwrap_or_else(|| format!("{}_disk_{lun}", vm.name));
        let plan = DiskPlan {
            id: vm.sibling(Kind::Disk, &name),
            existing: None,
            lun: Some(lun),
            gib: gib.ok_or_else(|| Refusal::missing("dataDisk.diskSizeGB"))?,
            sku: sku(managed.storage_account_type)?,
            os_type: None,
            delete,
        };
        self.check_new_disk(&plan)?;
        Ok(plan)
    }

    /// Plans a disk that is created without a virtual machine.
    pub(super) fn standalone_disk(
        &self,
        id: &Id,
        body: &DiskBody,
        gib: Option<u32>,
    ) -> Result<DiskPlan, Refusal> {
        let plan = DiskPlan {
            id: id.clone(),
            existing: None,
            lun: None,
            gib: gib.ok_or_else(|| Refusal::missing("diskSizeGB"))?,
            sku: sku(body.sku.clone().and_then(|sku| sku.name))?,
            os_type: None,
            delete: DeleteOption::Detach,
        };
        self.check_new_disk(&plan)?;
        Ok(plan)
    }

    /// Checks size and name of a new disk.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for a size out of range or an invalid name; 409
    /// `ConflictingUserInput` if a disk with the name exists.
    fn check_new_disk(&self, plan: &DiskPlan) -> Result<(), Refusal> {
        if plan.gib == 0 || plan.gib > MAX_GIB {
            let message = format!("The disk size {} GB is out of range.", plan.gib);
            return Err(Refusal::invalid("diskSizeGB", message));
        }
        body_checks::check_disk_name(&plan.id.name)?;
        if self.disks.find(&plan.id).is_none() {
            return Ok(());
        }
        let message = format!(
            "Disk {} already exists in resource group {}. Only CreateOption.Attach is supported.",
            plan.id.name, plan.id.group
        );
        Err(Refusal::new(409, "ConflictingUserInput", message))
    }

    /// Plans to attach an existing disk.
    ///
    /// # Errors
    ///
    /// 404 `ResourceNotFound`; 409 `AttachDiskWhileBeingDetached`; 409 `Conflict` if the disk is
    /// being deleted or attached to another virtual machine.
    fn disk_to_attach(
        &self,
        vm: &Id,
        id: &Id,
        lun: u32,
        delete: DeleteOption,
    ) -> Result<DiskPlan, Refusal> {
        let found = self.disks.find(id);
        let (seq, disk) = found.ok_or_else(|| id.not_found())?;
        check_not_deleting(disk.provisioning, id)?;
        if disk.detaching {
            let message = format!(
                "Cannot attach data disk '{}' to VM '{}' because the disk is currently being detached or the last \
                 detach operation failed.",
                id.name, vm.name
            );
            return Err(Refusal::new(409, "AttachDiskWhileBeingDetached", message));
        }
        let other = disk.attached.as_ref().filter(|it| it.key() != vm.key());
        if let Some(other) = other {
            let message = format!(
                "Disk '{}' cannot be attached as it is already owned by VM '{}'.",
                id.name,
                other.path()
            );
            return Err(Refusal::conflict(message));
        }
        Ok(DiskPlan {
            id: disk.id.clone(),
            existing: Some(seq),
            lun: Some(lun),
            gib: disk.gib,
            sku: disk.sku.clone(),
            os_type: None,
            delete,
        })
    }
}

/// Returns the SKU of a disk, by default `Standard_LRS`. Unknown ones are refused with 400
/// `InvalidParameter`.
fn sku(requested: Option<String>) -> Result<String, Refusal> {
    const KNOWN: [&str; 7] = [
        "Standard_LRS",
        "StandardSSD_LRS",
        "StandardSSD_ZRS",
        "Premium_LRS",
        "Premium_ZRS",
        "PremiumV2_LRS",
        "UltraSSD_LRS",
    ];
    let requested = requested.unwrap_or_else(|| "Standard_LRS".to_owned());
    if KNOWN.contains(&requested.as_str()) {
        return Ok(requested);
    }
    let message =
        format!("The value '{requested}' of parameter 'storageAccountType' is not allowed.");
    Err(Refusal::invalid("storageAccountType", message))
}

/// Refuses disks of one virtual machine that have the same name or the same lun, with 400
/// `InvalidParameter`.
pub(super) fn check_distinct<'a>(
    disks: impl Iterator<Item = (&'a Id, Option<u32>)>,
) -> Result<(), Refusal> {
    let (mut names, mut luns) = (BTreeSet::new(), BTreeSet::new());
    for (id, lun) in disks {
        if !names.insert(id.key()) {
            let message = format!("The disk '{}' is named more than once.", id.name);
            return Err(Refusal::invalid("dataDisk.name", message));
        }
        if !lun.is_none_or(|lun| luns.insert(lun)) {
            let message = "A lun is used by more than one data disk.";
            return Err(Refusal::invalid("dataDisk.lun", message));
        }
    }
    Ok(())
}

/// Checks an ephemeral OS disk, which is on the host of its machine. "Ephemeral OS disks for Azure VMs",
/// Microsoft; bosh-azure-cpi-release#674 has the message.
///
/// # Errors
///
/// 400 `InvalidParameter` without `Local` or with another caching than `ReadOnly`; 400 `NotSupported` if
/// the size has no room for it.
fn check_ephemeral(disk: &VmDisk, gib: u32, size: &SizeSpec) -> Result<(), Refusal> {
    let Some(settings) = &disk.diff_disk_settings else {
        return Ok(());
    };
    if settings.option.as_deref() != Some("Local") {
        return Err(Refusal::missing("osDisk.diffDiskSettings.option"));
    }
    let placement = settings.placement.as_deref().unwrap_or("CacheDisk");
    if !["CacheDisk", "ResourceDisk", "NvmeDisk"].contains(&placement) {
        let message = format!("The placement '{placement}' of an ephemeral OS disk is not known.");
        return Err(Refusal::invalid(
            "osDisk.diffDiskSettings.placement",
            message,
        ));
    }
    if disk.caching.as_deref() != Some("ReadOnly") {
        let message = "An ephemeral OS disk requires ReadOnly caching.";
        return Err(Refusal::invalid("osDisk.caching", message));
    }
    if gib > size.ephemeral_gib {
        let message = format!(
            "OS disk of Ephemeral VM with size greater than {} GB is not allowed for VM size {} when the \
             DiffDiskPlacement is {placement}.",
            size.ephemeral_gib, size.name
        );
        return Err(Refusal::client("NotSupported", message));
    }
    Ok(())
}
