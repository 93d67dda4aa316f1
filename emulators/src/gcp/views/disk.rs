//! The document `Disk`.

use serde_json::{Value, json};

use super::{without_empty, zone_link};
use crate::gcp::{
    engine::{Engine, disk::Disk, rules},
    wire::link::link,
};

/// Returns the document of a disk.
///
/// It is always `READY`, and `users` names the instance that it is attached to. Sizes and ids are
/// texts, as 64-bit numbers are in Google's JSON.
pub(crate) fn disk(engine: &Engine, disk: &Disk) -> Value {
    let stamp = |moment: Option<_>| moment.map(|moment| engine.stamp(moment));
    let user = disk.user.and_then(|user| engine.instances.get(&user));
    let Disk { project, zone, .. } = disk;
    without_empty(json!({
        "kind": "compute#disk",
        "id": disk.id.to_string(),
        "creationTimestamp": engine.stamp(disk.created),
        "name": disk.name,
        "description": disk.description,
        "sizeGb": disk.gib.to_string(),
        "zone": zone_link(project, zone),
        "status": "READY",
        "selfLink": link(&disk.path()),
        "sourceImage": disk.image.as_ref().map(|(path, _)| link(path)),
        "sourceImageId": disk.image.as_ref().map(|(_, id)| id.to_string()),
        "type": link(&format!("projects/{project}/zones/{zone}/diskTypes/{}", disk.kind)),
        "users": user.map(|user| vec![link(&user.fixed.path())]).unwrap_or_default(),
        "labels": disk.labels,
        "labelFingerprint": rules::label_fingerprint(&disk.labels),
        "architecture": disk.architecture,
        "physicalBlockSizeBytes": "4096",
        "lastAttachTimestamp": stamp(disk.attached),
        "lastDetachTimestamp": stamp(disk.detached),
    }))
}
