//! Changing what an instance is: its tags, type and image.

use std::sync::Arc;

use fleetwright::{ImageId, InstanceId, InstanceType, TagChange};

use super::{World, launch::not_offered};
use crate::{error::Refusal, state::NativeState};

impl World {
    /// Changes tags, all or nothing.
    pub(crate) fn update_tags(
        &mut self,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<(), Refusal> {
        let seq = self.find_in(id, "not terminated", |_| true)?;
        let Some(record) = self.records.get(&seq) else {
            return Ok(());
        };
        let tags = change
            .apply(&record.current().tags)
            .map_err(Refusal::Invalid)?;
        self.knobs
            .capabilities
            .tags
            .check(&tags)
            .map_err(Refusal::Invalid)?;
        self.revise(seq, |version| version.tags = Arc::new(tags));
        Ok(())
    }

    /// Changes the type of a stopped instance.
    pub(crate) fn resize(&mut self, id: &InstanceId, to: &InstanceType) -> Result<(), Refusal> {
        self.check_type(to)?;
        let seq = self.find_in(id, "stopped", |state| state == NativeState::Halted)?;
        self.revise(seq, |version| version.instance_type = to.clone());
        Ok(())
    }

    /// Puts a new image, and with it a new disk, on a running or stopped instance.
    pub(crate) fn reimage(&mut self, id: &InstanceId, image: &ImageId) -> Result<(), Refusal> {
        self.check_image(image)?;
        let fits = |state| matches!(state, NativeState::Active | NativeState::Halted);
        let seq = self.find_in(id, "running or stopped", fits)?;
        let name = self.names.disk();
        let Some(record) = self.records.get_mut(&seq) else {
            return Ok(());
        };
        let running = record.current().state == NativeState::Active;
        if let Some(disk) = &mut record.disk {
            disk.name = name;
        }
        self.revise(seq, |version| version.image = image.clone());
        if running {
            self.begin(
                seq,
                NativeState::Reimaging,
                "reimaged",
                self.knobs.timing.reimage,
            );
        }
        Ok(())
    }

    pub(super) fn check_type(&self, instance_type: &InstanceType) -> Result<(), Refusal> {
        let types = &self.knobs.types;
        if types.is_empty() || types.contains(instance_type) {
            return Ok(());
        }
        let names: Vec<_> = types.iter().map(InstanceType::as_str).collect();
        Err(not_offered("instance type", &names.join(", ")))
    }

    pub(super) fn check_image(&self, image: &ImageId) -> Result<(), Refusal> {
        let images = &self.knobs.images;
        if images.is_empty() || images.contains(image) || self.image_ids.contains(image) {
            return Ok(());
        }
        let names: Vec<_> = images.iter().map(ImageId::as_str).collect();
        Err(not_offered("image", &names.join(", ")))
    }
}
