//! The parsed and complete parameters of an insert.

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
    pub(crate) project: String,
    pub(crate) zone: String,
    pub(crate) name: String,
    pub(crate) machine_type: String,
    /// The boot disk first.
    pub(crate) disks: Vec<DiskSpec>,
    pub(crate) network: String,
    pub(crate) subnetwork: String,
    pub(crate) access: Option<AccessConfig>,
    pub(crate) labels: Labels,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Vec<String>,
    pub(crate) scheduling: Scheduling,
    pub(crate) deletion_protection: bool,
    pub(crate) can_ip_forward: bool,
    pub(crate) hostname: Option<String>,
    pub(crate) request_id: Option<Uuid>,
    pub(crate) external: bool,
    pub(crate) echo: Map<String, Value>,
}

/// The requested properties of a disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpec {
    /// Its name; the first is called like its instance unless given.
    pub(crate) name: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) boot: bool,
    pub(crate) auto_delete: bool,
    pub(crate) gib: u32,
    pub(crate) kind: String,
    pub(crate) labels: Labels,
    pub(crate) description: Option<String>,
    pub(crate) interface: String,
    pub(crate) mode: String,
    pub(crate) source: Source,
}

/// Where a disk comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Blank,
    Image(ImageRecord),
    /// Returns the existing disk with this name.
    Existing(String),
    /// The machine itself: it has no life of its own.
    Local,
}

impl InstanceSpec {
    /// The path of the instance.
    pub(crate) fn path(&self) -> String {
        let Self {
            project,
            zone,
            name,
            ..
        } = self;
        format!("projects/{project}/zones/{zone}/instances/{name}")
    }

    /// The same for another name.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }
}
