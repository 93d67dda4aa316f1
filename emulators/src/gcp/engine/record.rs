//! An instance, and the versions that a lagging read may still return.
//!
//! Properties that never change are in `Fixed`; those that change are in `Version`, of which an
//! instance keeps all that a read may return.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Address, rules::Metadata};
use crate::cloud::{
    capacity::Kind, fault::Failure, history::History, index::Seq, knobs::Market, records::Record,
};

/// The labels of a resource, by key.
pub(crate) type Labels = BTreeMap<String, String>;

/// An index key of an instance. A filter that names one reads only the instances under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// All instances of a project.
    Project(String),
    /// All instances of a zone of a project.
    Zone(String, String),
    /// The instance with this numeric id.
    Id(u64),
    /// The instances with this name, in any project and zone.
    Name(String),
    /// The instances that have or had this status in a version that may still be read.
    Status(Status),
    /// The instances with this label key, whatever its value.
    HasLabel(String),
    /// The instances with this label key and value.
    Label(String, String),
}

/// The states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// The machine is being reserved.
    Provisioning,
    /// The machine is reserved and being prepared.
    Staging,
    /// The guest boots or runs.
    Running,
    /// The instance is being stopped or deleted.
    Stopping,
    /// Stopped: it has no machine and keeps its disks. It is not deleted.
    Terminated,
    /// The memory is being saved.
    Suspending,
    /// The memory is saved; it has no machine.
    Suspended,
    /// The machine failed and is being repaired.
    Repairing,
    /// Deleted; only lagging reads return the versions before it.
    Gone,
}

impl Status {
    /// The states that a client can see.
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

    /// Returns Compute Engine's name of the state. `gone` is never sent.
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

/// What Compute Engine does with a spot instance that it preempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TerminationAction {
    /// The instance is stopped. This is the default.
    #[default]
    Stop,
    /// The instance is deleted.
    Delete,
}

/// The provisioning model of an instance, and what happens at maintenance and host errors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "Compute Engine has each of them as a bool field"
)]
pub(crate) struct Scheduling {
    /// Whether the provisioning model is `SPOT`.
    pub(crate) spot: bool,
    /// Whether it is preemptible, the older form of spot.
    pub(crate) preemptible: bool,
    /// Whether it is restarted after a failure; only stored.
    pub(crate) automatic_restart: bool,
    /// Whether it is moved to another machine at maintenance; only stored.
    pub(crate) migrates: bool,
    /// What a preemption does; only for spot instances.
    pub(crate) termination: Option<TerminationAction>,
}

impl Scheduling {
    /// Returns the default: on demand, moved at maintenance and restarted after failures.
    pub(crate) const fn standard() -> Self {
        Self {
            spot: false,
            preemptible: false,
            automatic_restart: true,
            migrates: true,
            termination: None,
        }
    }

    /// Returns the market whose capacity and quota it uses.
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
    /// The name of the access config. Default `External NAT`.
    pub(crate) name: String,
    /// The network tier. Default `PREMIUM`.
    pub(crate) tier: String,
}

impl AccessConfig {
    /// Returns the defaults.
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
    /// The disk; `None` for a local SSD.
    pub(crate) disk: Option<Seq>,
    /// Whether it is the boot disk.
    pub(crate) boot: bool,
    /// Whether it is deleted with the instance.
    pub(crate) auto_delete: bool,
    /// The device name in the guest.
    pub(crate) device: String,
    /// `SCSI` or `NVME`.
    pub(crate) interface: String,
    /// `READ_WRITE` or `READ_ONLY`.
    pub(crate) mode: String,
    /// The size in GiB.
    pub(crate) gib: u32,
}

