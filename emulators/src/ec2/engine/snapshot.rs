//! Snapshots: the data of the images that were created from instances.
//!
//! An image of an instance has one snapshot, of the root volume. It outlives the deregistration of the image,
//! unless that deletes it too. Reads of snapshots never lag.

use std::time::Duration;

use super::{
    Engine, Mode, Seq,
    filter::{self, Filter, Filtered},
    image::ImageRecord,
    page::{Page, PageRequest},
    read::check_ids,
    record::Tags,
};
use crate::ec2::error::Refusal;

/// A snapshot of a volume.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotRecord {
    /// The id, which begins with `snap-`.
    pub(crate) id: String,
    /// The image that it was created for.
    pub(crate) image: String,
    /// The tags that the image was created with.
    pub(crate) image_tags: Tags,
    /// The description, which names the instance and the image.
    pub(crate) description: String,
    /// The owner's account.
    pub(crate) owner: String,
    /// The volume; empty if the instance had none.
    pub(crate) volume: String,
    /// The size of the volume in GiB.
    pub(crate) gib: u32,
    /// The tags.
    pub(crate) tags: Tags,
    /// When it was created.
    pub(crate) created: Duration,
    /// When it is complete.
    pub(crate) completed: Duration,
    /// Whether it was complete at the time of the read.
    pub(crate) is_complete: bool,
}

impl Engine {
    /// Returns the size of a snapshot in GiB.
    ///
    /// # Errors
    ///
    /// `InvalidSnapshot.NotFound`
    pub(crate) fn snapshot_gib(&self, id: &str) -> Result<u32, Refusal> {
        let found = self
            .snapshot_ids
            .get(id)
            .and_then(|seq| self.snapshots.get(seq));
        found
            .map(|snapshot| snapshot.gib)
            .ok_or_else(|| snapshot_not_found(id))
    }

    /// Creates the snapshot of a new image.
    pub(super) fn add_snapshot(&mut self, image: &ImageRecord, volume: String, tags: &Tags) {
        let source = image.source.as_deref().unwrap_or_default();
        let snapshot = SnapshotRecord {
            id: image.snapshot.clone(),
            image: image.id.clone(),
            image_tags: image.tags.clone(),
            description: format!("Created by CreateImage({source}) for {}", image.id),
            owner: image.owner.clone(),
            volume,
            gib: image.root_gib,
            tags: tags.clone(),
            created: image.created,
            completed: image.available,
            is_complete: false,
        };
        let seq = self.next_seq();
        self.snapshot_ids.insert(snapshot.id.clone(), seq);
        self.snapshots.insert(seq, snapshot);
    }

    /// Returns whether a snapshot exists.
    pub(crate) fn has_snapshot(&self, id: &str) -> bool {
        self.snapshot_ids.contains_key(id)
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    ///
    /// `InvalidSnapshotID.Malformed`, `InvalidSnapshot.NotFound`, or `InvalidSnapshot.InUse` while an image has
    /// it ("You cannot delete a snapshot of the root device of an EBS volume used by a registered AMI": API
    /// reference, "DeleteSnapshot"; the code: "Error codes for the Amazon EC2 API").
    pub(crate) fn delete_snapshot(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        check_ids(&[id.to_owned()], "snap", "InvalidSnapshotID.Malformed")?;
        if !self.has_snapshot(id) {
            return Err(snapshot_not_found(id));
        }
        if let Some(image) = self.images.values().find(|image| image.snapshot == id) {
            let message = format!("The snapshot {id} is currently in use by {}", image.id);
            return Err(Refusal::client("InvalidSnapshot.InUse", message));
        }
        mode.check_dry_run()?;
        self.remove_snapshot(id);
        Ok(())
    }

    /// Removes a snapshot. Returns whether it existed.
    pub(super) fn remove_snapshot(&mut self, id: &str) -> bool {
        let seq = self.snapshot_ids.remove(id);
        seq.is_some_and(|seq| self.snapshots.remove(&seq).is_some())
    }

    /// Returns a page of snapshots, in the order of creation.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn snapshots_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
    ) -> Result<Page<SnapshotRecord>, Refusal> {
        filter::check::<SnapshotRecord>(filters)?;
        let now = self.now();
        let after: Seq = paging.position.after;
        let (page, records_read) =
            paging.take(self.snapshots.range(after + 1..).map(|(seq, snapshot)| {
                let mut snapshot = snapshot.clone();
                snapshot.is_complete = snapshot.completed <= now;
                let passes = filter::passes(&snapshot, filters);
                (*seq, passes.then_some(snapshot))
            }));
        self.core.records_read += records_read;
        Ok(page)
    }
}

/// Returns the refusal of a snapshot that does not exist: `InvalidSnapshot.NotFound`.
pub(crate) fn snapshot_not_found(id: &str) -> Refusal {
    Refusal::client(
        "InvalidSnapshot.NotFound",
        format!("The snapshot '{id}' does not exist."),
    )
}

/// The filters of DescribeSnapshots.
impl Filtered for SnapshotRecord {
    const NAMES: &'static [&'static str] = &[
        "description",
        "encrypted",
        "owner-id",
        "snapshot-id",
        "status",
        "volume-id",
        "volume-size",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let one = |value: &str| vec![value.to_owned()];
        match name {
            "description" => one(&self.description),
            "encrypted" => one("false"),
            "owner-id" => one(&self.owner),
            "snapshot-id" => one(&self.id),
            "status" => one(if self.is_complete {
                "completed"
            } else {
                "pending"
            }),
            "volume-id" => one(&self.volume),
            "volume-size" => vec![self.gib.to_string()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
