//! The document `Image`.

use serde_json::{Value, json};

use super::without_empty;
use crate::gcp::{
    engine::{Engine, image::ImageRecord, rules},
    wire::link::link,
};

/// Returns the document of an image.
///
/// It is `PENDING` until its time `ready`, and `READY` from then on. The archive size is a quarter
/// of the disk size.
pub(crate) fn image(engine: &Engine, image: &ImageRecord) -> Value {
    let ready = image.ready <= engine.now();
    without_empty(json!({
        "kind": "compute#image",
        "id": image.id.to_string(),
        "creationTimestamp": engine.stamp(image.created),
        "name": image.name,
        "description": image.description,
        "family": image.family,
        "sourceType": "RAW",
        "status": if ready { "READY" } else { "PENDING" },
        "diskSizeGb": image.gib.to_string(),
        "archiveSizeBytes": (u64::from(image.gib) << 28).to_string(),
        "architecture": image.architecture,
        "labels": image.labels,
        "labelFingerprint": rules::label_fingerprint(&image.labels),
        "selfLink": link(&image.path()),
        "sourceDisk": image.source.as_ref().map(|(path, _)| link(path)),
        "sourceDiskId": image.source.as_ref().map(|(_, id)| id.to_string()),
        "storageLocations": ["us"],
    }))
}
