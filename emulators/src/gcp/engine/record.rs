//! An instance, and the versions that a lagging read may still return.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Address, rules::Metadata};
use crate::cloud::{
    capacity::Kind, fault::Failure, history::History, index::Seq, knobs::Market, records::Record,
};

/// Labels of a resource.
pub(crate) type Labels = BTreeMap<String, String>;

/// The index keys of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// All instances of a project.
    Project(String),
    /// All instances of a zone of a project.
    Zone(String, String),
    Id(u64),
    Name(String),
    Status(Status),
    /// With this label, whatever its value.
    HasLabel(String),
    Label(String, String),
}

/// The states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Provisioning,
    Staging,
    Running,
    Stopping,
    Terminated,
    Suspending,
    Suspended,
    Repairing,
    /// Deleted; only lagging reads return it.
    Gone,
}

impl Status {
    pub(crate) const VISIBLE: [Self; 8] = [
        Self::Provisioning,
        Self::Staging,
        Self::Running,
        Self::Stopping,
        Self::Terminated,
        Self::Suspending,
        Self::Suspended,
        Self::Repairing,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Provisioning => "PROVISIONING",
            Self::Staging => "STAGING",
            Self::Running => "RUNNING",
            Self::Stopping => "STOPPING",
            Self::Terminated => "TERMINATED",
            Self::Suspending => "SUSPENDING",
            Self::Suspended => "SUSPENDED",
            Self::Repairing => "REPAIRING",
            Self::Gone => "gone",
        }
    }
}

/// What becomes of a spot instance that is taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TerminationAction {
    #[default]
    Stop,
    Delete,
}

/// Who may interrupt an instance, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "Compute Engine has each of them as a bool field"
)]
pub(crate) struct Scheduling {
    pub(crate) spot: bool,
    /// Spot by its older name.
    pub(crate) preemptible: bool,
    pub(crate) automatic_restart: bool,
    pub(crate) migrates: bool,
    pub(crate) termination: Option<TerminationAction>,
}

impl Scheduling {
    /// Not spot: moved to another machine where that is needed, and restarted.
    pub(crate) const fn standard() -> Self {
        Self {
            spot: false,
            preemptible: false,
            automatic_restart: true,
            migrates: true,
            termination: None,
        }
    }

    pub(crate) const fn market(&self) -> Market {
        if self.spot || self.preemptible {
            Market::Spot
        } else {
            Market::OnDemand
        }
    }
}

/// An external address that an instance has while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessConfig {
    pub(crate) name: String,
    pub(crate) tier: String,
}

impl AccessConfig {
    pub(crate) fn standard() -> Self {
        Self {
            name: "External NAT".to_owned(),
            tier: "PREMIUM".to_owned(),
        }
    }
}

/// A disk that is attached to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachedDisk {
    /// `None` for a local disk.
    pub(crate) disk: Option<Seq>,
    pub(crate) boot: bool,
    pub(crate) auto_delete: bool,
    pub(crate) device: String,
    pub(crate) interface: String,
    pub(crate) mode: String,
    pub(crate) gib: u32,
}

/// The properties of an instance that never change.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) project: String,
    pub(crate) zone: String,
    pub(crate) network: String,
    pub(crate) subnetwork: String,
    /// None if there was none left.
    pub(crate) internal_ip: Option<Ipv4Addr>,
    pub(crate) access: Option<AccessConfig>,
    pub(crate) scheduling: Scheduling,
    pub(crate) tags: Vec<String>,
    pub(crate) can_ip_forward: bool,
    pub(crate) deletion_protection: bool,
    pub(crate) hostname: Option<String>,
    /// The path of the image that its boot disk was created from.
    pub(crate) image: Option<String>,
    pub(crate) request_id: Option<Uuid>,
    /// Created by an external actor.
    pub(crate) external: bool,
    /// What came with the insert and goes into every reply as it came.
    pub(crate) echo: Map<String, Value>,
}

impl Fixed {
    pub(crate) fn address(&self) -> Address {
        (self.project.clone(), self.zone.clone(), self.name.clone())
    }

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
}

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) seq: Seq,
    pub(crate) fixed: Arc<Fixed>,
    pub(crate) disks: Vec<AttachedDisk>,
    pub(crate) holds_machine: bool,
    /// How many times its guest has booted.
    pub(crate) boots: u64,
    /// Why what is going on is going to fail.
    pub(crate) planned_failures: Vec<Failure>,
    pub(crate) console: String,
    /// The number of the current step; the end of an earlier one is ignored.
    pub(crate) step: u64,
    /// What is going on.
    pub(crate) current_step: CurrentStep,
    /// The operation that it is done by.
    pub(crate) operation: Option<Seq>,
    /// How many deletes came during its deletion.
    pub(crate) repeated_deletes: u32,
    pub(crate) versions: History<Version>,
}

/// What is going on with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentStep {
    Nothing,
    Insert,
    Start,
    Resume,
    Stop,
    Suspend,
    Delete,
    Repair,
}

/// The properties of an instance that change.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) status: Status,
    pub(crate) machine_type: String,
    pub(crate) nat_ip: Option<Ipv4Addr>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) last_start: Option<Duration>,
    pub(crate) last_stop: Option<Duration>,
    pub(crate) last_suspended: Option<Duration>,
}

impl Instance {
    /// Returns the current version.
    pub(crate) fn current(&self) -> &Version {
        self.versions.current()
    }

    /// What a read sees that looks at `moment`: nothing before it was made or after it is gone.
    pub(crate) fn version_at(&self, moment: Option<Duration>) -> Option<&Version> {
        let version = self.versions.at(moment)?;
        (version.status != Status::Gone).then_some(version)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.current().status == Status::Gone
    }

    /// The kind of machine that it needs.
    pub(crate) fn machine(&self) -> Kind {
        (
            self.current().machine_type.clone(),
            self.fixed.zone.clone(),
            self.fixed.scheduling.market(),
        )
    }
}

impl Record for Instance {
    type Version = Version;
    type Key = Key;

    fn versions(&mut self) -> &mut History<Version> {
        &mut self.versions
    }

    fn keys(&self) -> Vec<Key> {
        let Fixed {
            id,
            name,
            project,
            zone,
            ..
        } = &*self.fixed;
        let mut keys = vec![
            Key::Project(project.clone()),
            Key::Zone(project.clone(), zone.clone()),
            Key::Id(*id),
            Key::Name(name.clone()),
        ];
        for version in self.versions.iter() {
            keys.push(Key::Status(version.status));
            for (key, value) in &*version.labels {
                keys.push(Key::HasLabel(key.clone()));
                keys.push(Key::Label(key.clone(), value.clone()));
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }
}