/// The properties of an instance that never change.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// The numeric id, which never repeats.
    pub(crate) id: u64,
    /// The name, unique in its zone among instances that are not deleted.
    pub(crate) name: String,
    /// The project that owns it.
    pub(crate) project: String,
    /// The zone that it runs in.
    pub(crate) zone: String,
    /// The network of its only interface.
    pub(crate) network: String,
    /// The subnetwork of its only interface.
    pub(crate) subnetwork: String,
    /// The internal address; `None` if the subnetwork had none left.
    pub(crate) internal_ip: Option<Ipv4Addr>,
    /// The external address that it has while it runs, if it has one.
    pub(crate) access: Option<AccessConfig>,
    /// The provisioning model and the behaviour at maintenance.
    pub(crate) scheduling: Scheduling,
    /// The network tags.
    pub(crate) tags: Vec<String>,
    /// Whether it may forward packets; only stored.
    pub(crate) can_ip_forward: bool,
    /// Whether a delete through the API is refused.
    pub(crate) deletion_protection: bool,
    /// The custom host name; only stored.
    pub(crate) hostname: Option<String>,
    /// The path of the image that its boot disk was created from.
    pub(crate) image: Option<String>,
    /// The request id of its insert.
    pub(crate) request_id: Option<Uuid>,
    /// Whether an external actor created it.
    pub(crate) external: bool,
    /// Fields of the insert that every read returns unchanged.
    pub(crate) echo: Map<String, Value>,
}

impl Fixed {
    /// Returns project, zone and name.
    pub(crate) fn address(&self) -> Address {
        (self.project.clone(), self.zone.clone(), self.name.clone())
    }

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
}

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance {
    /// The sequence number, which orders lists.
    pub(crate) seq: Seq,
    /// The properties that never change.
    pub(crate) fixed: Arc<Fixed>,
    /// The attached disks, the boot disk first.
    pub(crate) disks: Vec<AttachedDisk>,
    /// Whether it uses a machine of the knob `capacity`.
    pub(crate) holds_machine: bool,
    /// How many times its guest has booted.
    pub(crate) boots: u64,
    /// The errors with which its current step will fail; empty if it succeeds.
    pub(crate) planned_failures: Vec<Failure>,
    /// The output of its first serial port.
    pub(crate) console: String,
    /// The number of the current step; the end of an earlier one is ignored.
    pub(crate) step: u64,
    /// What is being done to it.
    pub(crate) current_step: CurrentStep,
    /// The operation of the current step; `None` if no client started it.
    pub(crate) operation: Option<Seq>,
    /// How many deletes came during its deletion.
    pub(crate) repeated_deletes: u32,
    /// The versions that a read may still return.
    pub(crate) versions: History<Version>,
}

/// What is being done to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentStep {
    /// Nothing: it runs, is stopped or is suspended.
    Nothing,
    /// It is being created.
    Insert,
    /// It is being started.
    Start,
    /// It is being resumed.
    Resume,
    /// It is being stopped.
    Stop,
    /// It is being suspended.
    Suspend,
    /// It is being deleted.
    Delete,
    /// Its machine is being repaired.
    Repair,
}

/// The properties of an instance that change.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The state.
    pub(crate) status: Status,
    /// The machine type, which can change while it is stopped.
    pub(crate) machine_type: String,
    /// The external address; only while it runs.
    pub(crate) nat_ip: Option<Ipv4Addr>,
    /// The labels.
    pub(crate) labels: Arc<Labels>,
    /// The metadata, in the order of the request.
    pub(crate) metadata: Arc<Metadata>,
    /// When it last became `RUNNING`.
    pub(crate) last_start: Option<Duration>,
    /// When it last became `TERMINATED`.
    pub(crate) last_stop: Option<Duration>,
    /// When it last became `SUSPENDED`.
    pub(crate) last_suspended: Option<Duration>,
}

impl Instance {
    /// Returns the current version.
    pub(crate) fn current(&self) -> &Version {
        self.versions.current()
    }

    /// Returns the version at a time; `None` before its creation and after its deletion.
    pub(crate) fn version_at(&self, moment: Option<Duration>) -> Option<&Version> {
        let version = self.versions.at(moment)?;
        (version.status != Status::Gone).then_some(version)
    }

    /// Returns whether it is deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.current().status == Status::Gone
    }

    /// Returns the kind of machine that it needs: type, zone and market.
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

    /// Returns the index keys of all its versions, so that a lagging read finds it too.
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
