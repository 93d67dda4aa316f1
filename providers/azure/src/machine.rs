//! Machines, their parts and their requests, as plain values.
//!
//! Owns the types between the client, which knows the SDK's documents, and the rest of the crate,
//! which does not.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use chrono::{DateTime, Utc};

/// A virtual machine as a read returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its resource id, in the letter case of the response.
    pub(crate) path: String,
    /// The name within the resource group.
    pub(crate) name: String,
    /// Azure's own id; empty where a list of states omits it.
    pub(crate) vm_id: String,
    /// When it was created.
    pub(crate) created: Option<DateTime<Utc>>,
    /// The location, such as `eastus`.
    pub(crate) location: String,
    /// The availability zone, such as `1`.
    pub(crate) zone: Option<String>,
    /// The size, such as `Standard_D2s_v5`.
    pub(crate) size: Option<String>,
    /// The image, in the form in which a launch names it.
    pub(crate) image: Option<String>,
    /// Whether Azure may evict it.
    pub(crate) spot: bool,
    pub(crate) tags: BTreeMap<String, String>,
    /// The state of its latest operation, such as `Creating` or `Failed`.
    pub(crate) provisioning: String,
    /// The codes of its instance view; empty if the read did not include it.
    pub(crate) statuses: Vec<Status>,
    /// The resource ids of its interfaces, the primary one first.
    pub(crate) interfaces: Vec<String>,
    /// The resource id of the system disk.
    pub(crate) disk: Option<String>,
    /// The hardware generation, such as `V2`.
    pub(crate) generation: Option<String>,
    /// The version of the document.
    pub(crate) etag: Option<String>,
}

/// A code of an instance view, such as `PowerState/running`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The code, such as `ProvisioningState/failed/AllocationFailed`.
    pub(crate) code: String,
    /// The message, if there is one.
    pub(crate) message: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The resource id of its machine.
    pub(crate) machine: Option<String>,
    /// Whether it is the primary interface of its machine.
    pub(crate) primary: bool,
    /// The MAC address, with hyphens.
    pub(crate) mac: Option<String>,
    /// The private address.
    pub(crate) private: Option<IpAddr>,
    /// The public address.
    pub(crate) public: Option<Public>,
    /// The resource id of the subnet.
    pub(crate) subnet: Option<String>,
    /// The resource id of the network security group.
    pub(crate) security_group: Option<String>,
}

/// A public address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Public {
    /// The address itself.
    Address(IpAddr),
    /// The resource id of the address.
    At(String),
}

/// The image of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A marketplace image.
    Published {
        publisher: String,
        offer: String,
        sku: String,
        version: String,
    },
    /// An image or gallery version of ours, by resource id.
    Resource(String),
    /// An image of a gallery that is shared with this subscription.
    SharedGallery(String),
    /// An image of a public gallery.
    CommunityGallery(String),
}

/// The request of a machine with all its parts. `Debug` does not show the user data.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MachineSpec {
    /// The location, such as `eastus`.
    pub(crate) location: String,
    /// The availability zone, such as `1`.
    pub(crate) zone: Option<String>,
    /// The size, such as `Standard_D2s_v5`.
    pub(crate) size: String,
    /// The image.
    pub(crate) source: Source,
    /// The size of the system disk in GiB.
    pub(crate) disk_gib: Option<i32>,
    /// The type of the system disk.
    pub(crate) disk_type: Option<String>,
    /// Where the system disk is.
    pub(crate) system_disk: crate::SystemDisk,
    /// Empty disks, in the order of their logical unit numbers.
    pub(crate) data_disks: Vec<crate::DataDisk>,
    /// How the boot is protected.
    pub(crate) boot_security: Option<crate::BootSecurity>,
    /// Whether the interface bypasses the host's virtual switch.
    pub(crate) accelerated_networking: crate::AcceleratedNetworking,
    /// The login user.
    pub(crate) admin_user: String,
    /// The key of the login user.
    pub(crate) ssh_public_key: String,
    /// In base64, like the user data.
    pub(crate) custom_data: Option<String>,
    pub(crate) user_data: Option<String>,
    /// The resource id of the subnet.
    pub(crate) subnet: String,
    pub(crate) security_group: Option<String>,
    /// Whether it gets a public address.
    pub(crate) public_address: bool,
    /// Whether it is a spot machine, and what happens when Azure evicts it.
    pub(crate) spot: Option<crate::Eviction>,
    /// Whether it gets its own identity.
    pub(crate) system_identity: bool,
    /// The resource ids of the identities that it can act as.
    pub(crate) user_identities: Vec<String>,
    /// The plan of a marketplace image.
    pub(crate) plan: Option<crate::MarketplacePlan>,
    /// Whether Azure keeps the console log.
    pub(crate) console: bool,
    pub(crate) tags: BTreeMap<String, String>,
}

impl fmt::Debug for MachineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineSpec")
            .field("location", &self.location)
            .field("zone", &self.zone)
            .field("size", &self.size)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A change of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Replaces all tags.
    Tags(BTreeMap<String, String>),
    /// Changes the size.
    Size(String),
}

/// An image of the resource group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageRecord {
    pub(crate) path: String,
    pub(crate) tags: BTreeMap<String, String>,
    /// The provisioning state, such as `Creating`.
    pub(crate) provisioning: Option<String>,
}

/// The operation that a call started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartedOperation {
    /// The link of the operation; `None` if it ended at once or Azure returned no link.
    pub(crate) url: Option<String>,
}
