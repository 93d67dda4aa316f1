//! The document `Instance`.
//!
//! It shows one version of an instance, which may be an old one, with the disks that are attached
//! now.

use serde_json::{Value, json};

use super::{without_empty, zone_link};
use crate::gcp::{
    catalog::region_of,
    engine::{
        Engine,
        read::ReadInstance,
        record::{AttachedDisk, Fixed, Instance, Scheduling, TerminationAction, Version},
        rules::{self, Metadata},
    },
    wire::link::link,
};

/// Returns the document of an instance as a read returns it; `state` replaces its status if given.
///
/// The fields of the insert that are only stored are added unchanged.
pub(crate) fn instance(engine: &Engine, read: &ReadInstance<'_>, state: Option<&str>) -> Value {
    let ReadInstance { instance, version } = read;
    let fixed = &*instance.fixed;
    let Fixed {
        project,
        zone,
        name,
        ..
    } = fixed;
    let stamp = |moment: Option<_>| moment.map(|moment| engine.stamp(moment));
    let mut document = json!({
        "kind": "compute#instance",
        "id": fixed.id.to_string(),
        "creationTimestamp": engine.stamp(instance.versions.created_at()),
        "name": name,
        "tags": without_empty(json!({ "items": fixed.tags, "fingerprint": rules::fingerprint(&fixed.tags) })),
        "machineType": link(&format!("projects/{project}/zones/{zone}/machineTypes/{}", version.machine_type)),
        "status": state.unwrap_or_else(|| version.status.name()),
        "zone": zone_link(project, zone),
        "canIpForward": fixed.can_ip_forward,
        "networkInterfaces": [nic(fixed, version)],
        "disks": disks(engine, instance),
        "metadata": metadata(&version.metadata),
        "selfLink": link(&fixed.path()),
        "scheduling": scheduling(&fixed.scheduling),
        "cpuPlatform": "Unknown CPU Platform",
        "labels": *version.labels,
        "labelFingerprint": rules::label_fingerprint(&version.labels),
        "startRestricted": false,
        "deletionProtection": fixed.deletion_protection,
        "hostname": fixed.hostname,
        "lastStartTimestamp": stamp(version.last_start),
        "lastStopTimestamp": stamp(version.last_stop),
        "lastSuspendedTimestamp": stamp(version.last_suspended),
        "fingerprint": rules::fingerprint([&format!("{:?}", version.status), &fixed.path()]),
    });
    for (field, value) in &fixed.echo {
        document[field] = value.clone();
    }
    without_empty(document)
}

/// Returns the metadata with its fingerprint.
fn metadata(metadata: &Metadata) -> Value {
    let items = metadata.0.iter();
    let items: Vec<_> = items
        .map(|(key, value)| json!({ "key": key, "value": value }))
        .collect();
    without_empty(json!({
        "kind": "compute#metadata",
        "fingerprint": metadata.fingerprint(),
        "items": items,
    }))
}

/// Returns the only network interface, `nic0`. Its access config has `natIP` only while the
/// instance runs.
fn nic(fixed: &Fixed, version: &Version) -> Value {
    let (project, region) = (&fixed.project, region_of(&fixed.zone));
    let access = fixed.access.iter().map(|access| {
        without_empty(json!({
            "kind": "compute#accessConfig",
            "type": "ONE_TO_ONE_NAT",
            "name": access.name,
            "natIP": version.nat_ip,
            "networkTier": access.tier,
        }))
    });
    without_empty(json!({
        "kind": "compute#networkInterface",
        "network": link(&format!("projects/{project}/global/networks/{}", fixed.network)),
        "subnetwork": link(&format!("projects/{project}/regions/{region}/subnetworks/{}", fixed.subnetwork)),
        "networkIP": fixed.internal_ip,
        "name": "nic0",
        "accessConfigs": access.collect::<Vec<_>>(),
        "fingerprint": rules::fingerprint([&format!("{:?}", version.nat_ip)]),
        "stackType": "IPV4_ONLY",
    }))
}

/// Returns the attached disks, in the order of the insert.
fn disks(engine: &Engine, instance: &Instance) -> Vec<Value> {
    let disks = instance.disks.iter().enumerate();
    disks
        .map(|(index, attached)| disk(engine, index, attached))
        .collect()
}

/// Returns an attached disk: `PERSISTENT` with a link to the disk, or `SCRATCH` for a local SSD.
fn disk(engine: &Engine, index: usize, attached: &AttachedDisk) -> Value {
    let disk = attached.disk.and_then(|seq| engine.disks.get(&seq));
    without_empty(json!({
        "kind": "compute#attachedDisk",
        "type": if attached.disk.is_some() { "PERSISTENT" } else { "SCRATCH" },
        "mode": attached.mode,
        "source": disk.map(|disk| link(&disk.path())),
        "deviceName": attached.device,
        "index": index,
        "boot": attached.boot,
        "autoDelete": attached.auto_delete,
        "interface": attached.interface,
        "diskSizeGb": attached.gib.to_string(),
        "architecture": disk.and_then(|disk| disk.architecture.clone()),
    }))
}

/// Returns the scheduling. A spot instance is also preemptible.
fn scheduling(scheduling: &Scheduling) -> Value {
    let spot = scheduling.spot;
    without_empty(json!({
        "onHostMaintenance": if scheduling.migrates { "MIGRATE" } else { "TERMINATE" },
        "automaticRestart": scheduling.automatic_restart,
        "preemptible": scheduling.preemptible || spot,
        "provisioningModel": if spot { "SPOT" } else { "STANDARD" },
        "instanceTerminationAction": scheduling.termination.map(|action| match action {
            TerminationAction::Stop => "STOP",
            TerminationAction::Delete => "DELETE",
        }),
    }))
}
