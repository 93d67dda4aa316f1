//! Changes of an instance's tags, type and image.

use std::sync::Arc;

use fleetwright::{ImageId, InstanceId, InstanceType, TagChange};

use super::{World, launch::not_offered};
use crate::{error::NativeError, state::NativeState};

impl World {
    /// Changes tags, all or nothing. Refuses a result beyond the tag limits.
    pub(crate) fn update_tags(
        &mut self,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<(), NativeError> {
        let seq = self.find_in(id, "not terminated", |_| true)?;
        let Some(record) = self.records.get(&seq) else {
            return Ok(());
        };
        let tags = change
            .apply(&record.current().tags)
            .map_err(NativeError::Invalid)?;
        self.knobs
            .capabilities
            .tags
            .check(&tags)
            .map_err(NativeError::Invalid)?;
        self.revise(seq, |version| version.tags = Arc::new(tags));
        Ok(())
    }

    /// Changes the type of a stopped instance. Capacity is checked at its next start.
    pub(crate) fn resize(&mut self, id: &InstanceId, to: &InstanceType) -> Result<(), NativeError> {
        self.check_type(to)?;
        let seq = self.find_in(id, "stopped", |state| state == NativeState::Halted)?;
        self.revise(seq, |version| version.instance_type = to.clone());
        Ok(())
    }

    /// Replaces the image and the disk of a running or stopped instance. Id and addresses stay.
    pub(crate) fn reimage(&mut self, id: &InstanceId, image: &ImageId) -> Result<(), NativeError> {
        self.check_image(image)?;
        let fits = |state| matches!(state, NativeState::Active | NativeState::Halted);
        let seq = self.find_in(id, "running or stopped", fits)?;
        let name = self.ids.disk();
        let Some(record) = self.records.get_mut(&seq) else {
            return Ok(());
        };
        let running = record.current().state == NativeState::Active;
        if let Some(disk) = &mut record.disk {
            disk.name = name;
        }
        self.revise(seq, |version| version.image = image.clone());
        if running {
            self.start_transition(
                seq,
                NativeState::Reimaging,
                "reimaged",
                self.knobs.timing.reimage,
            );
        }
        Ok(())
    }

    /// Checks that the catalog has the type.
    pub(super) fn check_type(&self, instance_type: &InstanceType) -> Result<(), NativeError> {
        let types = &self.knobs.types;
        if types.is_empty() || types.contains(instance_type) {
            return Ok(());
        }
        let names: Vec<_> = types.iter().map(InstanceType::as_str).collect();
        Err(not_offered("instance type", &names.join(", ")))
    }

    /// Checks that the catalog or a snapshot has the image.
    pub(super) fn check_image(&self, image: &ImageId) -> Result<(), NativeError> {
        let images = &self.knobs.images;
        let any = images.is_empty() && !self.deleted_images.contains(image);
        if any || images.contains(image) || self.image_ids.contains(image) {
            return Ok(());
        }
        if images.is_empty() {
            return Err(not_offered("image", "the images that were not deleted"));
        }
        let names: Vec<_> = images.iter().map(ImageId::as_str).collect();
        Err(not_offered("image", &names.join(", ")))
    }
}
