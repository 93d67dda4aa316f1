//! Options of a machine's hardware: boot security, networking and disks.
//!
//! Owns their types, their names in a config and what they require. It sends nothing.

use std::num::NonZeroU32;

use fleetwright::{InvalidValue, Problem};
use serde::{Deserialize, Serialize};

/// The largest number of data disks that a config can have. Most sizes allow fewer.
const MAX_DATA_DISKS: usize = 64;

/// How the boot of a machine is protected.
///
/// Trusted Launch needs an image of generation 2 and a size that supports it. An image that was published for
/// Trusted Launch cannot be launched without it. Source: "Trusted Launch for Azure virtual machines", Microsoft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootSecurity {
    /// Trusted Launch with secure boot and a virtual TPM.
    /// Serialized as `trusted-launch`.
    TrustedLaunch,
    /// Trusted Launch with a virtual TPM only, for systems with drivers that are not signed.
    /// Serialized as `trusted-launch-without-secure-boot`.
    TrustedLaunchWithoutSecureBoot,
}

/// Whether the network interface of a machine bypasses the host's virtual switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratedNetworking {
    /// It does not.
    /// Serialized as `off`.
    #[default]
    Off,
    /// It does. Azure refuses a size that does not offer it.
    /// Serialized as `on`.
    On,
}

/// Where the system disk of a machine is.
///
/// An ephemeral disk is on the host of the machine. It is fast and free, and its data is lost when Azure moves the
/// machine. The machine cannot be deallocated, so `stop_instance` fails with `Unsupported`, and no image can be
/// created of it. The disk must fit into the space that the host has for the size. Source: "Ephemeral OS disks for
/// Azure VMs", Microsoft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemDisk {
    /// A managed disk, which is kept while the machine is stopped.
    /// Serialized as `managed`.
    #[default]
    Managed,
    /// An ephemeral disk in the host's cache.
    /// Serialized as `ephemeral-cache`.
    EphemeralCache,
    /// An ephemeral disk beside the temporary disk.
    /// Serialized as `ephemeral-resource`.
    EphemeralResource,
    /// An ephemeral disk on the host's NVMe disks.
    /// Serialized as `ephemeral-nvme`.
    EphemeralNvme,
}

impl SystemDisk {
    /// Returns Azure's name of the place of an ephemeral disk; `None` for a managed one.
    pub(crate) const fn placement(self) -> Option<&'static str> {
        match self {
            Self::Managed => None,
            Self::EphemeralCache => Some("CacheDisk"),
            Self::EphemeralResource => Some("ResourceDisk"),
            Self::EphemeralNvme => Some("NvmeDisk"),
        }
    }
}

/// An empty disk that is created with a machine and deleted with it.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright_azure::DataDisk;
///
/// let mut disk = DataDisk::new(NonZeroU32::new(512).unwrap());
/// disk.disk_type = Some("Premium_LRS".to_owned());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DataDisk {
    /// The size in GiB.
    pub size_gib: NonZeroU32,
    /// The type, such as `Premium_LRS`. Default: Azure's choice.
    #[serde(default)]
    pub disk_type: Option<String>,
}

impl DataDisk {
    /// Creates a disk of the type that Azure chooses.
    pub const fn new(size_gib: NonZeroU32) -> Self {
        Self {
            size_gib,
            disk_type: None,
        }
    }
}

/// Checks data disks.
///
/// # Errors
///
/// An invalid-value error for `data_disks` if there are too many, or one is too large for the API.
pub(crate) fn check_disks(disks: &[DataDisk]) -> Result<(), InvalidValue> {
    let fits = |disk: &DataDisk| i32::try_from(disk.size_gib.get()).is_ok();
    if disks.len() <= MAX_DATA_DISKS && disks.iter().all(fits) {
        return Ok(());
    }
    let expected = "at most 64 disks, each of at most 2,147,483,647 GiB";
    Err(InvalidValue::new(
        "data_disks",
        Problem::Malformed { expected },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_or_too_large_disks_are_refused() {
        let disk = |gib| DataDisk::new(NonZeroU32::new(gib).unwrap());
        assert_eq!(check_disks(&vec![disk(1); 64]), Ok(()));
        for odd in [vec![disk(1); 65], vec![disk(u32::MAX)]] {
            assert_eq!(check_disks(&odd).unwrap_err().field(), "data_disks");
        }
    }

    #[test]
    fn options_have_stable_names() {
        let named = [
            serde_json::to_string(&BootSecurity::TrustedLaunchWithoutSecureBoot),
            serde_json::to_string(&AcceleratedNetworking::On),
            serde_json::to_string(&SystemDisk::EphemeralNvme),
        ];
        let named: Vec<_> = named.into_iter().map(Result::unwrap).collect();
        let names = ["trusted-launch-without-secure-boot", "on", "ephemeral-nvme"];
        assert_eq!(named, names.map(|name| format!("{name:?}")));
    }
}
