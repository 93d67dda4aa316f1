//! Volumes that clients create, attach, change and delete. They are described by `storage`.

use super::{Call, launch_request::volume_kind, storage::volume_shape};
use crate::ec2::{
    engine::{
        Engine,
        filter::Filtered,
        record::Tags,
        storage::{Device, Volume},
        tags::volume_not_found,
        volume::VolumeChange,
    },
    error::Refusal,
    wire::{params::Scope, tree::Tree},
};

/// Creates a volume.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameterValue`, `InvalidZone.NotFound` or `InvalidSnapshot.NotFound`.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let zone = root.required("AvailabilityZone")?;
    let change = change(&root)?;
    let snapshot = root.text("SnapshotId").filter(|id| !id.is_empty());
    let encrypted = root.flag("Encrypted")?.unwrap_or(false);
    let tags = call.tags_for("volume")?;
    let token = root.text("ClientToken").filter(|token| !token.is_empty());
    let token = token.map(|token| (token, call.params.digest(&["ClientToken", "DryRun"])));
    let mode = call.mode()?;
    call.finish()?;
    let of_snapshot = match &snapshot {
        Some(id) => Some(engine.snapshot_gib(id)?),
        None => None,
    };
    let gib = change
        .gib
        .or(of_snapshot)
        .ok_or_else(|| Refusal::missing("Size"))?;
    let device = Device {
        name: String::new(),
        gib,
        // EC2's default of CreateVolume is not that of launches (API reference, "CreateVolume").
        kind: change.kind.unwrap_or_else(|| "gp2".to_owned()),
        snapshot,
        iops: change.iops,
        throughput: change.throughput,
        encrypted,
        delete_on_termination: false,
    };
    let volume = engine.create_volume(&zone, device, &tags, token, mode)?;
    call.respond(&volume_shape(engine, volume))
}

/// Parses the size and the type of a volume.
fn change(root: &Scope<'_>) -> Result<VolumeChange, Refusal> {
    let gib: Option<u32> = root.number("Size")?;
    if let Some(gib) = gib.filter(|gib| !(1..=65_536).contains(gib)) {
        return Err(root.invalid("Size", &gib.to_string(), "Expected 1 to 65536."));
    }
    Ok(VolumeChange {
        gib,
        kind: volume_kind(root)?,
        iops: root.number("Iops")?,
        throughput: root.number("Throughput")?,
    })
}

/// Deletes a volume.
///
/// # Errors
///
/// `InvalidVolume.NotFound` or `VolumeInUse`.
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = call.root().required("VolumeId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_volume(&id, mode)?;
    call.success()
}

/// Attaches a volume to an instance.
///
/// # Errors
///
/// `MissingParameter`, and those of the engine.
pub(super) fn attach(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (id, instance) = (root.required("VolumeId")?, root.required("InstanceId")?);
    let device = root.required("Device")?;
    let mode = call.mode()?;
    call.finish()?;
    let volume = engine.attach_volume(&id, &instance, &device, mode)?;
    call.respond(&attachment(engine, &volume, "attached"))
}

/// Detaches a volume.
///
/// # Errors
///
/// `MissingParameter`, and those of the engine.
pub(super) fn detach(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("VolumeId")?;
    let (instance, device) = (root.text("InstanceId"), root.text("Device"));
    let _force = root.flag("Force")?;
    let mode = call.mode()?;
    call.finish()?;
    let volume = engine.detach_volume(&id, instance.as_deref(), device.as_deref(), mode)?;
    call.respond(&attachment(engine, &volume, "detached"))
}

/// Returns the attachment of a volume.
fn attachment(engine: &Engine, volume: &Volume, status: &str) -> Tree {
    Tree::default()
        .text("volumeId", &volume.id)
        .some("instanceId", volume.attached_to.as_ref())
        .text("device", &volume.device.name)
        .text("status", status)
        .text("attachTime", engine.stamp(volume.attached))
        .text("deleteOnTermination", volume.device.delete_on_termination)
}

/// Changes the size or the type of a volume, which is complete at once.
///
/// # Errors
///
/// `InvalidVolume.NotFound`, or `InvalidParameterValue` for a smaller size.
pub(super) fn modify(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("VolumeId")?;
    let change = change(&root)?;
    let mode = call.mode()?;
    call.finish()?;
    let volume = engine.modify_volume(&id, &change, mode)?;
    let modification = modification(engine, &volume);
    let modified = modification.map(|tree| Tree::default().tree("volumeModification", tree));
    call.respond(&modified.ok_or_else(Refusal::internal)?)
}

/// Returns the last change of a volume, if there was one.
fn modification(engine: &Engine, volume: &Volume) -> Option<Tree> {
    let (when, before) = volume.modified.as_ref()?;
    let after = &volume.device;
    let time = engine.stamp(*when);
    let tree = Tree::default()
        .text("volumeId", &volume.id)
        .text("modificationState", "completed")
        .text("targetSize", after.gib)
        .some("targetIops", after.iops)
        .text("targetVolumeType", &after.kind)
        .some("targetThroughput", after.throughput)
        .text("originalSize", before.gib)
        .some("originalIops", before.iops)
        .text("originalVolumeType", &before.kind)
        .some("originalThroughput", before.throughput)
        .text("progress", 100)
        .text("startTime", &time)
        .text("endTime", &time);
    Some(tree)
}

/// A volume that was changed.
struct Modified(Volume);

/// Describes the last changes of volumes.
///
/// # Errors
///
/// `InvalidVolume.NotFound`, or `InvalidVolumeModification.NotFound` for a volume that was never changed.
pub(super) fn modifications(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let changed = engine
        .volumes
        .values()
        .filter(|volume| volume.modified.is_some());
    let all: Vec<Modified> = changed.cloned().map(Modified).collect();
    let missing = |id: &str| match engine.volume(id) {
        None => volume_not_found(id),
        Some(_) => {
            let message = format!("Modification for volume '{id}' does not exist.");
            Refusal::client("InvalidVolumeModification.NotFound", message)
        }
    };
    let by_id: (_, fn(&Modified) -> &str) = ("VolumeId", |modified| &modified.0.id);
    let (found, next) = call.select(engine, all, by_id, missing)?;
    let trees = found
        .iter()
        .filter_map(|modified| modification(engine, &modified.0));
    call.respond_list("volumeModificationSet", trees, next)
}

impl Filtered for Modified {
    /// The filters of changes.
    const NAMES: &'static [&'static str] = &["modification-state", "volume-id"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "modification-state" => vec!["completed".to_owned()],
            "volume-id" => vec![self.0.id.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}
