//! The requests of tenants for images.

use fleetwright_region::{
    catalog::{ImageError, ImageState},
    ids::ImageId,
    snapshot::NewSnapshot,
};
use fleetwright_store::Advice;

use super::{Client, OpResult};
use crate::{constants, world::Process};

impl Client {
    pub(super) async fn snapshot(&mut self, process: &Process, slot: usize) -> OpResult {
        let (principal, id) = (Self::user(slot), self.fixtures.id(slot));
        let new = NewSnapshot::new(constants::snapshot(slot));
        match process.instances.snapshot(&principal, id, &new).await {
            // The name is free once the image before is deleted.
            Ok(image) if image.state == ImageState::Deleting => OpResult::Retry,
            Ok(image) => {
                self.expected.images.insert(image.id, slot);
                OpResult::Done
            }
            Err(error) => self.after_error(&error),
        }
    }

    /// Deletes the images of a slot, as far as they are ready or failed.
    pub(super) async fn delete_image(&mut self, process: &Process, slot: usize) -> OpResult {
        let all = self.expected.images.iter();
        let of_slot = all.filter(|(_, source)| **source == slot);
        let ids: Vec<ImageId> = of_slot.map(|(id, _)| id.clone()).collect();
        for id in ids {
            let deleted = process.catalog.delete_image(&Self::user(slot), &id).await;
            match deleted {
                // It is gone if the response to an earlier attempt was lost.
                Ok(_) | Err(ImageError::NotFound(_)) => {
                    self.expected.images.remove(&id);
                    self.expected.deleted_images.insert(id);
                }
                Err(ImageError::Store(error)) if error.advice() != Advice::GiveUp => {
                    return OpResult::Retry;
                }
                Err(ImageError::Busy(_)) => return OpResult::Retry,
                Err(error @ ImageError::InvalidTransition { .. }) => {
                    self.journal.log(format!("  {error}"));
                }
                Err(error) => self
                    .journal
                    .report_violation(format!("image {id} cannot be deleted: {error}")),
            }
        }
        OpResult::Done
    }
}
