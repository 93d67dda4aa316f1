//! The parsed and complete parameters of an insert.
//!
//! The API's methods parse a request into a spec and check that everything that it names exists. The
//! engine itself checks only names and limits.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    image::ImageRecord,
    record::{AccessConfig, Labels, Scheduling},
    rules::Metadata,
};

/// The requested properties of an instance.
#[derive(Clone, Debug)]
pub(crate) struct InstanceSpec {
    /// The project that owns it.
    pub(crate) project: String,
    /// The zone that it runs in.
    pub(crate) zone: String,
    /// The name. Empty until it is known, in a bulkInsert and in an external launch.
    pub(crate) name: String,
    /// The machine type, which the zone offers.
    pub(crate) machine_type: String,
    /// The disks, the boot disk first.
    pub(crate) disks: Vec<DiskSpec>,
    /// The network of its only interface.
    pub(crate) network: String,
    /// The subnetwork of its only interface.
    pub(crate) subnetwork: String,
    /// The external address; `None` for an instance without one.
    pub(crate) access: Option<AccessConfig>,
    /// The labels, already checked.
    pub(crate) labels: Labels,
    /// The metadata, already checked.
    pub(crate) metadata: Metadata,
    /// The network tags.
    pub(crate) tags: Vec<String>,
    /// The provisioning model and the behaviour at maintenance.
    pub(crate) scheduling: Scheduling,
    /// Whether a delete through the API is refused. Default false.
    pub(crate) deletion_protection: bool,
    /// Whether it may forward packets; only stored. Default false.
    pub(crate) can_ip_forward: bool,
    /// The custom host name; only stored.
    pub(crate) hostname: Option<String>,
    /// The request id of the insert, for the oracle.
    pub(crate) request_id: Option<Uuid>,
    /// Whether an external actor creates it.
    pub(crate) external: bool,
    /// Fields of the request that every read returns unchanged.
    pub(crate) echo: Map<String, Value>,
}

/// The requested properties of a disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpec {
    /// The name. Default: the instance's name for the first disk, with a number for the others.
    pub(crate) name: Option<String>,
    /// The device name in the guest. Default `persistent-disk-` and the disk's number.
    pub(crate) device: Option<String>,
    /// Whether it is the boot disk, which must be the first one.
    pub(crate) boot: bool,
    /// Whether it is deleted with its instance. Default false.
    pub(crate) auto_delete: bool,
    /// The size in GiB; 0 for an existing disk.
    pub(crate) gib: u32,
    /// The disk type. Default `pd-standard`.
    pub(crate) kind: String,
    /// The labels of a new disk.
    pub(crate) labels: Labels,
    /// The description of a new disk.
    pub(crate) description: Option<String>,
    /// `SCSI`, the default, or `NVME`.
    pub(crate) interface: String,
    /// `READ_WRITE`, the default, or `READ_ONLY`; only stored.
    pub(crate) mode: String,
    /// Where its data comes from.
    pub(crate) source: Source,
}

/// Where the data of a disk comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A new, empty disk.
    Blank,
    /// A new disk with the content of an image.
    Image(ImageRecord),
    /// The existing disk with this name, in the instance's zone.
    Existing(String),
    /// A local SSD: part of the machine, without a name and a record.
    Local,
}

impl InstanceSpec {
    /// Returns the path of the instance below the API root.
    pub(crate) fn path(&self) -> String {
        let Self {
            project,
            zone,
            name,
            ..
        } = self;
        format!("projects/{project}/zones/{zone}/instances/{name}")
    }

    /// Returns the spec with another instance name.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }
}
