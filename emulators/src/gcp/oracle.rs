//! The true state, read past the API: without lag, filters or pages.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde::Serialize;

use super::{
    cloud::FaultRule,
    engine::{Engine, record::Instance},
};
use crate::cloud::{fault::Failure, knobs::Market};

/// The true state of the cloud, and the calls so far.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Oracle {
    /// All instances, in the order of creation, without deleted ones.
    pub instances: Vec<OracleInstance>,
    /// All disks.
    pub disks: Vec<OracleDisk>,
    /// All images, those of the catalog first.
    pub images: Vec<OracleImage>,
    /// All operations that have not expired, the oldest first.
    pub operations: Vec<OracleOperation>,
    /// The number of calls by method.
    pub calls: BTreeMap<String, u64>,
    /// The number of records that calls have read, to prove that a call does not scan the whole
    /// fleet.
    pub records_read: u64,
    /// The fault rules that were never applied.
    pub unused_faults: Vec<FaultRule>,
}

/// The true state of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the facts are independent of each other"
)]
pub struct OracleInstance {
    /// Its id, in decimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its project.
    pub project: String,
    /// Its zone.
    pub zone: String,
    /// Compute Engine's name of its state, for example `RUNNING`.
    pub status: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its metadata.
    pub metadata: BTreeMap<String, String>,
    /// Its network tags.
    pub network_tags: Vec<String>,
    /// The name of the subnetwork of its only interface, in the region of its zone.
    pub subnetwork: String,
    /// The name of its machine type.
    pub machine_type: String,
    /// The path of the image that its boot disk was created from.
    pub image: Option<String>,
    /// The size of its boot disk.
    pub boot_disk_gib: Option<u32>,
    /// The names of its disks, without local ones.
    pub disks: Vec<String>,
    /// Its internal address.
    pub internal_ip: Option<Ipv4Addr>,
    /// Its external address, while it runs.
    pub nat_ip: Option<Ipv4Addr>,
    /// Whether it is a spot instance, which Compute Engine may preempt.
    pub spot: bool,
    /// Whether it uses a machine.
    pub holds_machine: bool,
    /// How many times it has booted: by its creation, by each start and by each reset.
    pub boots: u64,
    /// Whether an external actor created it.
    pub external: bool,
    /// Whether it is protected against deletion.
    pub deletion_protection: bool,
    /// The id of the request that created it.
    pub request_id: Option<String>,
}

/// The true state of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleDisk {
    /// Its name.
    pub name: String,
    /// Its project.
    pub project: String,
    /// Its zone.
    pub zone: String,
    /// The name of the instance that has it.
    pub attached_to: Option<String>,
    /// Whether it is deleted with its instance.
    pub auto_delete: bool,
    /// Its size.
    pub gib: u32,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The true state of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleImage {
    /// Its project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// The path of the disk that it was created from; `None` for public images.
    pub source: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The true state of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OracleOperation {
    /// Its name.
    pub name: String,
    /// What it does, such as `insert`.
    pub operation_type: String,
    /// The path of what it is about.
    pub target: String,
    /// The id of what it is about.
    pub target_id: Option<String>,
    /// PENDING, RUNNING or DONE.
    pub status: String,
    /// What it ended with.
    pub errors: Vec<Failure>,
}

impl Oracle {
    pub(crate) fn new(
        engine: &Engine,
        calls: BTreeMap<String, u64>,
        unused_faults: Vec<FaultRule>,
    ) -> Self {
        let alive = engine
            .instances
            .values()
            .filter(|instance| !instance.is_gone());
        Self {
            instances: alive.map(|instance| truth(engine, instance)).collect(),
            disks: disks(engine),
            images: engine
                .images
                .values()
                .map(|image| OracleImage {
                    project: image.project.clone(),
                    name: image.name.clone(),
                    source: image.source.as_ref().map(|(path, _)| path.clone()),
                    labels: image.labels.clone(),
                })
                .collect(),
            operations: engine
                .operations
                .values()
                .map(|operation| OracleOperation {
                    name: operation.name.clone(),
                    operation_type: operation.kind.to_owned(),
                    target: operation.target.clone(),
                    target_id: operation.target_id.map(|id| id.to_string()),
                    status: operation.status().to_owned(),
                    errors: operation.errors.clone(),
                })
                .collect(),
            calls,
            records_read: engine.core.records_read,
            unused_faults,
        }
    }
}

/// Returns the true state of an instance.
fn truth(engine: &Engine, instance: &Instance) -> OracleInstance {
    let (fixed, version) = (&instance.fixed, instance.current());
    let disks = instance.disks.iter();
    let disks = disks.filter_map(|attached| engine.disks.get(&attached.disk?));
    OracleInstance {
        id: fixed.id.to_string(),
        name: fixed.name.clone(),
        project: fixed.project.clone(),
        zone: fixed.zone.clone(),
        status: version.status.name().to_owned(),
        labels: (*version.labels).clone(),
        metadata: version.metadata.0.iter().cloned().collect(),
        network_tags: fixed.tags.clone(),
        subnetwork: fixed.subnetwork.clone(),
        machine_type: version.machine_type.clone(),
        image: fixed.image.clone(),
        boot_disk_gib: instance
            .disks
            .iter()
            .find(|disk| disk.boot)
            .map(|disk| disk.gib),
        disks: disks.map(|disk| disk.name.clone()).collect(),
        internal_ip: fixed.internal_ip,
        nat_ip: version.nat_ip,
        spot: fixed.scheduling.market() == Market::Spot,
        holds_machine: instance.holds_machine,
        boots: instance.boots,
        external: fixed.external,
        deletion_protection: fixed.deletion_protection,
        request_id: fixed.request_id.map(|id| id.to_string()),
    }
}

/// Returns the true state of all disks.
fn disks(engine: &Engine) -> Vec<OracleDisk> {
    let disks = engine.disks.iter().map(|(seq, disk)| {
        let user = disk.user.and_then(|user| engine.instances.get(&user));
        let attached = user.and_then(|user| {
            user.disks
                .iter()
                .find(|attached| attached.disk == Some(*seq))
        });
        OracleDisk {
            name: disk.name.clone(),
            project: disk.project.clone(),
            zone: disk.zone.clone(),
            attached_to: user.map(|user| user.fixed.name.clone()),
            auto_delete: attached.is_some_and(|attached| attached.auto_delete),
            gib: disk.gib,
            labels: disk.labels.clone(),
        }
    });
    disks.collect()
}
