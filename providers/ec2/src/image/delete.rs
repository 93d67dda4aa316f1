//! Deleting images.
//!
//! Owns which images may be deleted, and how the snapshots of an image are found after its deregistration. EC2 keeps
//! no record of a deregistered image, so a tag on each snapshot names the image before it is deregistered: if the
//! process dies then, the next deletion finds the snapshots by that tag.
//!
//! `DeleteAssociatedSnapshots` of `DeregisterImage` would save a call and not the tag: if its response is lost,
//! nothing says which snapshots it could not delete.

use aws_sdk_ec2::types::{Image, ImageState};
use fleetwright::{Call, Effect, ImageId, Operation, Result, RetryAdvice};
use fleetwright_provider_support::{ErrorContext, ReadInstances as _, read_until};
use futures_util::future::BoxFuture;

use super::SOURCE_TAG;
use crate::{Ec2Provisioner, convert, error::Failure};

/// The tag of a snapshot with the image that it is deleted with.
const IMAGE_TAG: &str = "fleetwright:image";

impl Ec2Provisioner {
    /// Deletes an image and its snapshots, or what an earlier deletion left of them.
    ///
    /// # Errors
    ///
    /// A conflict if `snapshot_image` did not create the image, or if it is still being created.
    pub(crate) async fn delete_created_image(&self, image: &ImageId) -> Result<()> {
        let call = self.call(Operation::DeleteImage);
        let error = |failure: Failure| failure.into_error(&call, ErrorContext::default());
        let read = || -> BoxFuture<'_, Result<Option<Image>>> {
            Box::pin(async {
                match self.client.image(image.as_str()).await {
                    Err(failure) if is_image_gone(&failure) => Ok(None),
                    read => read.map_err(|failure| error(failure).with_effect(Effect::None)),
                }
            })
        };
        let native = read_until(&self.capabilities, read, Option::is_some).await?;
        let known = match native {
            Some(native) => {
                self.check_deletable(&call, image, &native)?;
                self.deregister(image, snapshots(&native))
                    .await
                    .map_err(|failure| error(failure).with_effect(Effect::Unknown))?
            }
            None => None,
        };
        let unknown = |failure| error(failure).with_effect(Effect::Unknown);
        let snapshots = match known {
            Some(known) => known,
            None => {
                let tagged = self.client.snapshots_with_tag(IMAGE_TAG, image.as_str());
                tagged.await.map_err(unknown)?
            }
        };
        for snapshot in snapshots {
            self.delete_snapshot(&call, &snapshot).await?;
        }
        Ok(())
    }

    /// Refuses an image that `snapshot_image` did not create, or that is being created.
    fn check_deletable(&self, call: &Call, image: &ImageId, native: &Image) -> Result<()> {
        let mut tags = native.tags().iter();
        if !tags.any(|tag| tag.key() == Some(SOURCE_TAG)) {
            let message = format!(
                "{image} has no tag {SOURCE_TAG}, so snapshot_image did not create it and it is not deleted; check the id"
            );
            return Err(call.conflict(&message, RetryAdvice::Never));
        }
        match native.state() {
            Some(ImageState::Pending | ImageState::Transient) => {
                let message = format!("{image} is still being created; retry when it is available");
                let retry = RetryAdvice::After(self.capabilities.poll_interval);
                Err(call.conflict(&message, retry))
            }
            _ => Ok(()),
        }
    }

    /// Tags the snapshots of an image and deregisters it. Returns the snapshots, or `None` if the image is
    /// deregistered and some of them are deleted: the read of the image was stale.
    async fn deregister(
        &self,
        image: &ImageId,
        snapshots: Vec<String>,
    ) -> std::result::Result<Option<Vec<String>>, Failure> {
        if !snapshots.is_empty() {
            let tag = convert::native_tag(IMAGE_TAG, image.as_str());
            match self.client.add_tag(&snapshots, tag).await {
                Err(failure) if is_snapshot_gone(&failure) => return Ok(None),
                tagged => tagged?,
            }
        }
        match self.client.deregister_image(image.as_str()).await {
            Err(failure) if is_image_gone(&failure) => {}
            deregistered => deregistered?,
        }
        Ok(Some(snapshots))
    }

    /// Deletes a snapshot of a deregistered image, unless another image uses it.
    async fn delete_snapshot(&self, call: &Call, snapshot: &str) -> Result<()> {
        let error = |failure: Failure| {
            let error = failure.into_error(call, ErrorContext::default());
            error.with_effect(Effect::Unknown)
        };
        match self.client.delete_snapshot(snapshot).await {
            Err(failure) if is_snapshot_gone(&failure) => Ok(()),
            Err(failure) if failure.code() == "InvalidSnapshot.InUse" => {
                let used = self.client.is_snapshot_used(snapshot).await;
                if used.map_err(error)? {
                    return Ok(());
                }
                let message =
                    format!("EC2 still uses {snapshot} for a deregistered image; retry later");
                let retry = RetryAdvice::After(self.capabilities.poll_interval);
                Err(call.conflict(&message, retry).with_effect(Effect::Unknown))
            }
            deleted => deleted.map_err(error),
        }
    }
}

/// Returns the snapshots of an image.
fn snapshots(image: &Image) -> Vec<String> {
    let devices = image.block_device_mappings().iter();
    let disks = devices.filter_map(|device| device.ebs());
    let ids = disks.filter_map(|disk| disk.snapshot_id());
    ids.filter(|id| !id.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// Returns whether an image does not exist, or no longer.
fn is_image_gone(failure: &Failure) -> bool {
    matches!(
        failure.code(),
        "InvalidAMIID.NotFound" | "InvalidAMIID.Unavailable"
    )
}

/// Returns whether a snapshot does not exist, or no longer.
fn is_snapshot_gone(failure: &Failure) -> bool {
    failure.code() == "InvalidSnapshot.NotFound"
}
